"""Training on labeled examples of the server.

In `--start`, it is the pre-training of the pooling paper (section 3.6: at most
100 epochs, early stopping on validation accuracy with patience 10). In
`--refine`, it trains after each round. For numeric labels, the root mean
squared error replaces the accuracy.
"""

import dataclasses
import functools

import numpy as np

from bfl_tf import metrics, seeds, training
from bfl_tf.declare.settings import setting
from bfl_tf.server.resources import Resources
from bfl_tf.server.stage import Stage


@dataclasses.dataclass(frozen=True, eq=False)
class FineTune(Stage):
  """Trains with the clients' optimizer, objective and batch size."""

  resources: Resources
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

  def __post_init__(self):
    if not len(self.resources.server_indices):
      raise ValueError(
        'fine_tune needs labeled server examples: set --num_server_examples '
        'or --server_fraction. --server_dataset has no labels.'
      )
    if self.patience and not len(self.resources.validation.y):
      raise ValueError(
        'fine_tune stops by a score of validation examples: set '
        '--validation_split, or --fine_tune.patience=0.'
      )

  @functools.cached_property
  def _worker(self):
    """Worker without client parts and broadcast prior, at a constant rate."""
    worker = self.resources.workers[0]
    training_config = dataclasses.replace(
      worker.config,
      parts=(),
      step_decay=1.0,
      epoch_decay=1.0,
      inference=worker.config.inference.with_objective(update_prior=False),
    )
    return worker.other(training_config)

  def __call__(self, state, reference, pooled, statistics, seed):
    model, best, best_epoch, step = state.model, (-np.inf, None), 0, 0
    for epoch in range(1, self.epochs + 1):
      result = self._train(model, seeds.child(seed, 2 * epoch), step)
      model, step = result.model, step + int(result.trace.steps)
      if not self.patience:
        continue
      quality = self._validate(model, seeds.child(seed, 2 * epoch + 1))
      if quality > best[0]:
        best, best_epoch = (quality, model), epoch
      elif epoch - best_epoch >= self.patience:
        break
    info = {'server_epochs': epoch, 'server_loss': float(result.trace.loss)}
    if self.patience and best_epoch:
      model = best[1]
      info[f'server_validation_{self._score.name}'] = abs(best[0])
    return state._replace(model=model), info

  def _train(self, model, seed, step):
    task = training.ClientTask(
      start=model,
      indices=self.resources.server_indices,
      epochs=np.int32(1),
      learning_rate=np.float32(self.learning_rate),
      seed=seed,
      first_step=np.int32(step),
      kl_weight=np.float32(self.resources.objective.temperature),
    )
    return self._worker.train(task)

  @property
  def _score(self):
    return metrics.find(self.resources.likelihood.scores_of_groups[0])

  def _validate(self, model, seed) -> float:
    """Returns a score that is high for a good model; -inf if it diverged."""
    predictive = training.predict(
      self.resources.workers,
      model,
      self.resources.validation.x,
      seed=seed,
      num_samples=self.resources.num_mc_samples,
    )
    if not np.all(np.isfinite(predictive.mean)):
      return -np.inf
    evaluation = self.resources.likelihood.evaluation(
      predictive, self.resources.validation.y
    )
    value = self._score.compute(evaluation)
    return value if self._score.best == 'high' else -value
