"""A round's scores: of the model, and of the groups of models it made."""

from typing import Any, NamedTuple

import numpy as np

from bfl_tf import metrics, seeds, statistics, training
from bfl_tf.federation import ensembles
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.state import Round

# Of each union of a round's models; the scored predictor has all.
_OF_UNIONS = ('accuracy', 'nll', 'ece')


class Evaluated(NamedTuple):
  """Result of an evaluation.

  Attributes:
    scores: columns of `metrics.csv`.
    predictive: Predictions of the scored predictor on the test examples.
    groups: Predictions of the round's groups of models, if there are any.
  """

  scores: dict[str, Any]
  predictive: training.Predictive
  groups: ensembles.Predicted | None


def evaluate(experiment: Experiment, played: Round, last: bool) -> Evaluated:
  """Scores a round on test examples, and on validation examples if there are.

  Args:
    experiment: Experiment whose data and workers are used.
    played: the round.
    last: Whether this is the final evaluation, with all test examples and more
      samples.
  """
  config, dataset = experiment.config, experiment.dataset
  test = dataset.test if last else _some(dataset.test, config)
  predictive, groups = _predict(experiment, played, test, last, 'evaluation')
  scores = _score(predictive, test.y, config)
  if metrics.imbalance(dataset.test.y, dataset.num_classes):
    scores |= _score_classes(predictive, test.y)
  if groups:
    scores |= _score_groups(groups, test.y, config)
  validation = dataset.validation
  if len(validation.y):
    held = predict_validation(experiment, played, last)
    for name, value in _score(held, validation.y, config).items():
      scores[f'validation_{name}'] = value
  if played.state.model.loc.size:
    scores['median_scale'] = _median_scale(played.state.model)
  return Evaluated(scores, predictive, groups)


def predict_validation(
  experiment: Experiment, played: Round, last: bool
) -> training.Predictive:
  """Returns what is said of validation examples; arguments of `evaluate`."""
  held = experiment.dataset.validation
  return _predict(experiment, played, held, last, 'validation')[0]


def _median_scale(model):
  """Distinguishes weights at the floor from weights as wide as the prior."""
  # By chunks: the squares of a whole factor would be twice its size.
  parts = statistics.chunks(model.loc.size)
  variance = np.concatenate([model.variance(part) for part in parts])
  return float(np.median(variance) ** 0.5)


def _some(test, config):
  """Returns the examples of all evaluations but the last."""
  if not 0 < config.num_eval_examples < len(test.y):
    return test
  generator = seeds.generator(config.seed, 'eval_examples')
  chosen = np.sort(
    generator.permutation(len(test.y))[: config.num_eval_examples]
  )
  return test._replace(x=test.x[chosen], y=test.y[chosen])


def _predict(experiment, played, split, last, purpose):
  """Predicts with the scored model, and with the groups of models of
  the round."""
  config, workers, state = experiment.config, experiment.workers, played.state
  samples = config.final_num_mc_samples if last else config.num_mc_samples
  options: dict[str, Any] = {
    'seed': seeds.named(config.seed, purpose, state.round),
    'num_samples': 1 if config.variant == 'deterministic' else samples,
  }
  groups = None
  wanted = config.predictor or purpose == 'evaluation'
  if played.predictors and wanted:
    groups = ensembles.predict(
      workers, played.predictors, split.x, split.y, **options
    )
  if groups and config.predictor:
    return groups.unions[config.predictor], groups
  return training.predict(workers, state.model, split.x, **options), groups


def _score(predictive, labels, config):
  # Where the weights diverged, scores are NaN and the run goes on to its end.
  return metrics.summarize(
    metrics.Evaluation(
      predictive.probs,
      labels,
      predictive.aleatoric,
      predictive.epistemic,
      predictive.expected_entropy,
      config.num_bins,
    )
  )


def _score_classes(predictive, labels):
  """Returns scores per class, which accuracy hides for rare classes."""
  if not np.all(np.isfinite(predictive.probs)):
    return {}
  recall = metrics.per_class_recall(predictive.probs, labels)
  balanced = metrics.balanced_accuracy(predictive.probs, labels)
  return {
    'balanced_accuracy': balanced,
    **{f'recall_class_{c}': float(r) for c, r in enumerate(recall)},
  }


def _score_groups(groups, labels, config):
  scores = groups.members(config.num_bins)
  for name, union in groups.unions.items():
    of_union = _score(union, labels, config)
    scores |= {f'{key}_{name}': of_union[key] for key in _OF_UNIONS}
  return scores
