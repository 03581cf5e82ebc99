"""Scores of the clients' personal models.

A personal model is what `Part.personal` makes of the global model and a
client's memory. `run_data.test_rows` chooses its test examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bfl_tf import metrics, seeds, weights
from bfl_tf.federation import prediction
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State

_SCORES = ('accuracy', 'rmse', 'nll', 'crps', 'ece')


def makes_models(plan: Plan) -> bool:
  """Returns whether the clients of a plan have personal models."""
  return any(part.has('personal') for part in plan.parts)


def is_on_node(memory: Mapping[str, Any] | None) -> bool:
  """Returns whether only the round of a memory is here, as in deployments."""
  return memory is not None and {*memory} == {'round'}


def model_of(
  plan: Plan,
  model: weights.Weights,
  memory: Mapping[str, Any] | None,
) -> weights.Weights:
  """Returns the personal model of a client.

  Args:
    plan: Plan of the clients, with the layout.
    model: Global model.
    memory: Memory of the client, by part name; None if it was never sampled.
  """
  memory = memory or plan.fresh_memory(model)
  for part in plan.parts:
    if part.has('personal'):
      kept = memory[part.name]
      model = part.personal(model, kept)
  return model


def evaluate(
  experiment: Experiment, state: State, num_samples: int
) -> dict[str, float]:
  """Scores the personal model of each client on its test examples.

  A client that was never sampled has its initial memory. Malicious clients are
  left out.

  Returns:
    Means over clients, such as `personal_accuracy`; the lowest accuracy of a
    client, `personal_lowest_accuracy`; and `personal_untrained`, the number of
    clients that were never sampled. Empty if no part makes personal models, or
    if memories are on other machines.
  """
  method, config = experiment.method, experiment.config
  # The memories are on disk; one of them shows whether all are on nodes.
  one = next(iter(state.memories.values()), None)
  if not makes_models(method) or is_on_node(one):
    return {}
  likelihood = experiment.workers[0].likelihood
  test, untrained, found = experiment.dataset.test, 0, []
  for client, rows in experiment.personal_rows().items():
    memory = state.memories.get(client)
    untrained += memory is None
    model = model_of(method, state.model, memory)
    predictive = prediction.predict(
      experiment.workers,
      model,
      test.x[rows],
      seed=seeds.named(config.seed, 'personal_evaluation', state.round, client),
      num_samples=num_samples,
    )
    evaluation = likelihood.evaluation(
      predictive, test.y[rows], config.num_bins
    )
    found.append(metrics.summarize(evaluation))
  scores = {
    f'personal_{name}': float(np.mean([each[name] for each in found]))
    for name in _SCORES
    if name in found[0]
  }
  if 'accuracy' in found[0]:
    lowest = min(each['accuracy'] for each in found)
    scores['personal_lowest_accuracy'] = lowest
  return scores | {'personal_untrained': untrained}
