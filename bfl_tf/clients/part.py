"""The contract of a client part."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import tensorflow as tf


class Part(Protocol):
  """What a method adds to the one local training loop.

  A part is a frozen dataclass with a `name`, and it writes those of the hooks
  that it needs: what a part does not write costs nothing. The first
  three hooks run on the host; from `prior` on, hooks are compiled into the
  loop, in the order of `--client_parts`, and hold TensorFlow only.

  Class attributes, absent by default, say what a part asks of a run:

    asks = {'pooling': ('nwa', 'ws')}
                    by flag, the values that a run may have; another is
                    refused. A part that asks for a rule which divides the
                    broadcast posterior out promises that what clients send
                    holds it once
    excludes = ('swag', 'attack')
                    names of parts, and flags, that a run may not have
    random = 'all'  `finish` makes a Gaussian over all weights of a network
                    without variational layers

  Notation: `mean = [loc; point]` is a flat vector `[num_trainable]`, also
  `model.mean`. `shared` is the slot of the server stage that the part needs,
  the same for all clients of a round; None if there is none. `memory` is this
  client's own, an array or a dict of arrays. `carry` is what the part itself
  carries from step to step.

  Attributes:
    name: of its columns and its draws; of a part in our tables, of its flags.
    needs: name of the server stage whose slot it is sent, which then comes
      first in the chain of stages; absent where it needs none.
  """

  name: ClassVar[str]
  needs: ClassVar[str | None]

  def laid_out(self, layout) -> 'Part':
    """Returns the part for a model, told the tensors' shapes behind `mean`."""

  def check(self, num_steps: int, num_examples: int) -> None:
    """Raises a ValueError if such a training is none.

    The federation asks before anything is trained, about the smallest and the
    largest training of every client.
    """

  def for_one_site(self) -> 'Part | None':
    """Returns the part for a site that trains a model for itself, or None.

    By default a part that gives a prior or makes a posterior is kept.
    """

  def init_memory(self, model) -> Any:
    """Returns the client's memory before its first round.

    Memory keeps the shapes and types that it begins with.
    """

  def prior(self, start, shared, memory) -> Any:
    """Returns the natural parameters of the random weights' prior.

    `[2, num_loc]` float64: precision times mean, precision, which under IVON
    alone may be negative. One part of a chain
    at most has this hook. Its `prior_weight`, 1 if it says none, is a factor on
    the divergence.
    """

  def begin(self, start, shared, memory) -> Any:
    """Returns the carry; `start` is the broadcast model."""

  def loss(self, mean, carry) -> tf.Tensor:
    """Returns a penalty in nats per example, added to the objective."""

  def gradient(self, gradient, mean, carry, step) -> tf.Tensor:
    """Returns the gradient `[num_trainable]` that the optimizer takes."""

  def after_step(self, mean, carry, step) -> tuple[tf.Tensor | None, Any]:
    """Returns the mean, or None to leave it, and the carry.

    `step` is a `training.Step`, with a seed of the part's own.
    """

  def finish(self, model, carry, trace) -> tuple[Any, tf.Tensor | None, Any]:
    """Returns the model, a vector to send or None, and the new memory.

    The vector has the same shape and type in every round. The memory is kept
    only if the server accepts the update.
    """

  def report(self, carry, trace) -> Mapping[str, tf.Tensor]:
    """Returns numbers by column: `<name>_<column>` of `metrics.csv`.

    The server averages them over the clients that it pooled, each counting the
    same.
    """
