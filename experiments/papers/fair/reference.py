"""Predictions of a reference posterior of the logistic model on features.

The posterior is the Laplace approximation with full covariance of all clients'
examples together, with a prior N(0, s^2 I). s has the lowest NLL of the mode on
examples that the server holds. A file keeps the result for a set of examples.

  python -m experiments.papers.fair.reference runs/features  # its scores
"""

from collections.abc import Sequence
import hashlib
import pathlib

import numpy as np
from scipy import linalg, special

from bfl_tf import data, seeds
from bfl_tf.config.config import Config
from bfl_tf.federation import run_data
from experiments import command_line
from experiments.reference_posteriors.distance import total_variation

_SCALES = (0.02, 0.03, 0.05, 0.07, 0.1)
_NUM_DRAWS, _NUM_HELD = 500, 5000


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
    np.savez(
      path,
      posterior=_mean(x, mode, scale, test),
      mode=special.softmax(test @ mode, 1),
      labels=dataset.test.y,
      scale=scale,
    )
  with np.load(path) as found:
    return dict(found)


def main(paths: Sequence[str]) -> None:
  """Prints the scores of each stored result."""
  if len(paths) != 1:
    command_line.fail('name the directory of the files reference_*.npz.')
  for path in sorted(pathlib.Path(paths[0]).glob('reference_*.npz')):
    found = np.load(path)
    print(f'{path.name}, prior scale {found["scale"]:g}')
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


def _mean(x, mode, scale, test) -> np.ndarray:
  """Returns mean probabilities over draws of the posterior's weights."""
  num_features, num_classes = mode.shape
  probs = special.softmax(x @ mode, 1)
  precision = np.empty([num_classes, num_features] * 2)
  for a in range(num_classes):
    for b in range(a + 1):
      weight = probs[:, a] * ((a == b) - probs[:, b])
      block = x.T @ (weight[:, np.newaxis] * x)
      precision[a, :, b], precision[b, :, a] = block, block.T
  precision = precision.reshape(mode.size, mode.size)
  precision[np.diag_indices(mode.size)] += scale**-2
  lower = linalg.cholesky(
    precision, lower=True, overwrite_a=True, check_finite=False
  )
  noise = seeds.generator(0, 'imagenet_reference').standard_normal(
    [mode.size, _NUM_DRAWS]
  )
  draws = linalg.solve_triangular(
    lower, noise, trans='T', lower=True, overwrite_b=True, check_finite=False
  )
  total = np.zeros([len(test), num_classes])
  for draw in draws.T:
    weights = mode + draw.reshape(num_classes, num_features).T
    total += special.softmax(test @ weights.astype(np.float32), 1)
  return total / _NUM_DRAWS


if __name__ == '__main__':
  command_line.main(main)
