"""Draw the predictive uncertainty between the data of two clients.

  python -m experiments.gap --output=gap.png

The clients observe a sine on two intervals. The model is linear in 30 Gaussian
bumps, and partitioned variational inference pools the posteriors.
"""

import tempfile

from absl import flags
from matplotlib.figure import Figure
import numpy as np

import bfl_tf
from experiments import command_line
from experiments.harness import sine

_OUTPUT = flags.DEFINE_string(
  'output', 'gap.png', 'Path of the picture to write.'
)


def main() -> None:
  """Trains the model and writes the picture."""
  config = bfl_tf.Config(
    dataset='experiments.harness.sine:sine',
    partition='natural',
    num_clients=2,
    model='experiments.harness.sine:bumps',
    likelihood='gaussian',
    client_parts=('pvi',),
    num_rounds=60,
    local_epochs=20,
    num_workers=1,
    settings={
      'gaussian.noise': 'known',
      'gaussian.noise_scale': sine.NOISE,
      'flipout.prior_scale': 1.0,
      'pvi.damping': 0.5,
    },
  )
  grid = np.linspace(-6, 6, 240, dtype=np.float32)
  with tempfile.TemporaryDirectory() as folder:
    bfl_tf.run(config, folder)
    trained = bfl_tf.load(folder)
    found = trained.predict(grid[:, np.newaxis], num_samples=400)
  figure = Figure((7, 3), layout='constrained')
  axes = figure.subplots()
  low, high = found.interval(0.9)
  axes.fill_between(grid, low, high, alpha=0.3, label='90 % interval')
  axes.plot(grid, found.mean, label='predictive mean')
  for site, rows in sine.sine().train.sites:
    seen = sine.sine().train.take(rows)
    axes.scatter(seen.x, seen.y, s=8, label=f'data of the {site} client')
  axes.set(xlabel='x', ylabel='y')
  figure.legend(loc='outside lower center', ncols=4, frameon=False, fontsize=8)
  figure.savefig(_OUTPUT.value, dpi=150)
  print(f'picture in {_OUTPUT.value}')


if __name__ == '__main__':
  command_line.main(main)
