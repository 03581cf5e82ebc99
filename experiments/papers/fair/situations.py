"""Methods with a clearly lower NLL than FedAvg in all settings of a situation.

  python -m experiments.papers.fair.situations results

The rows are those of results/fair and results/imagenet.
"""

from collections.abc import Iterator, Sequence
import csv
import pathlib

import pandas

from experiments import command_line
from experiments.papers.fair import tables

# The margin of our claims, in nats.
_MARGIN = 0.01
_SITUATIONS = {
  'few classes per client, several rounds': (
    'fair/dirichlet', 'imagenet/rounds', 'imagenet/rounds_mlp',
    'imagenet/many',
  ),
  'few classes per client, one round': (
    'imagenet/one_round', 'imagenet/one_round_mlp',
  ),
  'IID data': (
    'fair/iid', 'imagenet/one_round_iid', 'imagenet/rounds_iid',
  ),
}  # fmt: skip


def main(paths: Sequence[str]) -> None:
  """Prints a table for each situation."""
  if len(paths) != 1:
    command_line.fail('name the directory of fair and imagenet.')
  rows = [*_rows(pathlib.Path(paths[0]))]
  for situation, settings in _SITUATIONS.items():
    losses = tables.losses([row for row in rows if row['task'] in settings])
    print(f'{situation}, {len(losses)} methods:', *table(losses), '', sep='\n')


def _rows(folder) -> Iterator[dict[str, str]]:
  """Yields the rows of single runs, with the benchmark in the task's name."""
  for name in ('fair', 'imagenet'):
    text = (folder / name / 'runs.csv').read_text(encoding='utf-8')
    for row in csv.DictReader(text.splitlines()):
      if not row.get('ensemble'):
        yield {**row, 'task': f'{name}/{row["task"]}'}


def table(losses: pandas.DataFrame) -> Iterator[str]:
  """Yields the lines of a table of the methods, the best mean rank first.

  It has the methods with a lower mean NLL in all settings, and FedAvg.
  """
  yield (
    '| method | mean rank | settings with a mean NLL that is lower by '
    f'{_MARGIN} | seeds with a lower NLL |'
  )
  yield '|---|---|---|---|'
  ranks = losses.rank().mean(axis=1).sort_values()
  means = losses.T.groupby(level='task').mean().T
  gains = means.loc[tables.BASE] - means
  settings = (gains >= _MARGIN).sum(axis=1)
  seeds = losses.lt(losses.loc[tables.BASE]).sum(axis=1)
  for name, rank in ranks.items():
    if gains.loc[name].min() > 0 or name == tables.BASE:
      yield (
        f'| {name} | {rank:.1f} | {settings[name]} of {means.shape[1]} | '
        f'{seeds[name]} of {losses.shape[1]} |'
      )


if __name__ == '__main__':
  command_line.main(main)
