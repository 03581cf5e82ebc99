"""The client parts of a training, called in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfl_tf import seeds, weights
from bfl_tf.startup import tf
from bfl_tf.training import tasks
from bfl_tf.training.part import Part


class Chain:
  """Client parts for one model, whose shapes the parts already have.

  Each method calls the hook of the same name. The arguments are those of
  `Part`, except for `shared` and `memory`, which are by part name as in
  `ClientTask`, `carry`, which has one entry per part, and `stream`, which
  contains the random draws of a step.

  Attributes:
    seconds: Chain of the second training of a part, by name of the part.
    provider: The part that provides the prior of the clients, or None.

  Raises:
    ValueError: Two parts provide a prior.
  """

  def __init__(self, parts: Sequence[Part], names: Sequence[str] = ()):
    """Makes the chain; `names` replace the names of the parts."""
    self.parts = tuple(parts)
    self.names = names or [part.name for part in self.parts]
    self.seconds = {
      name: Chain([second], [name])
      for name, part in zip(self.names, self.parts)
      if (second := part.second_training())
    }
    providers = [part for part in self.parts if part.provides_prior]
    terms = [part for part in self.parts if part.has('divergence')]
    for several, what in ((providers, 'prior'), (terms, 'KL term')):
      if len(several) > 1:
        names = ' and '.join(part.name for part in several)
        raise ValueError(
          f'--client_parts: {names} each provide the {what} of the clients: '
          'choose one.'
        )
    self.provider = providers[0] if providers else None

  def with_layout(self, layout: weights.Layout) -> Chain:
    """Returns the chain for a model with these tensor shapes."""
    return Chain([part.with_layout(layout) for part in self.parts], self.names)

  def have(self, hook: str) -> bool:
    """Returns whether a part overrides a hook."""
    return any(part.has(hook) for part in self.parts)

  def prior(
    self, start: weights.Weights, shared: Mapping, memory: Mapping
  ) -> Any:
    """Returns the prior's natural parameters, or None without a provider."""
    part = self.provider
    if part:
      name = self.names[self.parts.index(part)]
      return part.prior(start, shared.get(name), memory.get(name))
    return None

  def initial(
    self, start: weights.Weights, shared: Mapping, memory: Mapping
  ) -> weights.Weights:
    """Returns the weights at which local training begins."""
    for name, part in zip(self.names, self.parts):
      if part.has('initial'):
        start = part.initial(start, shared.get(name), memory.get(name))
    return start

  def begin(
    self, start: weights.Weights, shared: Mapping, memory: Mapping
  ) -> tuple:
    """Returns the carry before the first step."""
    return tuple(
      part.begin(start, shared.get(name), memory.get(name))
      for name, part in zip(self.names, self.parts)
    )

  def loss(self, mean: tf.Tensor, carry: tuple) -> Any:
    """Returns the sum of the penalties."""
    return sum(
      part.loss(mean, kept)
      for part, kept in zip(self.parts, carry)
      if part.has('loss')
    )

  def divergence(self, mean: tf.Tensor, scale: tf.Tensor, carry: tuple) -> Any:
    """Returns the KL term of a part, or None if no part has one."""
    for part, kept in zip(self.parts, carry):
      if part.has('divergence'):
        return part.divergence(mean, scale, kept)
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
    for part, kept in zip(self.parts, carry):
      if part.has('gradient'):
        of_part = _step_of(part, step, stream)
        gradient = part.gradient(gradient, mean, kept, of_part)
    return gradient

  def after_step(
    self, mean: tf.Tensor, carry: tuple, step: tasks.Step, stream: seeds.Stream
  ) -> tuple[tf.Tensor, tuple]:
    """Returns the mean and the carry after the optimizer's update."""
    kept = list(carry)
    for i, part in enumerate(self.parts):
      if part.has('after_step'):
        of_part = _step_of(part, step, stream)
        replaced, kept[i] = part.after_step(mean, kept[i], of_part)
        mean = mean if replaced is None else replaced
    return mean, tuple(kept)

  def finish(
    self, model: weights.Weights, carry: tuple, trace: tasks.Trace
  ) -> tasks.Result:
    """Returns the result of a training after `report` and `finish`."""
    extras, memory, report = {}, {}, {}
    for name, part, kept in zip(self.names, self.parts, carry):
      for column, number in part.report(kept, trace).items():
        report[f'{name}_{column}'] = tf.cast(number, tf.float32)
      model, sent, new_memory = part.finish(model, kept, trace)
      if sent is not None:
        extras[name] = sent
      if new_memory is not None:
        memory[name] = new_memory
    trace = trace._replace(report=report)
    return tasks.Result(model, extras, memory, trace)


def _step_of(part: Part, step: tasks.Step, stream: seeds.Stream) -> tasks.Step:
  common = step.common_seed
  if common is not None:
    common = seeds.Stream(common)(f'part {part.name}')
  return step._replace(seed=stream(f'part {part.name}'), common_seed=common)
