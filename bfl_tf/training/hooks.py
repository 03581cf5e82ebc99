"""The shapes of a training's result, and checks of a user's hooks."""

from collections.abc import Sequence
import functools
from typing import Any, NamedTuple

from bfl_tf import parts as parts_lib
from bfl_tf import weights
from bfl_tf.declare import user_code
from bfl_tf.startup import tf
from bfl_tf.training import tasks
from bfl_tf.training.chain import Chain


class TraceResult(NamedTuple):
  """Result of `trace`.

  Attributes:
    result: `tf.TensorSpec`s of the result of `Worker.train`. Dimensions that a
      part determines during training are None.
  """

  result: tasks.Result
  start_changed_by: frozenset[str]
  model_changed_by: frozenset[str]


def _trace_spec() -> tasks.Trace:
  number = tf.TensorSpec([], tf.float32)
  return tasks.Trace(tf.TensorSpec([], tf.int32), number, number)


def trace(
  parts: Sequence[parts_lib.Local],
  layout: weights.Layout,
  shared: Any,
  memory: Any,
  checks_hooks: bool = True,
  rank: int = 0,
) -> TraceResult:
  """Traces the hooks of client parts that have the layout.

  Args:
    checks_hooks: Whether to check each hook of a user's part. The check traces
      hooks, so that a debugger would stop in them without values.
  """
  chain = Chain(parts)

  def untrained(start, shared, memory, trace):
    result: Any = None
    trained = start
    if rank:
      trained = start._replace(factor=tf.zeros([rank, start.loc.shape[0]]))
    ctx = parts_lib.Context(start, start, shared)
    for each in (chain, *chain.seconds.values()):
      _, carry = each.begin(ctx, memory)
      carry = tf.nest.map_structure(
        lambda v: v if v is None else tf.convert_to_tensor(v), carry
      )
      own = each.end(trained, carry, trace)
      result = own if each is chain else result.followed_by(own)
    return result

  given = tf.nest.map_structure(
    tasks.spec_of, (layout.standard(), shared, memory)
  )
  start, of_servers, of_client = given
  for part in parts:
    if checks_hooks and not type(part).__module__.startswith('bfl_tf.'):
      _check_hooks(
        part, start, of_servers.get(part.name), of_client.get(part.name)
      )
  traced = tf.function(untrained).get_concrete_function(*given, _trace_spec())
  outputs = traced.structured_outputs
  extras, report, factor = tf.nest.map_structure(
    tf.TensorSpec.from_tensor,
    (outputs.extras, outputs.trace.report, outputs.model.factor),
  )
  model = start._replace(factor=factor)
  of_trace = _trace_spec()._replace(report=report)
  return TraceResult(
    tasks.Result(model, extras, of_client, of_trace),
    frozenset(chain.start_changed_by),
    frozenset(chain.model_changed_by),
  )


def _check_hooks(part, start, shared, memory):
  """Traces each hook of a user's part alone, for errors with its line number.

  In the training loop, each client would raise the error below hundreds of
  lines of TensorFlow.
  """

  def traced(hook, function, *arguments):
    name = f'{type(part).__qualname__}.{hook}'
    graph = user_code.call(
      f'--client_parts: {type(part).__module__}:{name}',
      functools.partial(
        tf.function(function).get_concrete_function, *arguments
      ),
    )
    return tf.nest.map_structure(
      lambda v: v if v is None else tf.TensorSpec.from_tensor(v),
      graph.structured_outputs,
    )

  number, seed = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int32)
  index = tf.TensorSpec([], tf.int32)
  step = tasks.Step(
    index, number, seed, number, number, index, None, index, number, seed
  )
  mean = tf.TensorSpec([start.loc.shape[0] + start.point.shape[0]])
  loc = tf.TensorSpec(start.loc.shape)
  natural = tf.TensorSpec([2, *start.loc.shape], tf.float64)

  def begin(start, shared, memory):
    # `begin` may be called through a name only, for AutoGraph.
    return part.begin(parts_lib.Context(start, start, shared), memory)

  specs = traced('begin', begin, start, shared, memory)
  if not isinstance(specs, parts_lib.Start):
    _reject(part, 'begin', 'a Start', specs)
  if not _is_like(specs.weights, start):
    _reject(part, 'begin', f'a Start with weights {_shapes(start)}', specs)
  carry, end = specs.carry, _trace_spec()
  # Hook, arguments, and possible results.
  for hook, arguments, *wanted in (
    ('prior', (carry,), parts_lib.Natural(natural, number),
     parts_lib.Normal(loc, loc)),
    ('gradient', (mean, mean, carry, step), mean),
    ('after', (mean, carry, step._replace(scale=loc)), (mean, carry)),
  ):  # fmt: skip
    if part.has(hook):
      specs = traced(hook, getattr(part, hook), *arguments)
      if not any(_is_like(specs, each) for each in wanted):
        _reject(part, hook, ' or '.join(map(_shapes, wanted)), specs)
  specs = traced('end', part.end, start, carry, end)
  if not isinstance(specs, parts_lib.Sent):
    _reject(part, 'end', 'a Sent', specs)
  if not all(s.shape.rank == 0 for s in tf.nest.flatten(dict(specs.report))):
    _reject(part, 'end', 'a report of scalars', specs.report)
  # A memory without arrays may be None.
  empty = not any(
    tf.nest.flatten(each) for each in (memory, specs.memory) if each
  )
  if not (empty or _is_like(specs.memory, memory)):
    expected = f'a memory like that of the hook memory, {_shapes(memory)}'
    _reject(part, 'end', expected, specs.memory)


def _reject(part: Any, hook: str, expected: str, specs: Any) -> None:
  """Raises an error about the result of a hook."""
  name = f'{type(part).__module__}:{type(part).__qualname__}.{hook}'
  raise user_code.RaisedError(
    f'--client_parts: {name} must return {expected}, not {_shapes(specs)}.'
  )


def _shapes(specs: Any) -> str:
  """Returns the types and shapes of a structure of specs, for an error."""
  return str(
    tf.nest.map_structure(
      lambda v: (
        f'{v.dtype.name} of shape {v.shape}' if hasattr(v, 'dtype') else v
      ),
      specs,
    )
  )


def _is_like(specs: Any, expected: Any) -> bool:
  """Returns whether specs have the expected structure, types and shapes."""
  try:
    tf.nest.assert_same_structure(specs, expected)
  except (TypeError, ValueError):
    return False
  return all(
    own is e
    if own is None or e is None
    else own.dtype == e.dtype and own.shape.is_compatible_with(e.shape)
    for own, e in zip(tf.nest.flatten(specs), tf.nest.flatten(expected))
  )
