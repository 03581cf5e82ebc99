"""The report on sites as one HTML page for decision makers.

The templates are next to this file: `report_base.html`, which one for classes
and one for numbers extend. The page contains its pictures and loads
nothing.
"""

import base64
import pathlib

from bfl_tf.analysis import reports
from bfl_tf.runs import directory


def page(title: str, report: reports.Report, folder: pathlib.Path) -> str:
  """Returns the page as HTML."""
  import jinja2

  def image(name):
    code = base64.b64encode((folder / name).read_bytes()).decode()
    return f'data:image/png;base64,{code}'

  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  environment.filters |= {
    'image': image, 'percent': _percent, 'of': _of, 'single': _single,
    'number': _number, 'interval': _interval,
  }  # fmt: skip
  shared = {
    'title': title,
    'report': report,
    'absent': directory.absent(folder.parent),
    'whole': report.summary[0],
    'total': report.summary[0]['num_examples'],
    'levels': report.sets.levels if report.sets else (),
  }
  if not report.classes:
    return environment.get_template('report_numbers.html').render(**shared)
  name = 'report_risk.html' if report.risk else 'report.html'
  return environment.get_template(name).render(
    **shared,
    most_frequent=max(report.classes, key=lambda row: row['num_examples']),
    # A class without cases has no recall.
    classes=sorted(report.classes, key=lambda row: row.get('recall', 2)),
  )


def _percent(share) -> str:
  return f'{share:.0%}' if isinstance(share, int | float) else '-'


def _number(value) -> str:
  return f'{value:.2f}' if isinstance(value, int | float) else '-'


def _interval(row, name: str) -> str:
  """Returns a statistic with its interval, or a dash."""
  values = [_number(row[name + end]) for end in ('', '_low', '_high')]
  return '-' if '-' in values else '{} ({} to {})'.format(*values)


def _single(row, level) -> str:
  """Returns how many cases with a set of one class are correct."""
  share = row.get(f'single_accuracy_{level:g}')
  return _of(
    share, round(row.get(f'single_{level:g}', 0) * row['num_examples'])
  )


def _of(share, total: int) -> str:
  """Returns a fraction with its Wilson interval, or a dash."""
  if not isinstance(share, int | float):
    return '-'
  low, high = reports.interval(share, total)
  return f'{share:.0%} ({low:.0%} to {high:.0%})'
