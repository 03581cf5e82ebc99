"""Benchmark of FedBE's teachers and student against bare computation."""

import dataclasses
import functools
import statistics as stats

import numpy as np

from bfl_tf import federation, parts, statistics, training
from bfl_tf.config.config import Config
from bfl_tf.startup import tf
from experiments.benchmarks import measuring, random_images

_NUM_IMAGES, _NUM_CLIENTS, _BATCH_SIZE = 10000, 10, 128
_SEED = np.zeros(2, np.int32)


def run(name: str, num_workers: int, repeats: int) -> None:
  """Prints one line for the teachers and one for the student."""
  config = Config(
    dataset=random_images.dataset(name),
    model=random_images.SHAPES[name].network,
    variant='deterministic',
    client_optimizer='sgd',
    num_clients=_NUM_CLIENTS,
    num_server_examples=20 * _BATCH_SIZE,
    server_parts=('distil',),
    num_workers=num_workers,
    settings={
      'sgd.momentum': 0.9,
      'distil.batch_size': _BATCH_SIZE,
      'distil.epochs': 5,
      'distil.swa_start': 0,
    },
  )
  experiment = federation.Experiment.build(config)
  _teachers(name, experiment, repeats)
  _student(name, experiment, repeats)


def _teachers(name, experiment, repeats):
  workers, like = experiment.workers, experiment.initial_weights()
  ensemble = experiment.plan.servers[-1].ensemble
  weighed = _weighed(like)
  shape = (_NUM_IMAGES, *experiment.dataset.input_shape)
  x = np.resize(experiment.dataset.train.x, shape)

  ctx = parts.ServerContext(like, like, seed=_SEED, tools=experiment.tools)

  def groups():
    shares = (
      statistics.collected(ensemble, update, weight, like)
      for update, weight in weighed
    )
    sums = statistics.values(functools.reduce(statistics.merge, shares))
    return ensemble.make(sums, ctx, _SEED)[0]

  def predict(made=None):
    mixtures = training.Mixtures(workers[0].likelihood)
    for group, member in training.predict_members(
      workers, made or groups(), x, seed=_SEED
    ):
      mixtures.add(group, member)
    return mixtures.union(ensemble.group_names)

  bare = [measuring.bare_passes(worker, x[:256]) for worker in workers]
  members = sum(len(group) for group in groups().values())
  passes = members * _NUM_IMAGES // (256 * len(workers))
  share = passes * 256 * len(workers) / (members * _NUM_IMAGES)

  def all_passes():
    measuring.on_all(workers, bare, passes)

  predict(), all_passes()
  ratios, fits = [], []
  for _ in range(repeats):
    expected = measuring.seconds(all_passes)
    found = measuring.seconds(predict)
    ratios.append(expected / share / found)
    fit = measuring.seconds(lambda: [list(g) for g in groups().values()])
    fits.append(fit / found)
  made = groups()
  models = measuring.peak(lambda: predict(made)) / like.num_bytes
  print(
    f'{name:9} {members} teachers on {_NUM_IMAGES} images, {len(workers)} '
    f'workers: of the bare forward passes {measuring.spread(ratios)}; fitting '
    f'and sampling {100 * stats.median(fits):.1f} % of it; peak extra memory '
    f'of predicting {models:.1f} models',
    flush=True,
  )


def _student(name, experiment, repeats):
  distil_part, like = experiment.plan.servers[-1], experiment.initial_weights()
  tools = experiment.tools
  student = distil_part.student(tools)
  steps = distil_part.epochs * 20
  # The bare step is without SWA, whose time counts as overhead.
  bare = measuring.bare_steps(
    dataclasses.replace(distil_part, optimizer='sgd').student(tools),
    _BATCH_SIZE,
  )
  size = 20 * _BATCH_SIZE
  uniform = np.full((size, 10), 0.1, np.float32)
  mixtures = training.Mixtures(student.likelihood)
  mixtures.add('A', training.Predictive(uniform, *np.zeros((3, size))))

  def bare_steps():
    with tf.device(student.device):
      bare(tf.constant(steps))

  def distil():
    _, info = distil_part.distilled(tools, like, mixtures, _SEED)
    if info['students_refused']:
      raise RuntimeError('There was nothing to measure.')

  distil(), bare_steps()
  ratios = [
    measuring.seconds(bare_steps) / measuring.seconds(distil)
    for _ in range(repeats)
  ]
  print(
    f'{name:9} distillation: of the bare training step '
    f'{measuring.spread(ratios)}',
    flush=True,
  )


def _weighed(like):
  rng = np.random.default_rng(0)
  noise = 0.01 * rng.standard_normal((_NUM_CLIENTS, like.mean.size))
  models = (like.replace_mean(like.mean + each) for each in noise)
  return [(statistics.ClientUpdate(k, 1, m), 1.0) for k, m in enumerate(models)]
