"""Binaries: thin, on absl flags."""

import os

# TensorFlow's own start-up lines would bury ours.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
