"""Names of the files in a run's directory, and shared readers.

A comment names the module that writes a file and, after the arrow, its readers.
docs/architecture.md describes the content of each file.
"""

import os
import pathlib
from typing import Any

from bfl_tf import files

# Files of a run.
FLAGS = 'flags.txt'  # runs.run_config -> runs.run_config.read_config
TASK = 'task.json'  # runs.task -> runs.task.read
# Secret of a private run, which is in no export: it can remove the noise.
SECRET = 'secret.key'  # runs.run -> runs.directory
NODES = 'nodes.json'  # runs.run -> flower.servers
PARTITION = 'partition.csv'  # runs.directory -> plots.recorded.partition
METRICS = 'metrics.csv'  # runs.tables.Rows -> runs.tables.read, plots.recorded
CHECKPOINT = 'checkpoint.npz'  # runs.checkpoints -> runs.checkpoints.restore
MEMORIES = 'memories.bin'  # runs.memories -> runs.memories
TRACKERS = 'trackers.json'  # runs.trackers -> runs.trackers
TENSORBOARD = 'tensorboard'  # runs.directory -> TensorBoard
# Files about the last model of a run; `summary.json` is written last.
PREDICTIONS = 'predictions.npz'  # runs.run -> plots.recorded.predictions
MEMBERS = 'members.npz'  # runs.run -> plots.recorded.members
PERSONAL = 'personal.csv'  # runs.run -> plots.recorded.personal
PLOTS = 'plots'  # plots.draw_run
SUMMARY = 'summary.json'  # runs.directory -> read_summary
# Files of later analyses of a run.
CONFORMAL = 'conformal.json'  # analysis.prediction_sets -> its `read`
RISK = 'risk.json'  # analysis.risk -> its `read`
SITES = 'sites'  # analysis.report_files
UNCERTAINTY = 'uncertainty'  # experiments.uncertainty
SCORES = 'scores.json'  # also in sites/, uncertainty/ -> runs.groups.scores_of
SITE = 'site.json'  # analysis.personalized, in the folder of a site's model
ONLINE = 'online'  # experiments.online

# Runs of an ensemble, by number.
ENSEMBLE = 'members'  # analysis.ensembles -> analysis.model.load

OF_LAST_MODEL = (
  PREDICTIONS, MEMBERS, PERSONAL, CONFORMAL, RISK, PLOTS, SCORES, SITES,
  UNCERTAINTY,
)  # fmt: skip
# In the order of removal: a directory with flags is still a run's directory.
ALL = (
  SUMMARY, TASK, SECRET, NODES, PARTITION, METRICS, CHECKPOINT, MEMORIES,
  TRACKERS, 'wandb', 'mlruns', TENSORBOARD, ONLINE, *OF_LAST_MODEL, FLAGS,
)  # fmt: skip


def remedy(run_dir: pathlib.Path) -> str:
  """Returns the advice for a damaged file of the state of a run."""
  if run_dir.parent.name == ENSEMBLE:
    return f'delete {run_dir.parents[1]} and repeat bfl-tf ensemble'
  return (
    f'restore {TASK}, {CHECKPOINT}, {MEMORIES} and {METRICS} from one copy, or '
    f'delete {run_dir} to train again'
  )


def is_finished(run_dir: str | os.PathLike) -> bool:
  """Returns whether a directory holds a finished run."""
  return (pathlib.Path(run_dir) / SUMMARY).exists()


def read_summary(run_dir: str | os.PathLike) -> dict[str, Any]:
  """Returns `summary.json`, whose `final` holds the last scores."""
  return files.read_json(pathlib.Path(run_dir) / SUMMARY, ['rounds', 'final'])
