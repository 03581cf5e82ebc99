"""The LaTeX table of a comparison, with booktabs, and graphicx if it is wide.

A setting is a row, and the scores in one task are a group of columns. If there
are too many columns, each task has a table of its own below the others.
Fractions are printed in percent. The best value of each task is bold, with all
values that do not differ significantly from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bfl_tf import metrics
from bfl_tf.config import catalog

_SPECIAL = {
  '\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '_': r'\_', '#': r'\#',
  '$': r'\$', '{': r'\{', '}': r'\}', '±': r'$\pm$', '~': r'\textasciitilde{}',
  '^': r'\textasciicircum{}',
}  # fmt: skip

_MOST_COLUMNS = 4
_SHORT = {
  'nll': 'NLL (nats)', 'ece': 'ECE', 'brier': 'Brier score',
  'lowest_accuracy': 'lowest accuracy',
}  # fmt: skip


def tex(
  lines: Sequence[Mapping[str, Any]], keys: Sequence[str], caption: str
) -> str:
  """Returns the table.

  Args:
    keys: Flags that distinguish settings; empty for the column `setting`.
  """
  of_task = [key for key in keys if key in catalog.of_task()]
  of_row = [key for key in keys if key not in of_task]

  def row_of(line):
    if not keys:
      return (line['setting'],)
    return tuple(line[key] or '-' for key in of_row) or ('all',)

  def task_of(line):
    return tuple((key, line[key]) for key in of_task if line[key])

  scores = list(dict.fromkeys(line['score'] for line in lines))
  tasks = list(dict.fromkeys(map(task_of, lines)))
  at = {(row_of(line), task_of(line), line['score']): line for line in lines}
  stacks = [tasks]
  if len(tasks) * len(scores) > _MOST_COLUMNS:
    stacks = [[task] for task in tasks]
  names = [_escaped(key.replace('_', ' ')) for key in of_row] or ['setting']
  rows = dict.fromkeys(map(row_of, lines))
  found = [
    '% \\usepackage{booktabs,graphicx}',
    r'\begin{table}',
    r'\centering',
    rf'\caption{{{_escaped(caption)}}}',
    r'\label{tab:compared}',
  ]
  for some in stacks:
    columns = [(task, score) for task in some for score in scores]
    heads = [*names, *(_escaped(_label(score)) for _, score in columns)]
    # A wider table is shrunk to the width of the text.
    is_wide = len(columns) > _MOST_COLUMNS
    found += [
      *[r'\resizebox{\linewidth}{!}{%'] * is_wide,
      rf'\begin{{tabular}}{{{"l" * len(names)}{"r" * len(columns)}}}',
      r'\toprule',
      *_groups(some if len(tasks) > 1 else [], len(names), len(scores)),
      *_rows([heads]),
      r'\midrule',
      *_rows(
        [*map(_escaped, row), *(_cell(at.get((row, *c))) for c in columns)]
        for row in rows
      ),
      r'\bottomrule',
      r'\end{tabular}' + '}' * is_wide,
      r'\par\medskip',
    ]
  return '\n'.join([*found[:-1], r'\end{table}', ''])


def _rows(rows):
  return [' & '.join(row) + r' \\' for row in rows]


def _groups(tasks, first, width):
  """Returns the heading of the groups of columns."""
  if not tasks:
    return []
  texts = [', '.join(f'{key}: {value}' for key, value in t) for t in tasks]
  cells = [rf'\multicolumn{{{width}}}{{c}}{{{_escaped(t)}}}' for t in texts]
  starts = [first + 1 + width * place for place in range(len(tasks))]
  rules = [rf'\cmidrule(lr){{{s}-{s + width - 1}}}' for s in starts]
  return [*_rows([[''] * first + cells]), ''.join(rules)]


def _label(score) -> str:
  own = score.removeprefix('personal_')
  found = metrics.find(own)
  label = _SHORT.get(own) or (found.label if found else own.replace('_', ' '))
  label = label if own == score else f'personal {label}'
  return f'{label} (%)' if _is_fraction(score) else label


def _is_fraction(score) -> bool:
  found = metrics.find(score)
  return found is not None and found.unit.startswith('fraction')


def _cell(line) -> str:
  if line is None or line['mean'] is None:
    return '--'
  factor, digits = (100, 1) if _is_fraction(line['score']) else (1, 3)
  text = f'{factor * line["mean"]:.{digits}f}'
  text = rf'\textbf{{{text}}}' if line.get('best') else text
  if line['standard_error'] is not None:
    text += rf' $\pm$ {factor * line["standard_error"]:.{digits}f}'
  text += '$^*$' if line.get('significant') else ''
  text += '$^=$' if line.get('equivalent') else ''
  return text + (f' ({line["n"]})' if line['n'] < line['seeds'] else '')


def _escaped(text) -> str:
  return ''.join(_SPECIAL.get(letter, letter) for letter in text)
