"""Devices, the compiled training loop, optimizers, schedules, prediction."""

from bfl_tf.training.devices import configure, in_parallel, strategies
from bfl_tf.training.local import Data, Job, Result, Settings, Step, Trace
from bfl_tf.training.optimizers import OPTIMIZERS
from bfl_tf.training.prediction import predict, Predictive
from bfl_tf.training.schedules import SCHEDULES
from bfl_tf.training.worker import Worker

__all__ = [
  'OPTIMIZERS',
  'SCHEDULES',
  'Data',
  'Job',
  'Predictive',
  'Result',
  'Settings',
  'Step',
  'Trace',
  'Worker',
  'configure',
  'in_parallel',
  'predict',
  'strategies',
]
