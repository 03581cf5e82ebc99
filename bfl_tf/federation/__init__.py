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
from bfl_tf.federation.run import Run, run

__all__ = [
  'Config',
  'Experiment',
  'Run',
  'State',
  'TooFewClientsError',
  'configured',
  'federated_round',
  'initial_state',
  'run',
  'table',
]
