"""Compares finished runs: a table and figures, as a paper takes them.

  bfl-tf compare runs/nwa runs/lp --output=runs/compared
  bfl-tf compare runs/*/seed? --baseline=pooling=nwa --scores=accuracy,nll

Runs whose flags differ in nothing but the seed are one setting, named by what
differs in its flags. Exit code 2: a directory holds no finished run of this
version, and nothing was written.
"""

from collections.abc import Iterator, Mapping, Sequence
import os
import pathlib

from absl import flags
from matplotlib import figure as figure_lib

from bfl_tf import files, run_files
from bfl_tf.config import registry
from bfl_tf.plots import comparison
from bfl_tf.runs import groups as groups_lib
from bfl_tf.runs import tables
from experiments import flags as flags_lib
from experiments.harness import comparison as comparison_lib
from experiments.harness import significance
from experiments.harness import tables as tables_lib

_OUTPUT = flags.DEFINE_string(
  'output',
  None,
  'Where the table and the figures go; of compare, only printed if empty.',
)
_DRAWN = {
  'learning_curves': comparison.learning_curves,
  'reliability': comparison.reliability,
  'risk_coverage': comparison.risk_coverage,
}
_SCORES = flags.DEFINE_list(
  'scores', [], 'Columns of the table; all that every run has if empty.'
)
_BASELINE = flags.DEFINE_string(
  'baseline',
  '',
  'What settings are tested against, over the seeds of both: a name, or some '
  'flags of one: pooling=nwa.',
)
_NAMES = flags.DEFINE_list(
  'names',
  [],
  "Names of settings in table and figures: 'pooling=nwa:NWA'. A setting "
  'without a name is shown by its flags.',
)
_FIGURES = flags.DEFINE_list(
  'figures', [*_DRAWN], f'Of {", ".join(_DRAWN)}, those to draw.'
)


def main(paths: Sequence[str]) -> None:
  """Prints the table; writes it and the figures."""
  if len(paths) < 2:
    flags_lib.fail('name two finished runs or more: compare DIR DIR ...')
  report(paths)


def report(
  paths: Sequence[str | os.PathLike], folder: pathlib.Path | None = None
) -> None:
  """Prints the table; writes it and the figures to --output, or a folder.

  Raises:
    ValueError: as of `groups.grouped` and `compared.rows`, or of a flag.
  """
  groups = check(groups_lib.grouped(paths), folder)
  lines = comparison_lib.rows(groups, _SCORES.value, _BASELINE.value)
  keys = groups_lib.differing([*groups.values()])
  table = comparison_lib.cells(lines, [] if _NAMES.value else keys)
  folder = pathlib.Path(_OUTPUT.value) if _OUTPUT.value else folder
  figures = dict(_drawn(groups)) if folder else {}
  text = f'{tables_lib.markdown(table)}\n{_said()}'
  print(text)
  if folder:
    folder.mkdir(parents=True, exist_ok=True)
    tables.write_csv(folder / 'compared.csv', lines)
    files.write_text(folder / 'compared.md', f'{text}\n')
    tex = f'% {_said()}\n{tables_lib.tex(table)}'
    files.write_text(folder / 'compared.tex', tex)
    for name, figure in figures.items():
      for kind in ('png', 'pdf'):
        figure.savefig(folder / f'{name}.{kind}')
    print(f'table and figures in {folder}')


def check(
  groups: Sequence[groups_lib.Group], folder: pathlib.Path | None = None
) -> dict[str, groups_lib.Group]:
  """Returns the groups by name; a ValueError names a flag that is wrong."""
  for name in _FIGURES.value:
    registry.check_choice('figures', name, _DRAWN)
  folder = pathlib.Path(_OUTPUT.value) if _OUTPUT.value else folder
  if folder and (folder / run_files.FLAGS).exists():
    raise ValueError(f'{folder} holds a run: choose another directory.')
  groups = comparison_lib.named(groups, _NAMES.value)
  comparison_lib.baselines(groups, _BASELINE.value)
  return groups


def _said():
  text = 'Mean ± standard error over seeds.'
  if _BASELINE.value:
    text += (
      f" * differs from {_BASELINE.value}: Student's test on the differences "
      f'over seeds, two-sided at {significance.LEVEL:.0%}, corrected by Holm '
      'over the settings.'
    )
  return text


def _drawn(
  groups: Mapping[str, groups_lib.Group],
) -> Iterator[tuple[str, figure_lib.Figure]]:
  """Yields figures by name; of what a run lacks it is not in them."""
  directories = {name: group.directories() for name, group in groups.items()}
  whole: dict[str, list[pathlib.Path]] = {}
  for name, runs in directories.items():
    for run in runs:
      if (run / run_files.PREDICTIONS).exists():
        whole.setdefault(name, []).append(run)
      else:
        print(f'{run} kept no predictions: it is not in every figure')
  for name in _FIGURES.value:
    shown = directories if name == 'learning_curves' else whole
    if shown:
      yield name, _DRAWN[name](shown)


if __name__ == '__main__':
  flags_lib.main(main)
