"""Scores of the clients' personal models.

A personal model is what `Local.personal` makes of the global model and a
client's memory; without such a part, it is the global model.
`run_data.personal_rows` chooses its examples.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bfl_tf import metrics, parts, seeds, weights
from bfl_tf.federation import prediction
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State

SCORES = ('accuracy', 'rmse', 'nll', 'crps', 'ece')


def makes_models(plan: Plan) -> bool:
  """Returns whether the clients of a plan have personal models."""
  return any(part.has('personal') for part in plan.locals)


def is_scored(plan: Plan) -> bool:
  """Returns whether each client's own model is scored."""
  return plan.config.personal_scores or makes_models(plan)


def is_on_node(memory: Mapping[str, Any] | None) -> bool:
  """Returns whether only the round of a memory is here, as in deployments."""
  return memory is not None and {*memory} == {'round'}


def model_of(
  plan: Plan,
  model: weights.Weights,
  memory: Mapping[str, Any] | None,
) -> weights.Weights:
  """Returns the personal model of a client."""
  memory = memory or plan.fresh_memory(model)
  for part in plan.locals:
    if part.has('personal'):
      tensors = part.personal(model, memory.get(part.name))
      model = weights.Weights(*parts.numpy(tensors))
  return model


def evaluate(
  experiment: Experiment,
  state: State,
  last: bool = False,
  factor: float | None = None,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
  """Scores the personal model of each client on test and validation examples.

  A client that was never sampled has its initial memory. Malicious clients are
  left out.

  Args:
    factor: Factor on the standard deviations of the models, or None.

  Returns:
    Means over clients, such as `personal_accuracy` and, on validation examples,
    `validation_personal_accuracy`; the lowest accuracy of a client,
    `personal_lowest_accuracy`; and the numbers of clients that were never
    sampled, `personal_untrained`, and whose scores are not finite and not in
    the means, `personal_diverged`; and a row of test scores for each client.
    Empty without personal models and `--personal_scores`, or if memories are on
    other machines.
  """
  plan, config = experiment.plan, experiment.config
  # The memories are on disk; one of them shows whether all are on nodes.
  one = next(iter(state.memories.values()), None)
  if not is_scored(plan) or is_on_node(one):
    return {}, []
  samples = config.final_num_mc_samples if last else config.num_mc_samples
  number = prediction.num_samples(plan.inference, samples, factor)
  scores: dict[str, float] = {}
  of_clients: list[dict[str, Any]] = []
  for split, prefix in (('test', ''), ('validation', 'validation_')):
    all_scores, rows_of = [], experiment.personal_rows(split)
    for client, rows in rows_of.items():
      model = model_of(plan, state.model, state.memories.get(client))
      model = prediction.scaled(model, factor)
      name = f'personal_{prefix}evaluation'
      seed = seeds.named(config.seed, name, state.round, client)
      examples = experiment.dataset.splits[split].take(rows)
      all_scores.append(_scores(experiment, model, examples, seed, number))
    scores |= means(all_scores, prefix)
    if split == 'test':
      of_clients = [
        {'client': client, **{k: v for k, v in each.items() if k in SCORES}}
        for client, each in zip(rows_of, all_scores)
      ]
    if split == 'test' and makes_models(plan):
      untrained = rows_of.keys() - state.memories.keys()
      scores['personal_untrained'] = len(untrained)
  return scores, of_clients


def means(
  client_scores: Sequence[Mapping[str, float]], prefix: str
) -> dict[str, float]:
  """Returns the means over clients of finite scores, as `evaluate` does."""
  scores: dict[str, float] = {}
  for name in SCORES:
    every = [each[name] for each in client_scores if name in each]
    values = [value for value in every if np.isfinite(value)]
    if every:
      mean = float(np.mean(values)) if values else np.nan
      scores[f'{prefix}personal_{name}'] = mean
      scores[f'{prefix}personal_diverged'] = len(every) - len(values)
    if values and name == 'accuracy':
      scores[f'{prefix}personal_lowest_accuracy'] = min(values)
  return scores


def _scores(experiment, model, examples, seed, num_samples):
  workers, bins = experiment.workers, experiment.config.num_bins
  predictive = prediction.predict(
    workers, model, examples.x, seed=seed, num_samples=num_samples
  )
  likelihood = workers[0].likelihood
  return metrics.summarize(likelihood.evaluation(predictive, examples.y, bins))
