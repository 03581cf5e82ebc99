"""The loop, its seam where clients run, config, checkpoints and records.

And what a finished run is asked: its model, its sites, its doubts.
"""

from bfl_tf.federation.binding import configured
from bfl_tf.federation.client import Broadcast, job, Plan, train_client
from bfl_tf.federation.config import Config
from bfl_tf.federation.engine import Arrival, OtherSideError
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.loop import federated_round, initial_state
from bfl_tf.federation.method import Method
from bfl_tf.federation.progress import table
from bfl_tf.federation.recorded import read_config
from bfl_tf.federation.records import BusyError
from bfl_tf.federation.reduction import Reduction
from bfl_tf.federation.run import Run, run
from bfl_tf.federation.state import Round, State
from bfl_tf.federation.stopping import (
  CulpritError,
  MachineError,
  StoppedError,
  Terminated,
  TooFewClientsError,
)
from bfl_tf.federation.task import Task
from bfl_tf.federation.trained import load, Prediction, Trained

__all__ = [
  'Arrival',
  'Broadcast',
  'BusyError',
  'Config',
  'CulpritError',
  'Experiment',
  'MachineError',
  'Method',
  'OtherSideError',
  'Plan',
  'Prediction',
  'Reduction',
  'Round',
  'Run',
  'State',
  'StoppedError',
  'Task',
  'Terminated',
  'TooFewClientsError',
  'Trained',
  'configured',
  'federated_round',
  'initial_state',
  'job',
  'load',
  'read_config',
  'run',
  'table',
  'train_client',
]
