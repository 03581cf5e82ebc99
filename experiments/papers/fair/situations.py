"""Methods with a clearly lower NLL than FedAvg in all settings of a situation.

  python -m experiments.papers.fair.situations results

The rows are those of results/fair and results/imagenet. FedAvg on Fashion-MNIST
is `fedavg_sgd`, whose NLL is lower than that with Adam.
"""

from collections.abc import Iterator, Sequence
import pathlib

import pandas

from experiments import command_line
from experiments.papers.fair import tables

# The margin of our claims, in nats.
_MARGIN = 0.01
_SITUATIONS = {
  'few classes per client, several rounds': (
    'fair/dirichlet', 'fair/many', 'imagenet/rounds', 'imagenet/rounds_mlp',
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
  losses = read(pathlib.Path(paths[0]))
  for situation, settings in _SITUATIONS.items():
    of = losses[[key for key in losses if key[0] in settings]].dropna()
    print(f'{situation}, {len(of)} methods:', *table(of), '', sep='\n')


def read(folder: pathlib.Path) -> pandas.DataFrame:
  """Returns the NLL of each method for each pair (setting, seed), a column."""
  found = []
  for name in ('fair', 'imagenet'):
    for row in tables.read_rows(folder / name / 'runs.csv'):
      is_replaced = name == 'fair' and row['method'] == tables.BASE
      if is_replaced or row.get('ensemble'):
        continue
      row['method'] = row['method'].replace('fedavg_sgd', tables.BASE)
      found.append({**row, 'task': f'{name}/{row["task"]}'})
  return tables.losses(found, complete=False)


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
