"""Shapes and types, told and compared."""

from typing import Any

import numpy as np
import tensorflow as tf


def spec_of(value: Any) -> tf.TensorSpec:
  """Returns the shape and the type of an array or a number."""
  array = np.asarray(value)
  return tf.TensorSpec(array.shape, array.dtype)


def any_rows(spec: tf.TensorSpec) -> tf.TensorSpec:
  """Returns the spec of as many rows as there may be."""
  return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)


def mismatch(value: Any, spec: tf.TensorSpec) -> str | None:
  """Says how a value differs from what is wanted, or returns None.

  Args:
    value: an array or a NumPy number; anything else is a difference.
    spec: its type, and its shape where that is known.
  """
  if not isinstance(value, np.ndarray | np.generic):
    return f'is of type {type(value).__name__}, not an array'
  if value.dtype != spec.dtype.as_numpy_dtype:
    return f'is {value.dtype}, not {spec.dtype.name}'
  if not spec.shape.is_compatible_with(value.shape):
    return f'has shape {value.shape}, not {spec.shape}'
  return None
