"""Training on labeled examples of the server.

In `--start`, it is the pre-training of the pooling paper (section 3.6: at most
100 epochs, early stopping on validation accuracy with patience 10). In
`--server_parts`, it trains after each round. For numeric labels, the root mean
squared error replaces the accuracy.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from bfl_tf import metrics, seeds, training
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Outcome, Server


@dataclasses.dataclass(frozen=True)
class FineTune(Server):
  """Trains with the clients' optimizer, objective and batch size."""

  epochs: int = setting(100, 'Maximum number of epochs.', ge=1)
  patience: int = setting(
    10,
    'Number of epochs without a better validation accuracy, or RMSE, after '
    'which training stops with the best model; 0 trains all epochs '
    'and keeps the last model.',
    ge=0,
  )
  learning_rate: float = setting(
    1e-3, 'Learning rate, constant over all epochs.', gt=0
  )

  name = 'fine_tune'

  def check(self, facts):
    facts.need_server_examples(labels=True)
    facts.need(
      not self.patience or facts.config.validation_split,
      'validation examples, by whose score it stops: set --validation_split, '
      'or --fine_tune.patience=0',
    )

  def _worker(self, tools):
    """Returns a worker without client parts and broadcast prior."""
    worker = tools.workers[0]
    training_config = dataclasses.replace(
      worker.config,
      parts=(),
      inference=worker.config.inference.with_objective(update_prior=False),
    )
    return worker.other(training_config)

  def step(self, model, sums, slot, ctx):
    seed, tools = ctx.seed, ctx.tools
    worker = self._worker(tools)
    score: Any = metrics.find(tools.likelihood.scores_of_groups[0])
    best, best_epoch, step = (-np.inf, None), 0, 0
    for epoch in range(1, self.epochs + 1):
      task = self._task(tools, model, seeds.child(seed, 2 * epoch), step)
      result = worker.train(task)
      model, step = result.model, step + int(result.trace.steps)
      if not self.patience:
        continue
      of_epoch = seeds.child(seed, 2 * epoch + 1)
      quality = _quality(tools, score, model, of_epoch)
      if quality > best[0]:
        best, best_epoch = (quality, model), epoch
      elif epoch - best_epoch >= self.patience:
        break
    report = {'server_epochs': epoch, 'server_loss': float(result.trace.loss)}
    if self.patience and best_epoch:
      model = best[1]
      report[f'server_validation_{score.name}'] = abs(best[0])
    return Outcome(model, slot, report)

  def _task(self, tools, model, seed, step):
    size = tools.workers[0].config.batch_size
    steps = math.ceil(len(tools.server_indices) / size)
    return training.ClientTask(
      start=model,
      indices=tools.server_indices,
      rates=np.full(steps, self.learning_rate, np.float32),
      seed=seed,
      first_step=np.int32(step),
      kl_weight=np.float32(tools.objective.temperature),
    )


def _quality(tools, score, model, seed) -> float:
  """Returns a score that is high for a good model; -inf if it diverged."""
  predictive = training.predict(
    tools.workers,
    model,
    tools.validation.x,
    seed=seed,
    num_samples=tools.num_mc_samples,
  )
  if not np.all(np.isfinite(predictive.mean)):
    return -np.inf
  evaluation = tools.likelihood.evaluation(predictive, tools.validation.y)
  value = score.compute(evaluation)
  return value if score.best == 'high' else -value
