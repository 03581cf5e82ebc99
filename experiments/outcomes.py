"""Files of a run that must be bit-for-bit identical however it was run."""

import csv
import os
import pathlib
import re
from typing import Any

import numpy as np

from bfl_tf import run_files


def of(path: str | os.PathLike) -> tuple[Any, ...]:
  """Returns the results of a run, without times and memory."""
  path = pathlib.Path(path)
  with open(path / run_files.METRICS, newline='', encoding='utf-8') as file:
    header, *rows = csv.reader(file)
  machine = re.compile(r'.*_seconds|peak_memory.*')
  kept = [i for i, name in enumerate(header) if not machine.fullmatch(name)]
  with np.load(path / run_files.PREDICTIONS) as archive:
    arrays = {name: archive[name].tobytes() for name in archive.files}
  summary = run_files.read_summary(path)
  table = [[row[i] for i in kept] for row in [header, *rows]]
  return table, arrays, summary['final'], summary['rounds']


def difference(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> str:
  """Returns the files in which two outcomes differ; empty if they are equal."""
  names = ('metrics.csv', 'predictions.npz', 'summary.json', 'summary.json')
  differ = [n for n, a, b in zip(names, found, wanted) if a != b]
  return ', '.join(dict.fromkeys(differ))
