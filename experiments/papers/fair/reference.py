"""Predictions of a reference posterior of the logistic model on features.

The posterior is that of all clients' examples together, with a prior N(0, s^2
I), sampled by HMC. s has the lowest NLL of the mode on examples that the server
holds. A file keeps the result for a set of examples.

  python -m experiments.papers.fair.reference runs/features  # its scores
"""

from collections.abc import Sequence
import hashlib
import pathlib

import numpy as np
from scipy import special

from bfl_tf import data, files, seeds
from bfl_tf.config.config import Config
from bfl_tf.federation import run_data
from bfl_tf.startup import tf
from experiments import command_line
from experiments.reference_posteriors import chains
from experiments.reference_posteriors.distance import total_variation

_SCALES = (0.02, 0.03, 0.05, 0.07, 0.1)
_NUM_CHAINS, _NUM_SAMPLES, _NUM_HELD = 4, 200, 5000


def predictions(
  config: Config, dataset: data.Dataset, folder: pathlib.Path
) -> dict[str, np.ndarray]:
  """Returns probabilities `[num_test, C]` of the posterior and of its `mode`.

  Args:
    folder: Directory of files of earlier results.
  """
  partition, held = run_data.partition_dataset(config, dataset)
  rows = np.sort(np.concatenate(partition))
  path = folder / f'reference_{hashlib.sha256(rows).hexdigest()[:16]}.npz'
  if not path.exists():
    x, held_x, test = (
      np.pad((each - dataset.mean) / dataset.std, ((0, 0), (0, 1)),
             constant_values=1).astype(np.float32)
      for each in (dataset.train.x[rows], dataset.train.x[held[:_NUM_HELD]],
                   dataset.test.x)
    )  # fmt: skip
    labels = dataset.train.y
    modes = {scale: _mode(x, labels[rows], scale) for scale in _SCALES}
    losses = {
      scale: _nll(held_x @ mode, labels[held[:_NUM_HELD]])
      for scale, mode in modes.items()
    }
    scale = min(losses, key=losses.__getitem__)
    print(f'reference posterior: NLL of held-out examples by scale {losses}')
    mode = modes[scale]
    found, root = _draws(x, labels[rows], mode, scale)
    means = _means(found, root, mode, test)
    result = {
      'posterior': means.mean(0),
      'halves': total_variation(means[::2].mean(0), means[1::2].mean(0)),
      'r_hat': found.r_hat().max(),
      'accepted': found.accepted,
      'mode': special.softmax(test @ mode, 1),
      'labels': dataset.test.y,
      'scale': scale,
    }
    with files.replacing(path) as new, new.open('wb') as file:
      np.savez(file, **result)
  with np.load(path) as found:
    return dict(found)


def main(paths: Sequence[str]) -> None:
  """Prints the scores of each stored result."""
  if len(paths) != 1:
    command_line.fail('name the directory of the files reference_*.npz.')
  for path in sorted(pathlib.Path(paths[0]).glob('reference_*.npz')):
    found = np.load(path)
    print(
      f'{path.name}: prior scale {found["scale"]:g}, R-hat '
      f'{found["r_hat"]:.3f}, distance of two halves {found["halves"]:.4f}, '
      f'accepted {np.mean(found["accepted"]):.2f}'
    )
    for name in ('posterior', 'mode'):
      probs, labels = found[name], found['labels']
      print(
        f'  {name}: accuracy {np.mean(probs.argmax(1) == labels):.4f}, '
        f'NLL {_nll(np.log(probs), labels):.4f}, distance to the posterior '
        f'{total_variation(probs, found["posterior"]):.4f}'
      )


def _mode(x, y, scale) -> np.ndarray:
  """Returns the most probable weights `[num_features + 1, C]`."""
  from sklearn import linear_model

  # The last feature is the bias, which has the same prior.
  fitted = linear_model.LogisticRegression(
    C=scale**2, fit_intercept=False, max_iter=1000, tol=1e-5
  ).fit(x, y)
  return fitted.coef_.T.astype(np.float32)


def _nll(logits, labels) -> float:
  logs = special.log_softmax(logits, 1)
  return float(-logs[np.arange(len(labels)), labels].mean())


def _draws(x, y, mode, scale) -> tuple[chains.Chains, np.ndarray]:
  """Returns chains over z, for weights `mode + root z`, and the root.

  In these coordinates the posterior has about the same width everywhere: the
  root is that of the precision with the mean variance of a class.
  """
  probs = special.softmax(x @ mode, 1)
  share = np.mean(probs * (1 - probs))
  precision = share * x.T @ x + np.eye(len(mode)) / scale**2
  values, vectors = np.linalg.eigh(precision)
  root = (vectors / np.sqrt(values)).astype(np.float32)
  examples, labels = tf.constant(x), tf.constant(y)

  def density(z):
    # One product for all chains, [num_features, num_chains * C].
    by_feature = tf.transpose(tf.reshape(z, [-1, *mode.shape]), [1, 0, 2])
    beside = tf.reshape(by_feature, [len(mode), -1])
    weights = np.tile(mode, _NUM_CHAINS) + root @ beside
    logits = tf.reshape(examples @ weights, [len(x), _NUM_CHAINS, -1])
    own = tf.repeat(labels[:, tf.newaxis], _NUM_CHAINS, 1)
    nll = tf.nn.sparse_softmax_cross_entropy_with_logits(own, logits)
    squares = tf.reshape(tf.square(weights), [len(mode), _NUM_CHAINS, -1])
    square = tf.reduce_sum(squares, [0, 2])
    return -tf.reduce_sum(nll, 0) - square / (2 * scale**2)

  rng = seeds.generator(0, 'imagenet_reference_starts')
  found = chains.sample(
    density,
    rng.standard_normal([_NUM_CHAINS, mode.size]),
    num_samples=_NUM_SAMPLES,
    burn_in=_NUM_SAMPLES // 2,
    step_size=0.1,
    seed=seeds.named(0, 'imagenet_reference'),
    # A quarter of a circle; the step size falls as dimension^-0.25.
    num_leapfrog_steps=round(1.1 * mode.size**0.25),
    together=True,
  )
  # A shift of the weights of all classes changes no prediction.
  samples = found.samples.reshape(*found.samples.shape[:2], *mode.shape)
  samples = samples - samples.mean(-1, keepdims=True)
  return found._replace(samples=samples.reshape(found.samples.shape)), root


def _means(found, root, mode, test) -> np.ndarray:
  """Returns mean probabilities `[num_chains, num_test, C]` over each chain."""
  num_samples = found.samples.shape[1]
  means = np.zeros([_NUM_CHAINS, len(test), mode.shape[1]])
  for mean, samples in zip(means, found.samples):
    for z in samples:
      weights = mode + root @ z.reshape(mode.shape)
      mean += special.softmax(test @ weights, 1) / num_samples
  return means


if __name__ == '__main__':
  command_line.main(main)
