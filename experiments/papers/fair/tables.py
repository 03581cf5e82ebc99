"""Tables and a figure of a comparison of all methods, from the rows of a study.

  python -m experiments.papers.fair.tables results/fair
  python -m experiments.papers.fair.tables results/fair scaffold

runs.csv and trials.csv in the directory are the tables of `bfl-tf sweep`. Each
task gets a table of scores and costs, <task>.md. selected.md has the chosen
values; bytes.png is a figure. With the name of a baseline, the
command needs no trials.csv and writes nothing. It prints the scores with tests
against this baseline.
"""

from collections.abc import Iterator, Mapping, Sequence
import csv
import math
import pathlib
from typing import Any

from matplotlib.figure import Figure
import numpy as np
import pandas

from bfl_tf import files
from bfl_tf.plots import canvas
from bfl_tf.runs import comparison, groups
from experiments import command_line

_RATE = 'client_learning_rate'
BASE = 'fedavg'
Row = Mapping[str, str]
# Number of a method, by seed.
Numbers = Mapping[str, Mapping[str, float]]
# Header of a column, factor of its unit, number of decimals.
SCORES = {
  'accuracy': ('accuracy (%)', 100, 1),
  'nll': ('NLL (nats)', 1, 3),
  'ece': ('ECE (%)', 100, 1),
  'tempered_nll': ('NLL with a temperature (nats)', 1, 3),
  'tempered_ece': ('ECE with a temperature (%)', 100, 1),
  'aurc': ('AURC', 1, 3),
  'near_entropy': ('AUROC, near, entropy', 1, 2),
  'near_epistemic': ('AUROC, near, epistemic', 1, 2),
  'far_entropy': ('AUROC, far, entropy', 1, 2),
  'far_epistemic': ('AUROC, far, epistemic', 1, 2),
  'reference_distance': ('distance to the reference', 1, 3),
  'size_0.9': ('classes per set', 1, 2),
  'worst_client': ('accuracy, worst client (%)', 100, 0),
  'personal_accuracy': ('accuracy, personal models (%)', 100, 1),
  'personal_nll': ('NLL, personal models (nats)', 1, 3),
  'personal_lowest_accuracy': ('accuracy, worst personal model (%)', 100, 0),
}
COSTS = {
  'bytes_up': ('MB up per round, all clients', 1e-6, 2),
  'bytes_down': ('MB down per round, all clients', 1e-6, 2),
  'bytes': ('MB in all rounds', 1e-6, 1),
  'bytes_of_client': ('MB kept per client', 1e-6, 2),
  'bytes_of_server': ('MB kept on the server', 1e-6, 2),
  'time': ('training time / FedAvg', 1, 1),
}
# The figure of NLL by bytes: ticks, and the NLL of a uniform prediction of ten
# classes; it omits methods with a larger one.
_TICKS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 1, 1.5, 2)
_TICKS_MB = (1, 2, 5, 10, 20, 50, 100, 200, 400, 800)
UNIFORM = 2.3
_TESTED = (
  'accuracy', 'nll', 'ece', 'reference_distance', 'tempered_nll',
  'tempered_ece', 'personal_accuracy', 'personal_nll',
)  # fmt: skip
# Losses whose differences from the baseline are shown.
_LOSSES = ('nll', 'tempered_nll', 'personal_nll')


def main(paths: Sequence[str]) -> None:
  """Writes the tables and the figure, and prints the tables."""
  if not 1 <= len(paths) <= 2:
    command_line.fail('name the directory of runs.csv and trials.csv.')
  folder, base = pathlib.Path(paths[0]), [*paths, BASE][1]
  by_task: dict[str, list[dict[str, str]]] = {}
  for row in _rows(folder / 'runs.csv'):
    if row.get('ensemble'):
      row['method'] += f', {row["ensemble"]} runs'
    by_task.setdefault(row['task'], []).append(row)
  if len(paths) == 2:
    for task, rows in by_task.items():
      print(f'{task}:', *table(rows, SCORES, base), '', sep='\n')
    return
  for task, rows in by_task.items():
    base_rows = {row['seed']: row for row in rows if row['method'] == BASE}
    for row in rows:
      of_base = base_rows.get(row['seed'], {}).get('train_seconds')
      if row['train_seconds'] and of_base:
        row['time'] = str(float(row['train_seconds']) / float(of_base))
    lines = [*table(rows, SCORES), '', *table(rows, COSTS)]
    files.write_text(folder / f'{task}.md', '\n'.join(lines) + '\n')
    print(f'{task}:', *lines, '', sep='\n')
  trials = _rows(folder / 'trials.csv')
  lines = [*_selected(trials)]
  files.write_text(folder / 'selected.md', '\n'.join(lines) + '\n')
  # Tasks of a few methods, such as centralized training, are not ranked.
  names = {task: {r['method'] for r in rows} for task, rows in by_task.items()}
  number = len(set().union(*names.values()))
  by_task = {k: r for k, r in by_task.items() if len(names[k]) > number / 2}
  every = [row for rows in by_task.values() for row in rows]
  print(*overview(by_task), '', *agreements(every), sep='\n')
  draw_bytes(by_task).savefig(folder / 'bytes.png')


def _rows(path) -> list[dict[str, str]]:
  with path.open(newline='', encoding='utf-8') as file:
    return list(csv.DictReader(file))


def _selected(rows) -> Iterator[str]:
  """Yields the lines of a table of the best trial of each method and task."""
  factor = 'posterior_factor'
  has_factor = any(row.get(factor) for row in rows)
  headers = [
    'task', 'method', 'values', 'NLL, validation examples',
    'learning rate, among those tried',
    'trials better than a uniform prediction',
    *['factor on the standard deviations'] * has_factor,
  ]  # fmt: skip
  yield f'| {" | ".join(headers)} |'
  yield '|' + '---|' * len(headers)
  for best in (row for row in rows if row['chosen_by']):
    of = [row for row in rows if row['setting'] == best['setting']]
    losses = [float(row[best['chosen_by']] or math.inf) for row in (best, *of)]
    good = sum(loss < UNIFORM for loss in losses[1:])
    cells = [
      best['task'], best['method'], best['values'], f'{losses[0]:.3f}',
      _place(best, of), str(good), *[best.get(factor, '')] * has_factor,
    ]  # fmt: skip
    yield f'| {" | ".join(cells)} |'


def _place(best, trials) -> str:
  """Returns the place of a rate among those with the same optimizer."""
  optimizer, rate = _chosen(best)
  rates = [own for name, own in map(_chosen, trials) if name == optimizer]
  return {min(rates): 'lowest', max(rates): 'highest'}.get(rate, '')


def _chosen(row) -> tuple[str, float]:
  pairs = dict(word.split('=') for word in row['values'].split(','))
  rate = float(pairs.get(_RATE, math.nan))
  return pairs.get('client_optimizer', ''), rate


def numbers(rows: Sequence[Row], column: str) -> Numbers:
  """Returns the numbers of a column, NaN for a failed run."""
  found: dict[str, dict[str, float]] = {}
  for row in rows:
    text = row.get(column)
    value = float(text) if text else math.nan
    found.setdefault(row['method'], {})[row['seed']] = value
  return found


def table(
  rows: Sequence[Row], columns: Mapping[str, tuple], base: str = BASE
) -> Iterator[str]:
  """Yields the lines of a table, one row per method, the lowest NLL first."""
  shown = [name for name in columns if any(row.get(name) for row in rows)]
  of_base = [row for row in rows if row['method'] == base]
  more = [
    name
    for name in _LOSSES
    if name in shown and any(row.get(name) for row in of_base)
  ]
  headers = [columns[name][0] for name in shown]
  headers += [f'{columns[name][0]}, minus {base}' for name in more]
  yield from _lines(headers, _cells(rows, columns, shown, base, more))


def overview(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
  """Yields the lines of a table of NLL by task, the best mean rank first.

  The NLL with a temperature comes second, if it is known. The rank by the first
  is the mean over all pairs of a task and a seed. A method without a row for
  one of them has no rank.
  """
  every = losses([row for own in rows.values() for row in own])
  ranks = every.rank().mean(axis=1)
  names = [
    name
    for name in ('nll', 'tempered_nll')
    if any(row.get(name) for own in rows.values() for row in own)
  ]
  columns = {task: _cells(own, SCORES, names) for task, own in rows.items()}
  methods = {method: 0 for column in columns.values() for method in column}
  cells = {
    method: [
      f'{ranks[method]:.1f}' if method in ranks else '-',
      *(
        '; '.join(column[method]) if method in column else '-'
        for column in columns.values()
      ),
    ]
    for method in sorted(methods, key=lambda each: ranks.get(each, math.inf))
  }
  yield from _lines(['mean rank', *rows], cells)


def _lines(headers, cells):
  headers = ['method', *headers]
  yield f'| {" | ".join(headers)} |'
  yield '|' + '---|' * len(headers)
  for method, row in cells.items():
    yield f'| {method} | {" | ".join(row)} |'


def _cells(rows, columns, shown, base=BASE, more=()) -> dict[str, list[str]]:
  """Returns the cells of each method, the lowest NLL first.

  Tested scores have a standard error. An asterisk marks a significant
  difference from the baseline, as in `bfl-tf compare`. The last cells are the
  mean paired differences of the scores `more` from the baseline.
  """
  by_method: dict[str, groups.Group] = {}
  for row in rows:
    group = by_method.setdefault(
      row['method'], groups.Group({'method': row['method']})
    )
    group.scores[int(row['seed'])] = {
      name: float(row[name]) for name in ('nll', *shown) if row.get(name)
    }
  base = base if base in by_method else ''
  found: dict[str, dict[str, dict[str, Any]]] = {}
  for line in comparison.rows(by_method, ['nll', *shown], base, ['method']):
    found.setdefault(line['setting'], {})[line['score']] = line
  return {
    method: [_cell(found[method][name], columns[name]) for name in shown]
    + [_difference(found[method][name]) for name in more]
    for method in sorted(found, key=lambda name: _loss(found[name]['nll']))
  }


def _loss(line) -> float:
  return line['mean'] if line['n'] == line['seeds'] else math.inf


def _cell(line, column) -> str:
  _, factor, digits = column
  if line['mean'] is None:
    return '-'
  text = f'{factor * line["mean"]:.{digits}f}'
  if line['score'] not in _TESTED:
    return text
  if line['standard_error'] is not None:
    text += f' ± {factor * line["standard_error"]:.{digits}f}'
  missing = line['seeds'] - line['n']
  text += f' ({missing} failed)' if missing else ''
  return text + '*' * bool(line.get('significant'))


def _difference(line) -> str:
  mean, error = line['difference'], line['difference_standard_error']
  if mean is None:
    return '-'
  return f'{mean:+.3f}' + (f' ± {error:.3f}' if error is not None else '')


def losses(rows: Sequence[Row]) -> pandas.DataFrame:
  """Returns the NLL of each method for each pair (task, seed), a column.

  A method without a row for one of the pairs is left out. The NLL of a failed
  run is infinite.
  """
  table = pandas.DataFrame(rows)[['method', 'task', 'seed', 'nll']]
  table['nll'] = pandas.to_numeric(table['nll']).fillna(math.inf)
  return table.pivot(
    index='method', columns=['task', 'seed'], values='nll'
  ).dropna()


def agreement(found: pandas.DataFrame) -> float:
  """Returns Kendall's W of rankings by each column: 1 if they are equal."""
  n, m = found.shape
  return 12 * float(np.var(found.rank().sum(axis=1))) / (m**2 * (n**2 - 1))


def agreements(rows: Sequence[Row]) -> Iterator[str]:
  """Yields Kendall's W over the tasks of a seed, and over the seeds of a task.

  Methods with a failed run are left out. The tasks of a seed share examples;
  the seeds of a task have independent partitions.
  """
  every = losses(rows)
  every = every[np.isfinite(every).all(axis=1)]
  if len(every) < 2:
    return
  for name, level in (('tasks of a seed', 'seed'), ('seeds of a task', 'task')):
    of = [agreement(part.T) for _, part in every.T.groupby(level=level)]
    values = ', '.join(f'{value:.2f}' for value in of)
    yield f"Kendall's W over the {name}, {len(every)} methods: {values}"


def draw_bytes(rows: Mapping[str, Sequence[Row]]) -> Figure:
  """Draws NLL by bytes in all rounds, a panel per task.

  Labels: FedAvg, and each method with a lower NLL than all methods with as many
  bytes or fewer. The number of bytes is the largest over the seeds, because
  updates of clients whose training diverges are not counted.
  """
  figure = canvas.new_figure((7, 3.2 * len(rows)))
  panels = figure.subplots(len(rows), squeeze=False)[:, 0]
  for axes, (task, own) in zip(panels, rows.items()):
    found = pandas.DataFrame(
      {
        'nll': pandas.DataFrame(numbers(own, 'nll')).mean(),
        'MB': 1e-6 * pandas.DataFrame(numbers(own, 'bytes')).max(),
      }
    )
    found = found[found['nll'] < UNIFORM].sort_values(['MB', 'nll'])
    axes.plot(found['MB'], found['nll'], 'o', ms=3, color=canvas.GREY)
    best = found['nll'].cummin()
    is_best = (found['nll'] == best) & ~best.duplicated()
    for method, (nll, size) in found.iterrows():
      if method == BASE or is_best[method]:
        color, side = canvas.BLUE, 'left'
        if method == BASE:
          color, side = canvas.VERMILION, 'right'
        axes.plot(size, nll, 'o', ms=4, color=color)
        axes.annotate(f' {method} ', (size, nll), ha=side, va='top', fontsize=8)
    axes.set_xscale('log')
    axes.set_yscale('log')
    axes.margins(x=0.2, y=0.1)
    for axis, ticks in ((axes.yaxis, _TICKS), (axes.xaxis, _TICKS_MB)):
      least, most = axis.get_view_interval()
      ticks = [each for each in ticks if least <= each <= most]
      axis.set_ticks(ticks, map(str, ticks))
      axis.set_ticks([], minor=True)
    canvas.finish(axes, task, 'MB in all rounds, up and down', 'NLL (nats)')
  return figure


if __name__ == '__main__':
  command_line.main(main)
