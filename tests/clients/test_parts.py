"""Tests of the hooks of client parts in the training loop."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import parts as parts_lib


@dataclasses.dataclass(frozen=True)
class Affine(parts_lib.Local):
  """Maps the gradient to `factor * gradient + offset`."""

  name = 'affine'
  factor: float = 1.0
  offset: float = 0.0

  def gradient(self, gradient, mean, carry, step):
    return self.factor * gradient + self.offset


class Shift(Affine):
  """The same part with another name."""

  name = 'shift'


class Diary(parts_lib.Local):
  """Records start and rates; moves the mean by the shared value."""

  name = 'diary'

  def memory(self, model):
    return np.zeros([2], np.float32)

  def begin(self, ctx, memory):
    carry = {'start': ctx.start.mean, 'shared': ctx.shared, 'memory': memory}
    return parts_lib.Start(ctx.start, {**carry, 'rates': tf.zeros([20])})

  def after(self, mean, carry, step):
    row = tf.one_hot(step.index, 20) * step.learning_rate
    return mean + carry['shared'], {**carry, 'rates': carry['rates'] + row}

  def end(self, model, carry, trace):
    memory = carry['memory'] + tf.stack([1.0, trace.sum_rates])
    extra = tf.concat([carry['rates'], carry['start']], 0)
    sent = model._replace(point=2 * model.point)
    return parts_lib.Sent(sent, memory, extra=extra)


def train(*parts, task, **settings):
  return toys.worker(parts=parts, **settings).train(task)


def start():
  return toys.start(toys.worker())


def test_parts_that_do_nothing_change_no_bits():
  for variant in ('deterministic', 'flipout'):
    begin = toys.start(toys.worker(variant=variant))
    task = toys.task(begin, epochs=3)
    plain = train(task=task, variant=variant)
    idle = (toys.Idle(), Affine())
    same = train(*idle, task=task, variant=variant, weight_decay=0.0)
    assert toys.same(plain.model, same.model)
    assert toys.same(plain.trace, same.trace)
    assert same.extras == same.memory == {}


def test_gradient_hooks_run_in_the_order_of_the_parts():
  begin = start()
  task = toys.task(begin, rate=0.5, batch_size=50)
  settings = {'task': task, 'batch_size': 50}

  def gradient(*parts):
    moved = train(*parts, **settings).model.point - begin.point
    return moved / np.float32(-0.5)

  plain = gradient()
  tolerance = {'rtol': 1e-4, 'atol': 1e-6}
  double, shift = Affine(2.0), Shift(offset=0.5)
  got = gradient(double, shift)
  np.testing.assert_allclose(got, 2 * plain + 0.5, **tolerance)
  got = gradient(shift, double)
  np.testing.assert_allclose(got, 2 * (plain + 0.5), **tolerance)


def test_gradient_hooks_follow_weight_decay_and_do_not_change_scales():
  worker = toys.worker(
    variant='flipout', batch_size=50, parts=(Affine(0.0, 1.0),),
    weight_decay=0.3,
  )  # fmt: skip
  begin = toys.start(worker)
  got = worker.train(toys.task(begin, rate=0.5, batch_size=50)).model
  np.testing.assert_allclose(got.loc, begin.loc - 0.5, rtol=1e-5, atol=1e-6)
  assert np.all(got.scale != begin.scale)


def test_shared_values_memory_and_extras_pass_through_training():
  part, begin = Diary(), start()
  task = toys.task(
    begin,
    epochs=2,
    rate=0.1 * 0.5 ** np.arange(8),
    shared={'diary': np.full(15, 0.25, np.float32)},
    memory={'diary': np.float32([3, 7])},
  )
  worker = toys.worker(parts=(part, Affine(0.0)))
  result = worker.train(task)
  # Without gradients, a step adds the shared value; `end` doubles the mean.
  expected = 2 * (begin.point + 8 * 0.25)
  np.testing.assert_allclose(result.model.point, expected, rtol=1e-5)
  rates = np.zeros(20)
  rates[:8] = 0.1 * 0.5 ** np.arange(8)
  extra = np.concatenate([rates, begin.mean])
  np.testing.assert_allclose(result.extras['diary'], extra, rtol=1e-5)
  expected = [4, 7 + rates.sum()]
  np.testing.assert_allclose(result.memory['diary'], expected, rtol=1e-5)
  # The returned memory is an input of the next training.
  again = worker.train(task._replace(memory=result.memory))
  assert again.memory['diary'][0] == 5
  assert list(result.extras) == list(result.memory) == ['diary']


class TooFewArguments(toys.Idle):
  """A part whose hook lacks an argument."""

  def gradient(self, gradient):
    return gradient


@dataclasses.dataclass(frozen=True)
class Wrong(toys.Idle):
  """One of its hooks returns a value of another type or shape."""

  hook: str = 'begin'

  def begin(self, ctx, memory):
    return (
      ctx.start if self.hook == 'begin' else parts_lib.Start(ctx.start, 1.0)
    )

  def gradient(self, gradient, mean, carry, step):
    return None if self.hook == 'gradient' else gradient

  def after(self, mean, carry, step):
    carry = 1 if self.hook == 'carry' else carry
    return mean[:-1] if self.hook == 'after' else mean, carry

  def end(self, model, carry, trace):
    report = {'mean': model.mean} if self.hook == 'report' else {}
    memory = carry if self.hook == 'memory' else None
    sent = parts_lib.Sent(model, memory, report)
    return model if self.hook == 'end' else sent


@pytest.mark.parametrize(
  'part, hook, named',
  [
    (TooFewArguments, '', r'TooFewArguments\.gradient.*TypeError'),
    (Wrong, 'carry', r'Wrong\.after'),
    *(
      (Wrong, hook, rf'Wrong\.{hook}')
      for hook in ('begin', 'gradient', 'after', 'end')
    ),
    *((Wrong, hook, r'Wrong\.end') for hook in ('report', 'memory')),
  ],
)
def test_a_wrong_hook_is_rejected_before_any_round(part, hook, named):
  settings = {'Wrong.hook': hook} if hook else {}
  name = f'{__name__}:{part.__name__}'
  with pytest.raises(ValueError, match=named):
    toys.experiment(client_parts=(name,), **settings)
