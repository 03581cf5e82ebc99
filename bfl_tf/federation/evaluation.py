"""Scores of a round's model, and of its groups of models."""

from collections.abc import Sequence
import math
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import data, metrics, seeds, statistics, training
from bfl_tf.data import columns
from bfl_tf.federation import ensembles, personal, prediction, stopping
from bfl_tf.federation import state as state_lib
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.state import Round


class RoundScores(NamedTuple):
  """Result of an evaluation; `personal` has a row for each client."""

  scores: dict[str, Any]
  predictive: training.Predictive
  groups: ensembles.GroupPredictions | None
  personal: Sequence[dict[str, Any]] = ()


def evaluate(experiment: Experiment, result: Round, last: bool) -> RoundScores:
  """Scores a round on test examples, and on validation examples if any."""
  config, dataset = experiment.config, experiment.dataset
  test = dataset.test if last else _subset(dataset.test, config)
  factor = _factor(experiment, result.state.model, last)
  of_round = experiment, result, last, factor
  predictive, groups = _predict(*of_round, test, 'evaluation')
  likelihood = experiment.workers[0].likelihood
  # If the weights diverged, the scores are NaN and the run continues.
  scores = of_test(config, dataset, likelihood, predictive, test.y)
  if groups:
    scores |= _score_groups(groups, test.y, likelihood, config.num_bins)
  # The factor was chosen for the global model.
  has_others = personal.makes_models(experiment.plan)
  of_personal, of_clients = personal.evaluate(
    experiment, result.state, last, None if has_others else factor
  )
  scores |= of_personal
  splits = [('', predictive, test.y)]
  if len(dataset.validation.y):
    held = dataset.validation
    predictions, _ = _predict(*of_round, held, 'validation')
    splits.append(('validation_', predictions, held.y))
    of_held = _score(likelihood, predictions, held.y, config.num_bins)
    of_held |= _own_scores(config, likelihood, predictions, held.y)
    scores |= {f'validation_{name}': value for name, value in of_held.items()}
  scores |= _scales(experiment.plan.objective, result.state.model)
  if factor is not None:
    scores['posterior_factor'] = factor
  temperature = _temperature(experiment, result.state, factor) if last else None
  if temperature is not None:
    scores['temperature'] = temperature
  if temperature is not None and not likelihood.is_numeric:
    for prefix, given, labels in splits:
      of_split = metrics.tempered_scores(
        given.mean, labels, temperature, config.num_bins
      )
      scores |= {prefix + name: value for name, value in of_split.items()}
  return RoundScores(scores, predictive, groups, of_clients)


def of_test(config, dataset, likelihood, predictive, labels) -> dict[str, Any]:
  """Returns the scores of test examples, with those of classes if uneven."""
  scores = _score(likelihood, predictive, labels, config.num_bins)
  scores |= _own_scores(config, likelihood, predictive, labels)
  names = dataset.class_names or range(dataset.num_classes)
  if names and metrics.imbalance(dataset.test.y, names):
    scores |= _score_classes(predictive, labels, names)
  return scores


def _factor(experiment, model, last) -> float | None:
  """Returns the factor on the standard deviations, or None for the default."""
  config = experiment.config
  if config.predict_with == 'mean' or config.predictor or not model.loc.size:
    return None
  if config.posterior_factor >= 0:
    return config.posterior_factor
  examples = examples_for_factor(experiment.dataset) if last else None
  if examples is None:
    return None
  return prediction.fitted_factor(
    experiment.workers,
    model,
    examples,
    seed=seeds.named(config.seed, 'posterior_factor'),
    num_samples=config.num_mc_samples,
  )


def examples_for_factor(dataset: data.Dataset) -> data.Split | None:
  """Returns the examples that the factor of a posterior is chosen by.

  They are the validation examples, or else a half of the calibration examples.
  """
  if len(dataset.validation.y):
    return dataset.validation
  split = dataset.calibration
  return halves(dataset)[0] if split is not None and len(split.y) > 1 else None


def halves(dataset: data.Dataset) -> tuple[data.Split, data.Split]:
  """Returns two halves of the calibration examples, for fits and thresholds."""
  split = dataset.calibration
  assert split is not None

  def divide(places):
    count = len(split.y[places])
    order = seeds.generator(0, 'calibration_halves').permutation(count)
    return np.sort(order[::2]), np.sort(order[1::2])

  first, second = columns.whole_groups(split.groups, divide)
  return split.take(first), split.take(second)


def _temperature(experiment, state, factor) -> float | None:
  """Returns the fitted temperature of the stored model, if there is one.

  That is the global model, or the stored group of `--predictor`. The
  temperature is given, or fitted on the calibration examples, or else on the
  validation examples. For numeric labels, it is the factor on the standard
  deviation.
  """
  config, dataset = experiment.config, experiment.dataset
  split, held = dataset.calibration, dataset.validation
  if config.fitted_temperature > 0:
    return config.fitted_temperature
  if split is None and not len(held.y):
    return None
  if split is None:
    split = held
  elif factor is not None and not len(held.y):
    split, _ = halves(dataset)
  plan, samples = experiment.plan, config.final_num_mc_samples
  options: dict[str, Any] = {
    'seed': seeds.named(config.seed, 'evaluation', state.round),
    'num_samples': prediction.num_samples(plan.inference, samples, factor),
  }
  members = state_lib.stored(plan.servers, config.predictor, state)
  predict: Any = prediction.mixture if members else prediction.predict
  model = members or prediction.scaled(state.model, factor)
  predictive = predict(experiment.workers, model, split.x, **options)
  if not np.all(np.isfinite(predictive.mean)):
    return np.nan
  if split.is_numeric:
    likelihood = experiment.workers[0].likelihood
    return likelihood.evaluation(predictive, split.y).fitted_factor
  return metrics.fit_temperature(predictive.mean, split.y)


def _scales(objective, model) -> dict[str, float]:
  """Returns the median standard deviation of the random weights, if any."""
  if not model.loc.size:
    return {}
  # Chunks save memory: the squares of a factor are twice as large as it.
  parts = statistics.chunks(model.loc.size)
  variance = np.concatenate([model.variance(part) for part in parts])
  median = float(np.median(variance) ** 0.5)
  initial = getattr(objective, 'initial_scale', 0)
  ratio = {'scale_ratio': median / initial} if initial else {}
  return {'median_scale': median, **ratio}


def _subset(test, config):
  """Returns the test examples of all evaluations before the last."""
  if not 0 < config.num_eval_examples < len(test.y):
    return test
  generator = seeds.generator(config.seed_of_data, 'eval_examples')
  chosen = np.sort(
    generator.permutation(len(test.y))[: config.num_eval_examples]
  )
  return test.take(chosen)


def _predict(experiment, result, last, factor, split, purpose):
  """Predicts with the scored model, and with the round's groups of models."""
  config, workers, state = experiment.config, experiment.workers, result.state
  samples = config.final_num_mc_samples if last else config.num_mc_samples
  options: dict[str, Any] = {
    'seed': seeds.named(config.seed, purpose, state.round),
    'num_samples': prediction.num_samples(
      experiment.plan.inference, samples, factor
    ),
  }
  groups = None
  wanted = config.predictor or purpose == 'evaluation'
  if result.predictors and wanted:
    groups = ensembles.predict(
      workers, result.predictors, split.x, split.y, **options
    )
  if groups and config.predictor:
    return groups.unions[config.predictor], groups
  model = prediction.scaled(state.model, factor)
  return prediction.predict(workers, model, split.x, **options), groups


def _score_classes(predictive, labels, names):
  """Returns scores per class; accuracy hides those of rare classes."""
  if not np.all(np.isfinite(predictive.mean)):
    return {}
  recall = metrics.per_class_recall(predictive.mean, labels)
  balanced = metrics.balanced_accuracy(predictive.mean, labels)
  aurocs = metrics.one_against_rest(predictive.mean, labels)
  known = aurocs[np.isfinite(aurocs)]
  return {
    'balanced_accuracy': balanced,
    'auroc': float(known.mean()) if known.size else math.nan,
    **{
      f'recall_class_{name}': float(value) for name, value in zip(names, recall)
    },
  }


def _score(likelihood, predictive, labels, num_bins):
  evaluation = likelihood.evaluation(predictive, labels, num_bins)
  return metrics.summarize(evaluation)


def _own_scores(config, likelihood, predictive, labels):
  """Returns the scores of `--own_scores`; NaN if the model diverged."""
  scores, unit = {}, likelihood.in_label_unit(predictive)
  for name, function in config.functions_of_scores.items():
    what = f'--own_scores={function.__module__}:{name}'
    given: tuple = (unit.mean,)
    if likelihood.is_numeric:
      given = unit.mean[:, 0], np.sqrt(unit.aleatoric + unit.epistemic)
    scores[name] = np.nan
    if all(np.all(np.isfinite(values)) for values in given):
      with stopping.wrap_errors(what):
        scores[name] = function(*given, labels)
      stopping.check_columns(what, {name: scores[name]})
  return scores


def _score_groups(groups, labels, likelihood, num_bins):
  scores = {'members_rejected': groups.rejected}
  for name, members in groups.members.items():
    of_members = likelihood.member_scores(members, num_bins)
    scores |= {f'{key}_{name}': value for key, value in of_members.items()}
  # The scored predictor has all scores, other unions have some.
  for name, union in groups.unions.items():
    of_union = _score(likelihood, union, labels, num_bins)
    for key in likelihood.scores_of_groups:
      scores[f'{key}_{name}'] = of_union[key]
  return scores
