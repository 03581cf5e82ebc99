"""Command-line programs; importing `bfl_tf` first silences TensorFlow."""

import bfl_tf  # noqa: F401
