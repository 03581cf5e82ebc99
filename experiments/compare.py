"""Compare finished runs in a table and figures.

  bfl-tf compare runs/nwa runs/lp --output=runs/compared
  bfl-tf compare runs/*/seed? --baseline=pooling=nwa --scores=accuracy,nll

Runs whose flags differ only in the seed are one setting. A setting is named by
the flags that differ between settings. Exit code 2: a directory holds no
finished run of this version, and nothing was written.
"""

from collections.abc import Iterator, Mapping, Sequence
import math
import pathlib
import re

from absl import flags
from matplotlib.figure import Figure

from bfl_tf import files, metrics, run_files
from bfl_tf.declare import registry, user_code
from bfl_tf.plots import comparison, recorded
from bfl_tf.runs import comparison as comparison_lib
from bfl_tf.runs import groups as groups_lib
from bfl_tf.runs import significance, tables
from experiments import command_line
from experiments.harness import paper_table
from experiments.harness import tables as tables_lib

_OUTPUT = flags.DEFINE_string(
  'output',
  None,
  'Directory of the table (compared.csv, compared.md, and compared.tex for '
  'LaTeX) and of the figures; empty: bfl-tf compare only prints the table, '
  'bfl-tf sweep uses its --output_dir.',
)
_DRAWN = {
  'learning_curves': comparison.learning_curves,
  'reliability': comparison.reliability,
  'risk_coverage': comparison.risk_coverage,
  'personal_scores': comparison.personal_scores,
}
_SCORES = flags.DEFINE_list(
  'scores',
  [],
  'Scores in the table; empty: accuracy, NLL and expected calibration error.',
)
_BASELINE = flags.DEFINE_string(
  'baseline',
  '',
  'Baseline of the significance tests: the name of a setting, or some of its '
  'flags, such as pooling=nwa.',
)
_MARGIN = flags.DEFINE_list(
  'margin',
  [],
  'Largest difference from --baseline without importance, by score, such as '
  'accuracy:0.005,nll:0.01: two one-sided tests show which settings are '
  'equivalent to the baseline.',
)
_NAMES = flags.DEFINE_list(
  'names',
  [],
  'Names of settings in the table and figures, separated by commas, such as '
  'pooling=nwa:Average,pooling=lp:Mixture. A name follows a colon, after flags '
  'that only this setting has, separated by spaces. A setting without a name '
  'is shown by its flags. A flag of several settings, such as '
  'method=fedavg:FedAvg, is renamed in all of them.',
)
_FIGURES = flags.DEFINE_list(
  'figures', [*_DRAWN], f'Figures to draw. Some of: {", ".join(_DRAWN)}.'
)


def main(paths: Sequence[str]) -> None:
  """Prints the table; writes it and the figures."""
  if len(paths) < 2:
    more = ''
    if paths and [*pathlib.Path(paths[0]).glob('*/seed*')]:
      more = f' {paths[0]} is a study: compare {paths[0]}/*/seed*'
    command_line.fail(
      'compare needs at least two finished runs: '
      f'bfl-tf compare DIR DIR ...{more}'
    )
  report(groups_lib.grouped(paths), output())


def output(default: pathlib.Path | None = None) -> pathlib.Path | None:
  """Returns the folder of --output, or the default."""
  return pathlib.Path(_OUTPUT.value) if _OUTPUT.value else default


def report(
  found: Sequence[groups_lib.Group],
  folder: pathlib.Path | None,
  more: Sequence[str] = (),
) -> None:
  """Prints the table; writes it and the figures.

  Args:
    more: Flags of a grid, which are columns in place of those that differ.
  """
  groups, baseline = check(found, folder, more)
  lines = comparison_lib.rows(groups, _SCORES.value, baseline, more, _margins())
  shown = list(more) or groups_lib.differing([*groups.values()])
  if len(comparison_lib.labels(found, _NAMES.value)) < len(_NAMES.value):
    shown = []  # Some settings have names.
  table = comparison_lib.cells(lines, shown)
  figures = dict(_drawn(groups)) if folder else {}
  is_tested = any(line.get('p_value') is not None for line in lines)
  caption = _caption(groups, is_tested, baseline)
  failures = {line['setting']: line.get('failure') for line in lines}
  notes = [
    f'- A run of {name} failed: {why}' for name, why in failures.items() if why
  ]
  end = '\n'.join([caption, *notes])
  for part in tables_lib.narrow(table, table[0].index('seeds') + 1):
    print(tables_lib.markdown(part))
  print(end)
  if folder:
    folder.mkdir(parents=True, exist_ok=True)
    tables.write_csv(folder / 'compared.csv', lines)
    text = f'{tables_lib.markdown(table)}\n{end}\n'
    files.write_text(folder / 'compared.md', text)
    caption += (
      ' Bold: the best value of a task, and those that do not differ from it '
      "significantly: Student's paired test, corrected by Holm over the "
      'settings of the task.'
    )
    tex = paper_table.tex(lines, shown, caption)
    files.write_text(folder / 'compared.tex', tex)
    for name in _DRAWN:  # Older figures may show other settings.
      for old in folder.glob(f'{name}*.p[nd][gf]'):
        old.unlink()
    for name, figure in figures.items():
      for kind in ('png', 'pdf'):
        figure.savefig(folder / f'{name}.{kind}')
    print(f'table and {len(figures)} figures in {folder}')


def check(
  groups: Sequence[groups_lib.Group],
  folder: pathlib.Path | None,
  more: Sequence[str] = (),
) -> tuple[dict[str, groups_lib.Group], str]:
  """Returns the groups by name, and the baseline in their flags.

  Raises:
    ValueError: A flag is wrong.
  """
  for name in _FIGURES.value:
    registry.check_choice('figures', name, _DRAWN)
  if folder and (folder / run_files.FLAGS).exists():
    raise ValueError(f'{folder} holds a run: choose another directory.')
  labels = comparison_lib.labels(groups, _NAMES.value)
  named = comparison_lib.named(groups, _NAMES.value, more)
  baseline = _BASELINE.value
  if baseline not in ('', *named) and '=' not in baseline:
    baseline = f'method={baseline}'
  for flag, label in labels.items():
    key = flag.partition('=')[0]
    words = baseline.split()
    baseline = ' '.join(f'{key}={label}' if w == flag else w for w in words)
  comparison_lib.baselines(named, baseline, more)
  _margins()
  return named, baseline


def _margins() -> dict[str, float]:
  """Returns the margins of --margin, by score."""
  found = {}
  for text in _MARGIN.value:
    score, _, number = text.partition(':')
    margin = user_code.attempt(float, number)
    is_margin = isinstance(margin, float) and 0 < margin < math.inf
    if not (is_margin and metrics.find(score)):
      raise ValueError(
        f'--margin={text} must be SCORE:NUMBER, such as accuracy:0.005.'
      )
    found[score] = margin
  if found and not _BASELINE.value:
    raise ValueError('--margin needs --baseline.')
  return found


def _caption(groups, is_tested, baseline):
  text = 'One seed per setting.'
  most = max(len(group.scores) for group in groups.values())
  if most > 1:
    text = f'Mean ± standard error over {most} seeds.'
  if baseline and not is_tested:
    text += ' There is no test: it needs two seeds that settings share.'
  elif baseline:
    text += (
      f' * differs from {baseline} on the same task: '
      "Student's test on the differences over seeds, two-sided at "
      f'{significance.LEVEL:.0%}, corrected by Holm over the settings with the '
      'same baseline.'
    )
    if any('ensemble' in group.settings for group in groups.values()):
      text += ' Ensembles are compared with the ensemble of the baseline.'
    if _MARGIN.value:
      text += (
        f' = is equivalent to it: two one-sided tests with the margins '
        f'{", ".join(_MARGIN.value)}, corrected likewise.'
      )
  return text


def _drawn(
  groups: Mapping[str, groups_lib.Group],
) -> Iterator[tuple[str, Figure]]:
  """Yields figures by name; omits runs without the file of a figure."""
  needs = {
    'learning_curves': lambda run: True,
    'personal_scores': lambda run: (run / run_files.PERSONAL).exists(),
  }
  for group in groups.values():
    for run in group.directories():
      if not (run / run_files.PREDICTIONS).exists():
        print(f'{run} has no predictions: some figures omit it')
  for name in _FIGURES.value:
    has_data = needs.get(name, _has_classes)
    shown = {
      label: runs
      for label, group in groups.items()
      if (runs := [run for run in group.directories() if has_data(run)])
    }
    if shown:
      for end, some in comparison.facets(shown).items():
        yield name + re.sub(r'[^\w.=-]+', '_', end), _DRAWN[name](some)


def _has_classes(run):
  """Returns whether a run has predictions of classes."""
  path = run / run_files.PREDICTIONS
  return path.exists() and not recorded.is_numeric(run)


if __name__ == '__main__':
  command_line.main(main)
