"""What a figure says of itself: a file lies about, and its folder is forgotten.

Figure 13 of Chen & Chao 2021: accuracy by round
digits, step split, 10 clients; laptop scale; seeds 0, 1, 2: mean, and a band
from the lowest to the highest
"""

from collections.abc import Sequence
import re
import textwrap
from typing import Any

from matplotlib import figure as figure_lib

from experiments.harness import cells

BAND = 'mean, and a band from the lowest to the highest'
_SMOKE = 'A SMOKE TEST: it shows that the code runs, and nothing else.'
_PER_INCH = 15  # Characters, at the size below.
_SIZE = 9


def add(
  drawn: figure_lib.Figure,
  figure: Any,
  tasks: Sequence[cells.Task],
  of_seeds: str = BAND,
) -> None:
  """Writes a title above a figure.

  Args:
    drawn: to write on.
    figure: of `figures`, with `paper`, `name`, `title`.
    tasks: whose runs are drawn, of one scale.
    of_seeds: what is drawn of several.
  """
  width = int(_PER_INCH * drawn.get_figwidth())
  paragraphs = [
    f'{_origin(figure)}: {figure.title}',
    _drawn_from(tasks, of_seeds),
  ]
  lines = [line for text in paragraphs for line in textwrap.wrap(text, width)]
  is_smoke = tasks[0].scale == 'smoke'
  if is_smoke:
    lines.append(_SMOKE)
  drawn.suptitle(
    '\n'.join(lines),
    fontsize=_SIZE,
    color='#B00020' if is_smoke else 'black',
  )


def _origin(figure) -> str:
  found = re.fullmatch(r'(figure|appendix_)(\w+)', figure.name)
  if not figure.paper.citation or not found:
    return f'Ours, {figure.paper.name}/{figure.name}'
  kind, number = found.groups()
  what = 'Figure' if kind == 'figure' else 'For appendix'
  return f'{what} {number.upper()} of {figure.paper.citation}'


def _drawn_from(tasks, of_seeds) -> str:
  configs = [task.config for task in tasks]
  data = _joined(_data(config) for config in configs)
  splits = _joined(_short(config.partition) for config in configs)
  clients = _joined(str(config.num_clients) for config in configs)
  seeds = sorted({task.seed for task in tasks})
  several = f': {of_seeds}'
  return (
    f'{data}, {splits} split, {clients} client{"s" * (clients != "1")}; '
    f'{tasks[0].scale} scale; seed{"s" * (len(seeds) > 1)} '
    f'{", ".join(map(str, seeds))}{several * (len(seeds) > 1)}'
  )


def _data(config) -> str:
  cut = config.train_split.removeprefix('train')
  return f'{_short(config.dataset)}{cut}'


def _short(name) -> str:
  return name.rpartition(':')[2]


def _joined(texts) -> str:
  return ' or '.join(dict.fromkeys(texts))
