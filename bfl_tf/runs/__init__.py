"""Runs and studies: rounds, resume, run directories and records."""

from bfl_tf.runs.comparison import compare
from bfl_tf.runs.directory import BusyError
from bfl_tf.runs.executor import RunSpec
from bfl_tf.runs.groups import read_runs
from bfl_tf.runs.progress import table
from bfl_tf.runs.run import Run, run
from bfl_tf.runs.run_config import read_config
from bfl_tf.runs.study import sweep
from bfl_tf.runs.task import Task
