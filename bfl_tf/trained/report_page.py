"""A report on sites as one page for who decides.

It holds its pictures, and nothing of it is fetched from anywhere.
"""

import base64
from collections.abc import Iterator, Sequence
import html
import pathlib
from typing import Any

from scipy import stats

from bfl_tf.trained import reports

_STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 52em; margin: 2em auto;
  padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: .3em .8em; text-align: right; border-bottom: 1px solid #ccc }
td { white-space: nowrap }
th:first-child, td:first-child { text-align: left }
img { max-width: 32em; display: block }
.note { color: #555; font-size: 90% }
"""


def page(title: str, report: reports.Report, folder: pathlib.Path) -> str:
  """Returns the page as HTML.

  Args:
    title: names the run.
    report: of it.
    folder: has `reliability.png`, and `sites.png` if there are sites.
  """
  whole = report.summary[0]
  body = [
    f'<h1>{html.escape(title)}: whom is the model right for?</h1>',
    *_baseline(report, whole),
    _p(
      'In brackets: where the share of many more such cases may lie (95% '
      'confidence). Shares whose brackets overlap widely may well be the same.'
    ),
    '<h2>Whom to send on to a person</h2>',
    *_sending_on(report, whole),
    '<h2>For which sites it works</h2>',
    *_by('site', report.sites, report, 'Right'),
    *(
      [_image(folder / 'sites.png', 'accuracy by site')] if report.sites else []
    ),
    '<h2>For which classes it works</h2>',
    *_by('class', report.classes, report, 'Found'),
    '<h2>How sure it is, and how often rightly so</h2>',
    _p(
      'A model that says 0.8 should be right in 80 of 100 such cases: bars on '
      'the dashed line. Below the line it is too sure of itself.'
    ),
    _image(folder / 'reliability.png', 'confidence beside accuracy'),
    '<h2>What this page does not say</h2>',
    *_limits(report),
  ]
  return (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    f'<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n'
    f'<body>\n{chr(10).join(body)}\n</body></html>\n'
  )


def _baseline(report, whole) -> Iterator[str]:
  """Yields the accuracy, next to that of naming the most frequent class."""
  most = max(report.classes, key=lambda row: row['num_examples'])
  share = most['num_examples'] / whole['num_examples']
  if whole['accuracy'] <= share:
    yield (
      '<p><strong>The model is no better than always naming the most frequent '
      'class.</strong></p>'
    )
  yield _p(
    f'The sites held out {whole["num_examples"]} cases that the model never '
    f'trained on. It named the right class for {_share(whole)} of them. '
    f'Always naming the most frequent class, {most["class"]}, is right for '
    f'{share:.0%}.'
  )


def _sending_on(report, whole) -> Iterator[str]:
  if report.promise is None:
    yield _p(
      'The run kept no calibration share, so nobody can say whom to send on.'
    )
    return
  yield _p(
    'Of each case the model gives a set of classes. Several: a person decides. '
    'One: nobody is asked, and how often it is right then is promised nowhere, '
    'but counted here, and for each site in the last column below.'
  )
  for level in report.promise.levels:
    if not report.promise.is_enough(level):
      yield _p(
        f'Sets of {level:.0%}: {report.promise.num_examples} calibration cases '
        'are too few, every case goes to a person.'
      )
      continue
    alone = round(whole[f'single_{level:g}'] * whole['num_examples'])
    yield _p(
      f'Sets that are to hold the right class in {level:.0%} of all cases, and '
      f'here did in {whole[f"coverage_{level:g}"]:.0%}: {alone} of the '
      f'{whole["num_examples"]} cases have one class'
      + (f', the right one for {_single(whole, level)}' if alone else '')
      + f'; {whole["num_examples"] - alone} are sent on.'
    )


def _by(first: str, rows: Sequence, report, right: str) -> Iterator[str]:
  """Yields a table, the worst first."""
  if not rows:
    yield _p('The data name no sites.')
    return
  score = 'accuracy' if first == 'site' else 'recall'
  level = report.promise.levels[0] if report.promise else None
  head = [first.capitalize(), 'Cases', right]
  if level:
    head += [f'One class ({level:.0%})', 'Right among these']
  cells = [
    [
      str(row[first]),
      str(row['num_examples']),
      _share(row, score) if score in row else '-',
      *(
        [f'{row[f"single_{level:g}"]:.0%}', _single(row, level)]
        if level and f'single_{level:g}' in row
        else ['-'] * (2 * bool(level))
      ),
    ]
    for row in sorted(rows, key=lambda row: row.get(score, 2))
  ]
  lines = [_row('th', head), *(_row('td', row) for row in cells)]
  yield f'<table>{"".join(lines)}</table>'


def _limits(report) -> Iterator[str]:
  said = [
    'The promise of the sets holds for all sites together, if new cases are '
    'like those that were held back. For one site, or one class, it is only '
    'reported here.',
    'Of cases of another kind than the model was trained on it says nothing, '
    'however sure the model is: bfl-tf doubt asks it about such.',
    'Few cases say little: look at the brackets first.',
  ]
  said += [
    f'Site {site} is not in it: {why}.' for site, why in report.left_out.items()
  ]
  for text in said:
    yield f'<p class="note">{html.escape(text)}</p>'


def _share(row, score='accuracy') -> str:
  return _of(row[score], row['num_examples'])


def _single(row, level) -> str:
  """Of the cases whose set is one class: how many are right."""
  share = row[f'single_accuracy_{level:g}']
  if share is None:
    return '-'
  return _of(share, round(row[f'single_{level:g}'] * row['num_examples']))


def _of(share: float, total: int) -> str:
  """Returns a share with its Wilson interval."""
  found = stats.binomtest(round(share * total), total)
  low, high = found.proportion_ci(method='wilson')
  return f'{share:.0%} ({low:.0%} to {high:.0%})'


def _row(tag: str, cells: Sequence[Any]) -> str:
  inner = ''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)
  return f'<tr>{inner}</tr>'


def _p(text: str) -> str:
  return f'<p>{html.escape(text)}</p>'


def _image(path: pathlib.Path, says: str) -> str:
  code = base64.b64encode(path.read_bytes()).decode()
  return f'<img alt="{says}" src="data:image/png;base64,{code}">'
