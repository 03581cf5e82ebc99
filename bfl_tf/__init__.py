"""Bayesian federated learning on TensorFlow Probability.

import bfl_tf
summary = bfl_tf.run(bfl_tf.Config(pooling='wc'), 'runs/wc')
trained = bfl_tf.load('runs/wc')
"""

from bfl_tf import startup  # noqa: F401  First, before TensorFlow.

# isort: split
from bfl_tf import (
  datasets,
  metrics,
  models,
  partitions,
  plots,
  pooling,
  weights,
)
from bfl_tf.config import Config
from bfl_tf.runs import read_runs, run, sweep
from bfl_tf.trained import load
from bfl_tf.version import __version__

__all__ = [
  'Config',
  '__version__',
  'datasets',
  'load',
  'metrics',
  'models',
  'partitions',
  'plots',
  'pooling',
  'read_runs',
  'run',
  'sweep',
  'weights',
]
