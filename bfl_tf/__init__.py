"""Bayesian federated learning on TensorFlow Probability.

import bfl_tf
summary = bfl_tf.run(bfl_tf.Config(pooling='wc'), 'runs/wc')
trained = bfl_tf.load('runs/wc')
"""

from bfl_tf import startup

# isort: split
from bfl_tf import data, metrics, models, plots, weights
from bfl_tf.analysis import load
from bfl_tf.config.config import Config
from bfl_tf.data import partitions
from bfl_tf.runs import compare, read_runs, run, sweep
from bfl_tf.server import pooling
from bfl_tf.version import __version__

__all__ = [
  'Config',
  '__version__',
  'compare',
  'data',
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
