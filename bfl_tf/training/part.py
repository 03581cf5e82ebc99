"""The base class of client parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfl_tf import weights
from bfl_tf.declare import component
from bfl_tf.startup import tf


class Part(component.Component):
  """An extension of a client's local training.

  The hooks `with_layout`, `check`, `for_one_site`, `init_memory`, `bounds` and
  `personal` run on the host. All other hooks are compiled into the training
  loop, in the order of `--client_parts`, and may contain TensorFlow only.

  Notation: `mean` is the flat vector `[num_trainable]` of all trainable means,
  `[loc; point]`. `shared` contains the arrays that `Stage.shared` of
  `server_stage` returns, or is None. `memory` is the client's memory from
  `init_memory` or its last `finish`, or None without `init_memory`. `carry` is
  the state of the part between steps. `step` is a `training.Step` with a seed
  for this part.

  Attributes:
    requires: Facts that other components must state, by flag, such as
      `{'pooling': 'averages_means'}`: attributes of rules, weightings,
      optimizers and variants. A part that requires `needs_prior` of the rule
      must return a model that contains the broadcast posterior exactly once.
    incompatible_with: Facts that no other part may state, or 'attack'.
    standard_settings: Settings of the objective that must have the values of
      `Objective.standard`.
    changes_start: Whether training does not begin at the broadcast.
    replaces_model: Whether `finish` returns other means than those after the
      last step.
    posterior_scope: 'all' if `finish` returns a Gaussian over all weights of a
      network without variational layers, otherwise 'layers'.
    prior_weight: Factor on the KL term if the part provides the prior.
    keeps_batch_norm: Whether the statistics of batch normalization stay on the
      client.
    needs_all_examples: Whether hooks use `step.all_examples`, which is 0 under
      privacy.
    trains_global_model: Whether rounds train all weights of the global model;
      without it, only personal models are usable.
    rank: Number of rows of the factor that `finish` returns.
  """

  incompatible_with: tuple[str, ...] = ()
  standard_settings: tuple[str, ...] = ()
  changes_start: bool = False
  replaces_model: bool = False
  needs_all_examples: bool = False
  trains_global_model: bool = True
  rank: int = 0

  @property
  def requires(self) -> Mapping[str, str]:
    return {}

  @property
  def posterior_scope(self) -> str:
    return 'layers'

  @property
  def keeps_batch_norm(self) -> bool:
    return False

  @property
  def prior_weight(self) -> float:
    return 1.0

  def with_layout(self, layout: weights.Layout) -> Part:
    """Returns the part for a model with these tensor shapes."""
    return self

  def check(self, num_steps: int, num_examples: int) -> None:
    """Raises a ValueError if a training of this length is too short.

    The check precedes the first round, for the shortest and the longest
    training of each client.
    """

  def for_one_site(self) -> Part | None:
    """Returns the part for a personalized model of one site, or None."""
    is_kept = self.provides_prior or self.posterior_scope == 'all'
    return self if is_kept else None

  def init_memory(self, model: weights.Weights) -> Any:
    """Returns a client's memory before its first round.

    `model` is the broadcast. Other calls, of which only the shapes are used,
    have a placeholder of the same shapes. The memory is a NumPy array, or a
    dict of NumPy arrays, whose shapes and types stay the same in all rounds.
    """

  def prior(self, start: weights.Weights, shared: Any, memory: Any) -> Any:
    """Returns the natural parameters of the client's prior.

    They are `[2, num_loc]` float64: precision times mean, and precision. With
    IVON a precision may be negative. At most one part of a run overrides this
    hook.
    """

  def initial(
    self, start: weights.Weights, shared: Any, memory: Any
  ) -> weights.Weights:
    """Returns the weights at which local training begins.

    `start` is the broadcast, or the result of the previous part. The other
    hooks, attacks and the checks of the server still get the broadcast.
    """
    return start

  def begin(self, start: weights.Weights, shared: Any, memory: Any) -> Any:
    """Returns the carry before the first step; `start` is the broadcast."""
    return ()

  def loss(self, mean: tf.Tensor, carry: Any) -> Any:
    """Returns a scalar penalty, which is added to the mean loss per example.

    With IVON, the gradient of the loss is that of sampled weights, but the
    gradient of the penalty is that of `mean`.
    """

  def divergence(self, mean: tf.Tensor, scale: tf.Tensor, carry: Any) -> Any:
    """Returns the KL term of variational layers in nats, a scalar.

    It replaces that of the objective, and is also divided by the number of
    examples and multiplied by the temperature. `scale` is `[num_loc]`. At most
    one part of a run overrides this hook.
    """

  def gradient(
    self, gradient: tf.Tensor, mean: tf.Tensor, carry: Any, step: Any
  ) -> tf.Tensor:
    """Returns the gradient `[num_trainable]` that the optimizer applies."""
    return gradient

  def after_step(self, mean: tf.Tensor, carry: Any, step: Any) -> tuple:
    """Returns two values after the optimizer's update of `mean`.

    The first one replaces `mean`; None keeps it. The second one is the new
    carry. `step.scale` has the standard deviations of variational layers.
    """
    return None, carry

  def finish(self, model: weights.Weights, carry: Any, trace: Any) -> tuple:
    """Returns the model, a vector to send or None, and the new memory.

    The vector has the same shape and type in every round. The memory is kept
    only if the server accepts the update. `trace` is a `training.Trace`.
    """
    return model, None, None

  def bounds(self, trace: Any) -> Any:
    """Returns the smallest and largest values of the vector to send, or None.

    Both are numbers, or arrays like the vector. The server rejects an update
    with other values. Without this hook, the root mean square of the vector
    is at most 1000 times that of the broadcast. `trace` is a
    `training.Trace`. The hook runs on the host.
    """

  def personal(self, model: weights.Weights, memory: Any) -> Any:
    """Returns the client's personal model, which is scored on its examples.

    `model` is the global model, or the result of the previous part; `memory` is
    that of the last accepted update, or the initial one. The part has its
    layout.
    """

  def second_training(self) -> Part | None:
    """Returns the part of a second training, whose model stays on the client.

    That training follows each training of the client. It begins at the
    broadcast, or at the weights of its hook `initial`, and has this part alone.
    Its `finish` returns the memory that this part's `init_memory` begins with,
    and this part's `finish` returns None in its place. Of its other results,
    only `report` is used.
    """

  def report(self, carry: Any, trace: Any) -> Mapping[str, Any]:
    """Returns scalars for the columns `<name>_<key>` of `metrics.csv`.

    It is called once, just before `finish`. `<name>` is the part's attribute
    `name`. The server averages each scalar over the accepted clients.
    """
    return {}

  @property
  def provides_prior(self) -> bool:
    """Whether this part provides the prior of each client."""
    return self.has('prior')

  def has(self, hook: str) -> bool:
    """Returns whether this part overrides a hook."""
    return component.overrides(self, Part, hook)
