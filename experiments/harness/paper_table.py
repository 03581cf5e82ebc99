"""The LaTeX table of a comparison, a row per setting, for booktabs.

Fractions are printed in percent. The best value of each task is bold, with all
values that do not differ significantly from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bfl_tf import metrics

_SPECIAL = str.maketrans(
  {
    '\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '_': r'\_', '#': r'\#',
    '$': r'\$', '{': r'\{', '}': r'\}', '±': r'$\pm$',
    '~': r'\textasciitilde{}', '^': r'\textasciicircum{}',
  }
)  # fmt: skip


def tex(
  lines: Sequence[Mapping[str, Any]], keys: Sequence[str], caption: str
) -> str:
  """Returns the table.

  Args:
    keys: Flags that distinguish settings; empty for the column `setting`.
  """
  names = list(keys) or ['setting']
  scores = list(dict.fromkeys(line['score'] for line in lines))
  rows: dict[str, list[str]] = {}
  for line in lines:
    first = [(line[name] or '-').translate(_SPECIAL) for name in names]
    rows.setdefault(line['setting'], first).append(_cell(line))
  heads = [name.replace('_', ' ').translate(_SPECIAL) for name in names]
  heads += [_label(score).translate(_SPECIAL) for score in scores]
  text = [' & '.join(row) + r' \\' for row in (heads, *rows.values())]
  return '\n'.join(
    [
      '% \\usepackage{booktabs}',
      r'\begin{table}',
      r'\centering',
      rf'\caption{{{caption.translate(_SPECIAL)}}}',
      r'\label{tab:compared}',
      rf'\begin{{tabular}}{{{"l" * len(names)}{"r" * len(scores)}}}',
      r'\toprule',
      text[0],
      r'\midrule',
      *text[1:],
      r'\bottomrule',
      r'\end{tabular}',
      r'\end{table}',
      '',
    ]
  )


def _label(score) -> str:
  own = score.removeprefix('personal_')
  found = metrics.find(own)
  label = found.label if found else own.replace('_', ' ')
  label = label if own == score else f'personal {label}'
  return f'{label} (%)' if _is_fraction(score) else label


def _is_fraction(score) -> bool:
  found = metrics.find(score)
  return found is not None and found.unit.startswith('fraction')


def _cell(line) -> str:
  if line['mean'] is None:
    return '--'
  factor, digits = (100, 1) if _is_fraction(line['score']) else (1, 3)
  text = f'{factor * line["mean"]:.{digits}f}'
  text = rf'\textbf{{{text}}}' if line.get('best') else text
  if line['standard_error'] is not None:
    text += rf' $\pm$ {factor * line["standard_error"]:.{digits}f}'
  text += '$^*$' if line.get('significant') else ''
  text += '$^=$' if line.get('equivalent') else ''
  return text + (f' ({line["n"]})' if line['n'] < line['seeds'] else '')
