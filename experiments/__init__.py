"""Binaries: thin, on absl flags. TensorFlow starts quietly in `bfl_tf`."""

import bfl_tf  # noqa: F401
