"""Image corruptions of five kinds, each at five strengths.

The kinds follow Hendrycks and Dietterich. The strengths are our own, so scores
are comparable only within this suite.

References:
  D. Hendrycks, T. Dietterich. Benchmarking neural network robustness to common
  corruptions and perturbations. ICLR 2019.
"""

from collections.abc import Callable

import numpy as np
from scipy import ndimage

from bfl_tf import seeds

STRENGTHS = (1, 2, 3, 4, 5)


def corrupt(x: np.ndarray, kind: str, strength: int, seed: int) -> np.ndarray:
  """Returns corrupted images of the same shape and type.

  Args:
    x: `[num_images, height, width, channels]` uint8.
  """
  rng = seeds.generator(seed, f'corrupt_{kind}', strength)
  changed = KINDS[kind](x.astype(np.float32) / 255, strength - 1, rng)
  return np.rint(np.clip(changed, 0, 1) * 255).astype(np.uint8)


def _noise(x, place, rng):
  spread = (0.04, 0.08, 0.12, 0.18, 0.26)[place]
  return x + spread * rng.standard_normal(x.shape, dtype=np.float32)


def _blur(x, place, rng):
  sigma = (0.4, 0.7, 1.0, 1.5, 2.0)[place] * min(x.shape[1:3]) / 32
  return ndimage.gaussian_filter(x, (0, sigma, sigma, 0), mode='nearest')


def _contrast(x, place, rng):
  share = (0.75, 0.5, 0.4, 0.3, 0.15)[place]
  mean = x.mean(axis=(1, 2), keepdims=True)
  return mean + share * (x - mean)


def _pixelation(x, place, rng):
  share = (0.8, 0.6, 0.5, 0.35, 0.25)[place]
  rows, columns = (_coarse(size, share) for size in x.shape[1:3])
  return x[:, rows][:, :, columns]


def _coarse(size, share):
  few = max(1, round(size * share))
  shown = ((np.arange(few) + 0.5) * size / few).astype(int)
  return shown[np.arange(size) * few // size]


KINDS: dict[str, Callable] = {
  'noise': _noise,
  'blur': _blur,
  'contrast': _contrast,
  'brightness': lambda x, place, rng: x + (0.1, 0.2, 0.3, 0.4, 0.5)[place],
  'pixelation': _pixelation,
}
