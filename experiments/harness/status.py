"""Tasks to run, and how many of them are finished."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import math
import pathlib
from typing import Any

from bfl_tf import run_files
from bfl_tf.runs import progress, RunSpec
from experiments.harness import cells, tables


def tasks(
  wanted: Iterable[Any],
  scale: str,
  root: pathlib.Path,
  seeds: Collection[int] | None = None,
) -> list[cells.Task]:
  """Returns the tasks of artifacts and claims, each run once."""
  every = (
    cells.Task(cell, scale, seed, root)
    for artifact in wanted
    for cell in artifact.cells
    for seed in artifact.seeds[scale]
    if seeds is None or seed in seeds
  )
  # Cells that read different predictors share a directory.
  return list({task.directory: task for task in every}.values())


def listing(items: Mapping[str, Any], scale: str, root: pathlib.Path) -> str:
  """Returns a Markdown table with a row for each artifact or claim."""
  rows = [['name', 'runs', 'finished', 'data sets', 'description']]
  for name, item in items.items():
    own = tasks([item], scale, root)
    sets = {task.cell.config(scale, 0).dataset.split(':')[-1] for task in own}
    rows.append(
      [
        name,
        f'{len(own)}',
        f'{sum(task.is_done for task in own)}',
        ', '.join(sorted(sets)),
        getattr(item, 'title', '') or item.statement,
      ]
    )
  return tables.markdown(rows)


def described(runs: Sequence[RunSpec], jobs: int) -> str:
  """Returns how many runs are left, and their time if some are finished."""
  done = [run for run in runs if run.is_done]
  left = len(runs) - len(done)
  text = f'{len(runs)} runs, {len(done)} of them finished'
  # A run with a row in a table needs no directory.
  seconds = [
    run_files.read_summary(run.directory)['train_seconds']
    for run in done
    if run_files.is_finished(run.directory)
  ]
  if not (left and seconds):
    return text
  time = progress.time_left(seconds, math.ceil(left / jobs))
  return f'{text}; about {time} of training for the others'
