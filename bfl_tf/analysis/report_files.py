"""Output of a report on sites: tables, plots, printed lines, an HTML page.

The templates of the page are next to this file: `report_base.html`, which one
for classes and one for numbers extend. The page contains its pictures and loads
nothing.
"""

import base64
from collections.abc import Iterator
import itertools
import json
import pathlib
from typing import Any

from bfl_tf import files, metrics, plots, run_files
from bfl_tf.analysis import (
  prediction_sets,
  reports,
  risk,
  site_statistics,
)
from bfl_tf.runs import directory
from bfl_tf.runs import tables as tables_lib

# Printed columns of the table of risks.
_PRINTED = (
  'site', 'num_examples', 'num_events', 'auroc', 'sensitivity', 'specificity',
  'positive_predictive_value', 'negative_predictive_value', 'intercept',
  'slope',
)  # fmt: skip


def write(path: pathlib.Path, report: reports.Report) -> None:
  """Writes the folder `sites/` and `conformal.json` of a run."""
  with tables_lib.cleared(path / run_files.SITES) as folder:
    tables = {
      'sites': report.sites,
      'classes': report.classes,
      'summary': report.summary,
      'risk': report.risks,
      'sets': report.by_set,
    }
    for name, table in tables.items():
      if table:
        tables_lib.write_csv(folder / f'{name}.csv', table)
    for name, figure in figures(report).items():
      figure.savefig(folder / f'{name}.png')
    text = page(path.resolve().name, report, folder)
    files.write_text(folder / 'report.html', text)
    # A file of an earlier report may not remain.
    for name in (run_files.CONFORMAL, run_files.RISK):
      (path / name).unlink(missing_ok=True)
    if report.sets:
      prediction_sets.write(path, report.sets)
    if report.risk:
      risk.write(path, report.risk)
    scores = json.dumps(reports.scores_by_name(report), indent=2)
    files.write_text(folder / run_files.SCORES, scores + '\n')


def lines(
  path: pathlib.Path, report: reports.Report, of_nodes: bool = False
) -> Iterator[str]:
  """Yields the printed lines: tables, missing results, prediction sets."""
  risks = [{k: row[k] for k in _PRINTED} for row in report.risks]
  for table in (report.sites, report.summary, report.classes, risks):
    if table:
      yield from [*tables_lib.table(table).splitlines(), '']
  for site, why in report.rejected.items():
    yield f'site {site} was not scored: {why}'
  for client in directory.absent(path):
    yield f'warning: no accepted update of {client}'
  if report.risk:
    yield from _risk_lines(report)
  if report.of_personal:
    yield 'The scores and sets are those of the personal models.'
  if not report.sites:
    yield (
      'The run has no sites: to define them, set --client_column for a .csv, '
      'or add client_ids and client_ids_test to an .npz.'
    )
  if report.sets is None:
    here = '' if of_nodes else ', or --calibrate_on_test=0.5 in this command'
    yield (
      f'no prediction sets: they need a run with --calibration_fraction{here}'
    )
  else:
    yield from _threshold_lines(report.sets)
    for level in report.sets.levels:
      for row in report.poorly_covered(level):
        name = row['class']
        yield f'warning: {level:.0%} sets miss the class {name} too often'
  there = ", on the server's machine" if of_nodes else ''
  yield f'tables, plots and report.html in {path / "sites"}{there}'


def _threshold_lines(sets):
  if sets.by == 'class' and len(sets.thresholds) == 3:
    rare = min(list(sets.num_examples)[1:], key=sets.num_examples.get)
    share = sets.num_examples[rare] / sets.num_examples['']
    yield (
      f'sets by class: {share:.0%} of the calibration examples are {rare} '
      '(--sets_by=all: one threshold)'
    )
  groups = [k for k in sets.thresholds if k or sets.by != 'class']
  for (at, level), name in itertools.product(enumerate(sets.levels), groups):
    limit, kind = sets.thresholds[name][at], 'sets'
    least = metrics.smallest_probability(limit)
    what = f'the most probable class and more classes by {sets.score}'
    if sets.score == prediction_sets.RESIDUAL:
      half, kind = metrics.interval_half_width(limit), 'intervals'
      what = f'prediction ± {half:.3g} standard deviations'
    elif limit == 1:
      what = 'all classes' if sets.by != 'class' else f'always {name}'
    elif sets.score == 'lac' and least < 0.5:
      what += f' from a probability of {least:.3g}'
    yield (
      f'{100 * level:g} % {kind}{f", {sets.by} {name}" if name else ""}: '
      f'{what}, from {sets.num_examples[name]} calibration examples'
      f'{", which are too few" if limit == 1 else ""}'
    )


def _risk_lines(report):
  fitted_risk = report.risk
  if report.has_few_events:
    events, total = (report.risks[0][k] for k in ('num_events', 'num_examples'))
    yield (
      f'warning: {events} examples with and {total - events} without the event:'
      f' below {risk.MIN_EVENTS}, the statistics of the risk are rough'
    )
  yield (
    f'risk of {report.event}: an example is positive from '
    f'{fitted_risk.threshold:g} (--event, --risk_threshold); intervals are in '
    'risk.csv'
  )
  maps = fitted_risk.maps if fitted_risk.recalibrate else {}
  for site, (slope, intercept) in maps.items():
    yield (
      f'recalibration of {site or risk.ALL}: log odds = {slope:.3f} * log '
      f'odds {intercept:+.3f}'
    )


def figures(report: reports.Report) -> dict[str, Any]:
  """Draws scores by site, overall calibration, and the risk of an event."""
  together = report.together
  kind = 'Personal model' if report.of_personal else 'Global model'
  if isinstance(together, site_statistics.NumericStatistics):
    score, label = 'rmse', "Root mean squared error, in the label's unit"
    drawn = {'pit': plots.pit_bars(together.pit)}
  else:
    score, label = 'accuracy', 'Accuracy (fraction of the test share)'
    drawn = {'reliability': plots.reliability_bars(together.reliability)}
  if report.sites:
    columns = {kind: score, 'Personalized': f'personalized_{score}'}
    rows = {
      row['site']: {k: row[name] for k, name in columns.items() if name in row}
      for row in report.sites
    }
    drawn['sites'] = plots.dots(rows, label, 'Models on each site')
  if report.risk:
    groups = {k or risk.ALL: v.groups() for k, v in report.curves.items()}
    drawn['risk'] = plots.risk_curves(groups, report.event)
  return drawn


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
  total = round(row.get(f'single_{level:g}', 0) * row['num_examples'])
  return _of(row.get(f'single_accuracy_{level:g}'), total)


def _of(share, total: int) -> str:
  """Returns a fraction with its Wilson interval, or a dash."""
  if not isinstance(share, int | float):
    return '-'
  low, high = reports.interval(share, total)
  return f'{share:.0%} ({low:.0%} to {high:.0%})'
