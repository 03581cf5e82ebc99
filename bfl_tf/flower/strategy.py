"""A Flower Strategy that pools posteriors, for user-written Flower Apps."""

from __future__ import annotations

import collections
from collections.abc import Iterable
import math
from typing import Any

from absl import logging
from flwr import app, serverapp
from flwr.serverapp import strategy
import numpy as np

from bfl_tf import parts, statistics, training, weights
from bfl_tf.declare import registry, user_code
from bfl_tf.federation import admission, reduction, stopping
from bfl_tf.server import pooling
from bfl_tf.startup import tf, tf_keras


class BayesianStrategy(strategy.FedAvg):
  """Flower's FedAvg with posterior pooling.

    strategy = BayesianStrategy(model, rule='ws', weighting='distance')
    strategy.start(grid, ArrayRecord(model.get_weights()), num_rounds=3)

  Clients work as with FedAvg: they set the model's weights, fit it, and reply
  with `get_weights()` in an ArrayRecord and `num-examples` in a MetricRecord.
  The rule pools means and scales of variational layers; other weights are
  averaged. Invalid replies (e.g., not finite, wrong shape, scale 0) are
  rejected and counted in the metric `rejected`.

  References:
    J. Fischer et al. Federated Bayesian deep learning: the application of
    statistical aggregation methods to Bayesian models. arXiv:2403.15263.
  """

  def __init__(
    self,
    model: tf_keras.Model,
    rule: str | Any = 'nwa',
    weighting: str | Any = 'auto',
    max_update_norm: float = 6.0,
    **fedavg: Any,
  ):
    """Creates the strategy.

    Args:
      model: A built model like the clients', with variational layers of TFP or
        of `bfl_tf.models.layers`. The strategy overwrites its weights.
      rule: A name in `pooling.RULES`, or a rule. The number of clients and the
        memory that the rule needs are not checked.
    """
    super().__init__(**fedavg)
    self._model = model
    self._variables = weights.Variables.of(model)
    self._rule = _component('rule', rule, pooling.RULES)
    self._weighting = _component('weighting', weighting, pooling.WEIGHTINGS)
    if not self._rule.takes_weights and weighting != 'auto':
      raise ValueError(
        f'rule {rule!r} takes no client weights: remove weighting='
        f'{weighting!r}.'
      )
    self._max_update_norm = max_update_norm
    layout = weights.Layout.of(model)
    self._is_variance = layout.is_variance()
    self._history = admission.fresh_history()
    specs = tf.nest.map_structure(tf.type_spec_from_value, layout.standard())
    nothing: Any = {}
    self._expected = training.Result(specs, nothing, nothing, nothing)
    self._reference: weights.Weights

  def configure_train(
    self,
    server_round: int,
    arrays: app.ArrayRecord,
    config: app.ConfigRecord,
    grid: serverapp.Grid,
  ) -> Iterable[app.Message]:
    """Configures a round as FedAvg does, and stores the broadcast model."""
    self._reference = self._read(arrays)
    return super().configure_train(server_round, arrays, config, grid)

  def aggregate_train(
    self, server_round: int, replies: Iterable[app.Message]
  ) -> tuple[app.ArrayRecord | None, app.MetricRecord | None]:
    """Pools the valid replies; returns None without any."""
    reference = self._reference
    name = 'the rule'
    reduced = reduction.Reduction(
      {name: self._rule}, self._weighting, reference
    )
    admit = admission.Admission(
      self._expected,
      reference,
      self._max_update_norm,
      is_variance=self._is_variance,
      keeps_scale=True,
      history=self._history,
    )
    accepted: list[app.RecordDict] = []
    rejected, replies = 0, list(replies)
    # One reply must not decide which metrics the others need.
    records = [user_code.attempt(_metrics, reply) for reply in replies]
    votes = collections.Counter(
      frozenset(m) for m in records if isinstance(m, app.MetricRecord)
    )
    names = max(votes, key=votes.__getitem__, default=frozenset())
    for reply in replies:
      node = reply.metadata.src_node_id
      update = user_code.attempt(self._update, reply, names)
      update, defect, _ = admit.admit(node, update)
      if defect:
        rejected += 1
        logging.warning('Node %d is rejected: %s.', node, defect)
        continue
      reduced.add(update)
      accepted.append(reply.content)
    if not accepted:
      return None, None
    sums, _ = reduced.finish()
    with stopping.wrap_errors(name):
      ctx = parts.ServerContext(reference)
      pooled = self._rule.step(reference, sums[name], None, ctx).model
    self._history = admit.slots()[admission.SLOT]
    metrics = self.train_metrics_aggr_fn(accepted, self.weighted_by_key)
    metrics['rejected'] = rejected
    weights.write(self._variables, pooled)
    return app.ArrayRecord(self._model.get_weights()), metrics

  def _update(self, reply, names) -> statistics.ClientUpdate:
    """Reads a reply; its metrics must have the names of most replies."""
    metrics = _metrics(reply)
    (arrays,) = reply.content.array_records.values()
    numbers = [v for v in metrics.values() if isinstance(v, int | float)]
    finite = len(numbers) == len(metrics) and all(map(math.isfinite, numbers))
    if not finite or set(metrics) != names:
      raise ValueError(f'its metrics are {dict(metrics)}')
    size = metrics[self.weighted_by_key]
    node = reply.metadata.src_node_id
    return statistics.ClientUpdate(node, size, self._read(arrays), {}, {})

  def _read(self, arrays) -> weights.Weights:
    self._model.set_weights(arrays.to_numpy_ndarrays())
    return weights.Weights(*map(np.asarray, weights.read(self._variables)))


def _metrics(reply) -> Any:
  if reply.has_error():
    raise RuntimeError(reply.error.reason)
  (metrics,) = reply.content.metric_records.values()
  return metrics


def _component(flag, thing, table):
  if isinstance(thing, str):
    return registry.resolve(flag, thing, table)()
  return thing
