"""The shapes of a training's result, and checks of a user's hooks."""

from __future__ import annotations

from collections.abc import Sequence
import functools
from typing import Any

from bfl_tf import weights
from bfl_tf.declare import user_code
from bfl_tf.startup import tf
from bfl_tf.training import tasks
from bfl_tf.training.chain import Chain
from bfl_tf.training.part import Part


def _trace_spec() -> tasks.Trace:
  number = tf.TensorSpec([], tf.float32)
  return tasks.Trace(tf.TensorSpec([], tf.int32), number, number)


def result_spec(
  parts: Sequence[Part],
  layout: weights.Layout,
  shared: Any,
  memory: Any,
  checks_hooks: bool = True,
) -> tasks.Result:
  """Returns the shapes and types of the result of a training.

  Args:
    memory: Memory, as in `ClientTask`; the returned memory has the same
      structure.
    checks_hooks: Whether to check each hook of a user's part. The check traces
      hooks, so that a debugger would stop in them without values.

  Returns:
    `tf.TensorSpec`s of the result of `Worker.train`. Dimensions that a part
    determines during training are None.
  """
  chain = Chain(parts).with_layout(layout)
  seconds = [each.with_layout(layout) for each in chain.seconds.values()]

  def untrained(start, shared, memory, trace):
    result: Any = None
    for each in (chain, *seconds):
      carry = tf.nest.map_structure(
        lambda v: v if v is None else tf.convert_to_tensor(v),
        each.begin(start, shared, memory),
      )
      own = each.finish(start, carry, trace)
      result = own if each is chain else result.followed_by(own)
    return result

  given = tf.nest.map_structure(
    tasks.spec_of, (layout.standard(), shared, memory)
  )
  start, of_stages, of_client = given
  for each in (chain, *seconds):
    for name, part in zip(each.names, each.parts):
      if checks_hooks and not type(part).__module__.startswith('bfl_tf.'):
        kept = None if name in each.seconds else of_client.get(name)
        _check_hooks(
          part, start, of_stages.get(name), of_client.get(name), kept
        )
  traced = tf.function(untrained).get_concrete_function(*given, _trace_spec())
  outputs = traced.structured_outputs
  extras, report, factor = tf.nest.map_structure(
    tf.TensorSpec.from_tensor,
    (outputs.extras, outputs.trace.report, outputs.model.factor),
  )
  model = given[0]._replace(factor=factor)
  trace = _trace_spec()._replace(report=report)
  return tasks.Result(model, extras, given[2], trace)


def _check_hooks(part, start, shared, memory, kept):
  """Traces each hook of a user's part alone, for errors with its line number.

  `kept` is the memory that `finish` must return.

  In the training loop, each client would raise the error below hundreds of
  lines of TensorFlow.
  """

  def traced(hook, *arguments):
    name = f'{type(part).__qualname__}.{hook}'
    function = tf.function(getattr(part, hook))
    made = user_code.call(
      f'--client_parts: {type(part).__module__}:{name}',
      functools.partial(function.get_concrete_function, *arguments),
    )
    return tf.nest.map_structure(
      lambda v: v if v is None else tf.TensorSpec.from_tensor(v),
      made.structured_outputs,
    )

  number, seed = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int32)
  index = tf.TensorSpec([], tf.int32)
  step = tasks.Step(
    index, number, seed, number, number, index, None, index, number, seed
  )
  mean = tf.TensorSpec([start.loc.shape[0] + start.point.shape[0]])
  scale = tf.TensorSpec(start.scale.shape)
  natural = tf.TensorSpec([2, *start.loc.shape], tf.float64)
  carry, end = traced('begin', start, shared, memory), _trace_spec()
  after = step._replace(scale=scale)
  # Hook, arguments, and possible results.
  for hook, arguments, *wanted in (
    ('initial', (start, shared, memory), start),
    ('prior', (start, shared, memory), natural),
    ('loss', (mean, carry), number),
    ('divergence', (mean, scale, carry), number),
    ('gradient', (mean, mean, carry, step), mean),
    ('after_step', (mean, carry, after), (None, carry), (mean, carry)),
  ):
    if part.has(hook):
      made = traced(hook, *arguments)
      if not any(_is_like(made, each) for each in wanted):
        _reject(part, hook, ' or '.join(map(_shapes, wanted)), made)
  report = traced('report', carry, end)
  scalars = [spec.shape.rank == 0 for spec in tf.nest.flatten(report)]
  if not isinstance(report, dict) or not all(scalars):
    _reject(part, 'report', 'scalars by column', report)
  made = traced('finish', start, carry, end)
  if not (isinstance(made, (list, tuple)) and len(made) == 3):
    _reject(part, 'finish', 'the model, a vector or None, and the memory', made)
  # A memory without arrays may be None.
  empty = not any(tf.nest.flatten(each) for each in (kept, made[2]) if each)
  if not (empty or _is_like(made[2], kept)):
    expected = 'as its third result '
    if kept is not None:
      expected += 'a memory like that of init_memory, '
    _reject(part, 'finish', expected + _shapes(kept), made[2])


def _reject(part: Part, hook: str, expected: str, found: Any) -> None:
  """Raises an error about the result of a hook."""
  name = f'{type(part).__module__}:{type(part).__qualname__}.{hook}'
  raise user_code.RaisedError(
    f'--client_parts: {name} must return {expected}, not {_shapes(found)}.'
  )


def _shapes(specs: Any) -> str:
  """Returns the types and shapes of a structure of specs, for an error."""
  return str(
    tf.nest.map_structure(
      lambda v: v and f'{v.dtype.name} of shape {v.shape}', specs
    )
  )


def _is_like(found: Any, expected: Any) -> bool:
  """Returns whether specs have the expected structure, types and shapes."""
  try:
    tf.nest.assert_same_structure(found, expected)
  except (TypeError, ValueError):
    return False
  return all(
    own is e
    if own is None or e is None
    else own.dtype == e.dtype and own.shape.is_compatible_with(e.shape)
    for own, e in zip(tf.nest.flatten(found), tf.nest.flatten(expected))
  )
