"""Predictions of a posterior with its mean, samples and linearized outputs.

  python -m experiments.papers.fair.factor results/fair/factor/runs.csv

`of_run` predicts three times with one trained model, for `--score_runs` of
`bfl-tf sweep`. The command prints the table of its rows. docs/results/fair.md
has the command of the runs.
"""

from collections.abc import Iterator, Sequence
import pathlib
from typing import Any

import pandas

from bfl_tf import metrics, seeds
from bfl_tf.analysis import model
from bfl_tf.federation import prediction, run_data
from bfl_tf.runs import executor, run_config, significance
from experiments import command_line
from experiments.papers.fair import scores, tables

MODES = ('mean', 'samples', 'linearized')
# Samples that choose a factor.
_SAMPLES = 10
_SCORES = ('accuracy', 'nll', 'ece')
_DETECTION = ('near_entropy', 'near_epistemic', 'far_entropy', 'far_epistemic')


def of_run(run: pathlib.Path) -> dict[str, float]:
  """Returns the scores of three predictions of a finished run.

  A factor is chosen by the NLL of the calibration examples.
  """
  config = run_config.read_config(run)
  dataset, found = run_data.load(config, executor.built), {}
  others = scores.others(config.dataset, dataset)
  trained = model.load(run)
  split = dataset.calibration
  assert split is not None
  for mode in MODES:
    own_config = config.replace(predict_with=mode)
    own = model.Trained(own_config, trained.task, trained.weights)
    if mode != 'mean':
      own.factor = prediction.fitted_factor(
        own.predictors,
        own.weights,
        split,
        seed=seeds.named(config.seed, 'posterior_factor'),
        num_samples=_SAMPLES,
      )
      found[f'factor_{mode}'] = own.factor
    predictive = own.predictive(dataset.test.x)
    evaluation = own.likelihood.evaluation(predictive, dataset.test.y)
    every = metrics.summarize(evaluation)
    own_scores = {name: every[name] for name in _SCORES}
    own_scores |= scores.detection(dataset, own, others)
    found |= {f'{name}_{mode}': value for name, value in own_scores.items()}
  return found


def main(paths: Sequence[str]) -> None:
  """Prints the table of the rows of a study."""
  if len(paths) != 1:
    command_line.fail('name the runs.csv of the study.')
  print(*lines(pandas.read_csv(paths[0])), sep='\n')


def lines(rows: pandas.DataFrame) -> Iterator[str]:
  """Yields a table with means and standard errors over seeds.

  Each cell has the values of the three predictions. An asterisk marks an NLL
  that differs significantly from that of the mean: a two-sided t-test at 5 %,
  paired by seed, with Holm's correction for all tests of the table.
  """
  own = dict(iter(rows.groupby('method', sort=False)))
  pairs: dict[Any, Any] = {
    (method, mode): significance.student(
      significance.difference(part[f'nll_{mode}'], part['nll_mean'])
    )
    for method, part in own.items()
    for mode in MODES[1:]
  }
  # A method with one seed has no test.
  tests = {key: test.p_value for key, test in pairs.items() if test}
  passed = significance.holm([*tests.values()])
  marks = {key: '*' for key, is_passed in zip(tests, passed) if is_passed}
  names = (*_SCORES, *_DETECTION)
  headers = ['method', 'factor', *(tables.SCORES[name][0] for name in names)]
  yield f'| {" | ".join(headers)} |'
  yield '|' + '---|' * len(headers)
  for method, part in own.items():
    cells = [method, '; '.join(_range(part[f'factor_{m}']) for m in MODES[1:])]
    for name in names:
      values = {mode: _cell(part, name, mode) for mode in MODES}
      if name == 'nll':
        values = {m: v + marks.get((method, m), '') for m, v in values.items()}
      cells.append('; '.join(values.values()))
    yield f'| {" | ".join(cells)} |'
  yield ''
  yield from _where_chosen(rows)


def _where_chosen(rows) -> Iterator[str]:
  """Yields the detection in runs whose factor is above 0, over all methods."""
  for mode in MODES[1:]:
    some = rows[rows[f'factor_{mode}'] > 0]
    texts = [f'{mode}: a factor above 0 in {len(some)} of {len(rows)} runs']
    for place in ('near', 'far'):
      entropy, own = (
        some[f'{place}_{name}_{mode}'] for name in ('entropy', 'epistemic')
      )
      texts.append(
        f'{place}, mean AUROC {own.mean():.2f} (epistemic) and '
        f'{entropy.mean():.2f} (entropy), higher by the epistemic uncertainty '
        f'in {(own > entropy).sum()} runs'
      )
    yield '; '.join(texts)


def _range(values) -> str:
  low, high = values.min(), values.max()
  return f'{low:g}' if low == high else f'{low:g} to {high:g}'


def _cell(part, name, mode) -> str:
  _, unit, digits = tables.SCORES[name]
  values = unit * part[f'{name}_{mode}']
  text = f'{values.mean():.{digits}f}'
  if name not in _SCORES or len(values) < 2:
    return text
  return f'{text} ± {values.sem():.{digits}f}'


if __name__ == '__main__':
  command_line.main(main)
