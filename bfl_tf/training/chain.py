"""The client halves of a method's parts, called in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfl_tf import parts as parts_lib
from bfl_tf import seeds, weights
from bfl_tf.startup import tf
from bfl_tf.training import tasks


class Chain:
  """Client parts of one training. Each method calls the hook of its name.

  Attributes:
    parts: Parts of the first training, or the part of a second one.
    seconds: Chain of each second training, by name of its part.
    start_changed_by, model_changed_by: Names of the parts whose last call of
      `begin` and `end` returned other weights.
  """

  def __init__(self, parts: Sequence[parts_lib.Local]):
    """Makes the chain of all parts."""
    self.parts = tuple(part for part in parts if not part.is_second)
    self.seconds = {p.name: _SecondChain(p) for p in parts if p.is_second}
    providers = [part for part in self.parts if part.has('prior')]
    if len(providers) > 1:
      names = ' and '.join(part.name for part in providers)
      raise ValueError(
        f'--client_parts: {names} each provide the prior of the clients: '
        'choose one.'
      )
    self.provider = providers[0] if providers else None
    self.start_changed_by: set[str] = set()
    self.model_changed_by: set[str] = set()

  def have(self, hook: str) -> bool:
    """Returns whether a part overrides a hook."""
    return any(part.has(hook) for part in self.parts)

  def begin(
    self, ctx: parts_lib.Context, memory: Mapping[str, Any]
  ) -> tuple[weights.Weights, tuple]:
    """Returns the weights at which training begins, and a carry per part."""
    carry, shared = [], ctx.shared
    for part in self.parts:
      own = ctx._replace(shared=shared.get(part.name))
      begun = part.begin(own, memory.get(part.name))
      if begun.weights is not ctx.start:
        self.start_changed_by.add(part.name)
      ctx = ctx._replace(start=begun.weights)
      carry.append(begun.carry)
    return ctx.start, tuple(carry)

  def prior(self, carry: tuple) -> Any:
    """Returns a `Normal`, a `Natural`, or None without a provider."""
    for part, part_carry in zip(self.parts, carry):
      if part is self.provider:
        return part.prior(part_carry)
    return None

  def gradient(
    self,
    gradient: tf.Tensor,
    mean: tf.Tensor,
    carry: tuple,
    step: tasks.Step,
    stream: seeds.Stream,
  ) -> tf.Tensor:
    """Returns the gradient that the optimizer applies."""
    for part, part_carry in zip(self.parts, carry):
      if part.has('gradient'):
        of_part = _step_of(part, step, stream)
        gradient = part.gradient(gradient, mean, part_carry, of_part)
    return gradient

  def after(
    self, mean: tf.Tensor, carry: tuple, step: tasks.Step, stream: seeds.Stream
  ) -> tuple[tf.Tensor, tuple]:
    """Returns the mean and the carry after the optimizer's update."""
    carries = list(carry)
    for i, part in enumerate(self.parts):
      if part.has('after'):
        of_part = _step_of(part, step, stream)
        mean, carries[i] = part.after(mean, carries[i], of_part)
    return mean, tuple(carries)

  def end(
    self,
    model: weights.Weights,
    carry: tuple,
    trace: tasks.Trace,
    keeps_model: bool = False,
  ) -> tasks.Result:
    """Returns the result of a training.

    Args:
      keeps_model: Whether the model stays as trained, except for a posterior
        that a part fits to it: the model of one site.
    """
    extras, memory, report = {}, {}, {}
    for part, part_carry in zip(self.parts, carry):
      sent = part.end(model, part_carry, trace)
      for column, number in sent.report.items():
        report[f'{part.name}_{column}'] = tf.cast(number, tf.float32)
      if sent.extra is not None:
        extras[part.name] = sent.extra
      if sent.memory is not None:
        memory[part.name] = sent.memory
      if sent.model is not model:
        self.model_changed_by.add(part.name)
      if part.fits_posterior or not keeps_model:
        model = sent.model
    trace = trace._replace(report=report)
    return tasks.Result(model, extras, memory, trace)


class _SecondChain(Chain):
  """The chain of a second training, with one part."""

  def __init__(self, part):
    super().__init__(())
    self.parts = (part,)
    self.provider = part if part.has('prior') else None


def _step_of(part, step: tasks.Step, stream: seeds.Stream) -> tasks.Step:
  return step._replace(seed=stream(f'part {part.name}'))
