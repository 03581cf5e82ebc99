"""The chain of client parts: how it begins a training, and how it ends one."""

import functools
from typing import Any

import tensorflow as tf

from bfl_tf import own
from bfl_tf import weights as weights_lib
from bfl_tf.training import jobs

_TRACE = jobs.Trace(
  tf.TensorSpec([], tf.int32),
  tf.TensorSpec([], tf.float32),
  tf.TensorSpec([], tf.float32),
)


def laid_out(parts: tuple, layout: weights_lib.Layout) -> tuple:
  """Returns the parts for a model."""
  return tuple(
    part.laid_out(layout) if hasattr(part, 'laid_out') else part
    for part in parts
  )


def begin(
  parts: tuple, start: weights_lib.Weights, shared: Any, memory: Any
) -> tuple:
  """Returns what each part carries; arguments as in `Job`."""
  return tuple(
    part.begin(start, shared.get(part.name), memory.get(part.name))
    if hasattr(part, 'begin')
    else ()
    for part in parts
  )


def giver(parts: tuple) -> Any:
  """Returns the part that gives clients their prior, or None.

  Raises:
    ValueError: there are two.
  """
  givers = [part for part in parts if hasattr(part, 'prior')]
  if len(givers) > 1:
    names = ' and '.join(part.name for part in givers)
    raise ValueError(
      f'--client_parts: {names} each give clients their prior: choose one.'
    )
  return givers[0] if givers else None


def finish(
  parts: tuple, model: weights_lib.Weights, carry: tuple, trace: jobs.Trace
) -> jobs.Result:
  """Returns what the parts make of a trained model, and what they report."""
  extra, memory, report = {}, {}, {}
  for part, kept in zip(parts, carry):
    if hasattr(part, 'report'):
      for column, number in part.report(kept, trace).items():
        report[f'{part.name}_{column}'] = tf.cast(number, tf.float32)
    if hasattr(part, 'finish'):
      model, sent, remembered = part.finish(model, kept, trace)
      if sent is not None:
        extra[part.name] = sent
      if hasattr(part, 'init_memory'):
        memory[part.name] = remembered
  return jobs.Result(model, extra, memory, trace._replace(report=report))


def _check_hooks(part, start, shared, memory):
  """Traces each hook of a user's part alone: an error names it and its line.

  In the training loop the same error would be raised once for each client,
  below hundreds of lines of TensorFlow's.
  """

  def traced(hook, *arguments):
    if not hasattr(part, hook):
      return ()
    name = f'{type(part).__qualname__}.{hook}'
    function = tf.function(getattr(part, hook))
    made = own.call(
      f'--client_parts: {type(part).__module__}:{name}',
      functools.partial(function.get_concrete_function, *arguments),
    )
    return tf.nest.map_structure(
      lambda v: v if v is None else tf.TensorSpec.from_tensor(v),
      made.structured_outputs,
    )

  number, seed = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int32)
  index = tf.TensorSpec([], tf.int32)
  step = jobs.Step(index, number, seed, number, number, index)
  mean = tf.TensorSpec([start.loc.shape[0] + start.point.shape[0]])
  traced('prior', start, shared, memory)
  carry = traced('begin', start, shared, memory)
  traced('loss', mean, carry)
  traced('gradient', mean, mean, carry, step)
  traced('after_step', mean, carry, step)


def result_like(
  parts: tuple, layout: weights_lib.Layout, shared: Any, memory: Any
) -> jobs.Result:
  """Says what a training returns, without one: the parts begin and end.

  Args:
    parts: the chain.
    layout: of the model.
    shared: as in `Job`.
    memory: as in `Job`; what comes back must be like it.

  Returns:
    `tf.TensorSpec`s of what `Worker.train` returns. A dimension that a part
    finds out while it trains is None, and so is a factor's rank.
  """
  parts = laid_out(parts, layout)

  def untrained(start, shared, memory, trace):
    carry = tf.nest.map_structure(
      lambda v: v if v is None else tf.convert_to_tensor(v),
      begin(parts, start, shared, memory),
    )
    return finish(parts, start, carry, trace)

  given = tf.nest.map_structure(
    jobs.spec_of, (layout.standard(), shared, memory)
  )
  for part in parts:
    if not type(part).__module__.startswith('bfl_tf.'):
      start, of_stages, of_client = given
      _check_hooks(
        part, start, of_stages.get(part.name), of_client.get(part.name)
      )
  traced = tf.function(untrained).get_concrete_function(*given, _TRACE)
  outputs = traced.structured_outputs
  extra, report = tf.nest.map_structure(
    tf.TensorSpec.from_tensor, (outputs.extra, outputs.trace.report)
  )
  model = given[0]._replace(factor=jobs.any_rows(given[0].factor))
  return jobs.Result(model, extra, given[2], _TRACE._replace(report=report))
