"""The loop, its config, checkpoints and records."""

from bfl_tf.federation.config import Config
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.loop import (
  federated_round,
  initial_state,
  State,
  TooFewClientsError,
)
from bfl_tf.federation.pieces import configured
from bfl_tf.federation.progress import table
from bfl_tf.federation.recorded import read_config
from bfl_tf.federation.run import Run, run
from bfl_tf.federation.task import Task
from bfl_tf.federation.trained import load, Prediction, Trained

__all__ = [
  'Config',
  'Experiment',
  'Prediction',
  'Run',
  'State',
  'Task',
  'TooFewClientsError',
  'Trained',
  'configured',
  'federated_round',
  'initial_state',
  'load',
  'read_config',
  'run',
  'table',
]
