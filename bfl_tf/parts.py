"""The parts of a method: a client half, a server half, and what hooks return.

A method consists of parts. A `Local` changes the training of a client, a
`Server` changes the global model, and a `Pool` is the `Server` that combines
the models of the clients. A part may be both, such as SCAFFOLD, so that its
settings and its notation have one place. A part is a frozen dataclass; its
fields are settings. A hook that a subclass does not override costs nothing.

A hook reads its arguments, the settings of its part, and `self.run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bfl_tf import weights as weights_lib
from bfl_tf.declare import component


class RunFacts(NamedTuple):
  """Facts of a run that do not change between rounds, in `self.run`.

  Attributes:
    num_clients: Number of clients of the run, including those that are not
      sampled.
    clients_per_round: Number of clients per round; 0 for all.
    prior_precision: 1 / prior_scale^2, or 0 without a prior.
    min_scale: Lower bound on pooled standard deviations.
    optimizer: The clients' optimizer.
    weighting: Weighting of the clients.
    layout: `weights.Layout` of the model; None in `check` before the data are
      read.
  """

  num_clients: int = 1
  clients_per_round: int = 0
  prior_precision: float = 0.0
  min_scale: float = 1e-6
  optimizer: Any = None
  weighting: Any = None
  layout: Any = None


class Context(NamedTuple):
  """Argument of `Local.begin`.

  Attributes:
    broadcast: The global model.
    start: The broadcast, or the start that the previous part returned.
    shared: Result of `Server.shared` of the same part, or None.
  """

  broadcast: weights_lib.Weights
  start: weights_lib.Weights
  shared: Any


class Start(NamedTuple):
  """Result of `Local.begin`.

  Attributes:
    weights: Weights at which the training begins: `ctx.start`, or others.
    carry: Tensors, in any structure, that the other hooks receive.
  """

  weights: Any
  carry: Any = ()


class Sent(NamedTuple):
  """Result of `Local.end`.

  Attributes:
    model: The model that the client sends.
    memory: The next memory, which the client keeps if the server accepts the
      update.
    report: Scalars for the columns `<name>_<key>` of `metrics.csv`, which the
      server averages over the accepted clients.
    extra: A vector that the server cannot compute itself, such as samples. Its
      root mean square is at most 1000 times that of the broadcast.
  """

  model: Any
  memory: Any = None
  report: Mapping[str, Any] = {}
  extra: Any = None


class Normal(NamedTuple):
  """A prior N(loc, scale^2), `[num_loc]` float32, that may change in a step."""

  loc: Any
  scale: Any


class Natural(NamedTuple):
  """A prior that is fixed during a training.

  Attributes:
    eta: `[2, num_loc]` float64: precision times mean, and precision. With IVON
      a precision may be negative.
    weight: Factor on the KL term.
  """

  eta: Any
  weight: float = 1.0


class Keep(NamedTuple):
  """A term of `Server.terms` that is not summed.

  The server stores one value per client, as long as the round lasts.
  """

  value: Any


class ServerContext(NamedTuple):
  """Argument of `Server.step`.

  Attributes:
    broadcast: The global model before the round.
    pooled: Result of the pooling rule; None for the rule itself.
    round: Index of the round, from 0.
    num_rounds: Number of rounds of the run.
    seed: `[2]` int32, unique to this part and round.
    tools: `server.Resources`, which predict and train; None outside of a run.
  """

  broadcast: weights_lib.Weights
  pooled: Any = None
  round: int = 0
  num_rounds: int = 1
  seed: Any = None
  tools: Any = None


class Outcome(NamedTuple):
  """Result of `Server.step`.

  Attributes:
    model: The next model.
    slot: The next slot, or None.
    report: Columns of `metrics.csv`.
    groups: Models by name of the group. A group is a sequence that may make its
      members on demand. The round scores groups, and does not store them.
  """

  model: Any
  slot: Any = None
  report: Mapping[str, Any] = {}
  groups: Mapping[str, Sequence] = {}


@dataclasses.dataclass(frozen=True)
class Part(component.Component):
  """Base of `Local` and `Server`.

  The class attribute `name` names the part in its memory and slot, its random
  draws, its columns and its error messages. Another name changes results.
  """

  run: RunFacts = dataclasses.field(
    default=RunFacts(), kw_only=True, repr=False
  )

  def check(self, facts: Any) -> None:
    """Rejects a run that the part does not fit, by `facts.need`.

    It is called before the data are read, and again with them.

    Args:
      facts: A `federation.Facts`.
    """

  def with_run(self, run: RunFacts) -> Part:
    """Returns the part, and the parts in its fields, with other facts."""
    own = {field.name: getattr(self, field.name) for field in _fields(self)}
    inner = {k: v.with_run(run) for k, v in own.items() if isinstance(v, Part)}
    return dataclasses.replace(self, run=run, **inner)

  def has(self, hook: str) -> bool:
    """Returns whether the class overrides a hook of `Local` or `Server`."""
    base = Local if hook in vars(Local) else Server
    own = isinstance(self, base)
    return own and getattr(type(self), hook) is not vars(base)[hook]


@dataclasses.dataclass(frozen=True)
class Local(Part):
  """The client half. `begin` to `end` are compiled: TensorFlow only.

  `memory` and `personal` run eagerly, and the engine converts what they return
  to NumPy, so that they may share functions with `begin` and `end`. Notation:
  `mean` is the flat vector `[num_trainable]` of all trainable means, `[loc;
  point]`; `carry` comes from `begin`; `step` is a `training.Step` with a seed
  for this part.

  Attributes:
    exact: Whether the update must be the sum of the steps of this training. No
      other part may then change its start or its model.
    is_second: Whether the part trains a second model after the first training,
      without the other parts. This model stays on the client: of `Sent`, only
      memory and report are used.
    trains_global_model: Whether rounds train all weights of the global model;
      without it, only personal models are usable.
    fits_posterior: Whether `end` fits a Gaussian over all weights.
  """

  exact: ClassVar[bool] = False
  is_second: ClassVar[bool] = False
  trains_global_model: ClassVar[bool] = True

  @property
  def fits_posterior(self) -> bool:
    return False

  def memory(self, model: weights_lib.Weights) -> Any:
    """Returns a client's memory before its first round.

    It is an array or a dict of arrays, whose shapes and types stay the same.
    `model` is the broadcast.
    """

  def begin(self, ctx: Context, memory: Any) -> Start:
    """Returns the weights at which training begins, and the carry."""
    return Start(ctx.start)

  def prior(self, carry: Any) -> Normal | Natural | None:
    """Returns the client's prior. At most one part of a run overrides it."""

  def gradient(self, gradient: Any, mean: Any, carry: Any, step: Any) -> Any:
    """Returns the gradient of the mean that the optimizer applies.

    It is called after clipping and weight decay.
    """
    return gradient

  def after(self, mean: Any, carry: Any, step: Any) -> tuple[Any, Any]:
    """Returns the mean and the carry after the optimizer's update.

    `step.scale` has the standard deviations of variational layers.
    """
    return mean, carry

  def end(self, model: Any, carry: Any, trace: Any) -> Sent:
    """Returns what the client sends, keeps and reports.

    `trace` is a `training.Trace`.
    """
    return Sent(model)

  def personal(self, model: Any, memory: Any) -> Any:
    """Returns the client's own model, which is scored on its examples.

    `model` is the global model, or the result of the previous part.
    """
    return model


@dataclasses.dataclass(frozen=True)
class Server(Part):
  """The server half, in NumPy float64; it rounds once, in `step`."""

  @property
  def group_names(self) -> tuple[str, ...]:
    """Names of the groups of models that `step` makes.

    At most one part of a run makes groups.
    """
    return ()

  def slot(self, model: weights_lib.Weights) -> Any:
    """Returns what the part keeps before the first round, or None.

    It is an array or a dict of arrays.
    """

  def shared(self, slot: Any) -> Any:
    """Returns the arrays that the client half of this part receives."""

  def terms(
    self, update: Any, weight: float, broadcast: weights_lib.Weights
  ) -> Mapping[str, Any]:
    """Returns the terms of one client that are summed over the clients.

    The sums also contain `weight`, `max_weight` and `count`.

    Args:
      update: A `statistics.ClientUpdate`.
      weight: The client's weight. Multiply terms by it where needed.
    """
    return {}

  def step(
    self,
    model: weights_lib.Weights,
    sums: Mapping[str, Any],
    slot: Any,
    ctx: ServerContext,
  ) -> Outcome:
    """Returns the next model.

    Args:
      model: The pooled model as earlier parts changed it; for a `Pool`, the
        broadcast.
      sums: Sums of `terms` by name, float64; for a `Keep` term, its values in
        the order of the clients.
    """
    return Outcome(model, slot)

  def stored(
    self, slot: Any, model: weights_lib.Weights
  ) -> Sequence[weights_lib.Weights]:
    """Returns models of the slot that a finished run predicts with.

    A run does if `--predictor` is the name of the only group of this part.
    """
    return ()


@dataclasses.dataclass(frozen=True)
class Pool(Server):
  """The server part that makes the model of the round, first.

  A run has one. A method that extends a rule inherits from it, and its terms
  and those of the rule share one dict.

  Attributes:
    takes_points: Whether it also pools deterministic networks.
    takes_weights: Whether it uses the weights of the clients.
  """

  takes_points: ClassVar[bool] = False
  takes_weights: ClassVar[bool] = True


def numpy(tree: Any) -> Any:
  """Returns nested dicts and tuples of tensors as NumPy arrays."""
  if isinstance(tree, Mapping):
    return {key: numpy(value) for key, value in tree.items()}
  if isinstance(tree, tuple):
    arrays = [numpy(value) for value in tree]
    return type(tree)(*arrays) if hasattr(tree, '_fields') else tuple(arrays)
  return tree if tree is None else np.asarray(tree)


def _fields(part):
  return (f for f in dataclasses.fields(part) if f.name != 'run')
