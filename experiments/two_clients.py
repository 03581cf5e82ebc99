"""Draw the uncertainty of two clients, of their pooled posterior and of FedAvg.

  python -m experiments.two_clients --output=two_clients.png

Each client holds one half of a two-dimensional data set. All four models see
the same number of training steps per client.
"""

import pathlib
import tempfile

from absl import flags
from matplotlib.figure import Figure
import numpy as np

import bfl_tf
from experiments import command_line
from experiments.harness import moons

_OUTPUT = flags.DEFINE_string(
  'output', 'two_clients.png', 'Path of the picture to write.'
)
_EXTENT = (-2.5, 3.5, -2.0, 2.5)


def main() -> None:
  """Trains the four models and writes the picture."""
  panels = {
    'Left client alone': ('left', 'flipout'),
    'Right client alone': ('right', 'flipout'),
    'Pooled posterior': ('both', 'flipout'),
    'FedAvg': ('both', 'deterministic'),
  }
  figure = Figure((12, 3.2), layout='constrained')
  grid = np.stack(np.meshgrid(
    np.linspace(*_EXTENT[:2], 91, dtype=np.float32),
    np.linspace(*_EXTENT[2:], 91, dtype=np.float32),
  ), -1)  # fmt: skip
  every = figure.subplots(1, len(panels), sharex=True, sharey=True)
  with tempfile.TemporaryDirectory() as folder:
    for axes, (title, (name, variant)) in zip(every, panels.items()):
      run = pathlib.Path(folder) / title
      bfl_tf.run(_config(name, variant), run)
      prediction = bfl_tf.load(run).predict(
        grid.reshape(-1, 2), num_samples=200
      )
      entropy = prediction.normalized_entropy.reshape(grid.shape[:2])
      image = axes.imshow(
        entropy, extent=_EXTENT, origin='lower', vmin=0, vmax=1, aspect='auto'
      )
      seen = getattr(moons, name)().train
      for label, color in ((0, 'white'), (1, 'black')):
        axes.scatter(*seen.x[seen.y == label].T, s=4, color=color)
      axes.set(title=title, xticks=[], yticks=[])
  figure.colorbar(image, ax=every, label='predictive uncertainty')
  figure.savefig(_OUTPUT.value, dpi=150)
  print(f'picture in {_OUTPUT.value}')


def _config(name, variant):
  config = bfl_tf.Config(
    dataset=f'experiments.harness.moons:{name}',
    partition='natural' if name == 'both' else 'iid',
    num_clients=2 if name == 'both' else 1,
    model='mlp',
    variant=variant,
    num_rounds=60,
    local_epochs=5,
    batch_size=32,
    client_learning_rate=0.01,
    num_workers=1,
    settings={'mlp.hidden_units': (32, 32)},
  )
  if variant == 'deterministic':
    return config
  flipout = {'flipout.prior_scale': 1.0}
  if name != 'both':
    return config.replace(**flipout)
  # In partitioned variational inference, each client's prior contains the
  # likelihood term of the other client.
  return config.replace(
    client_parts=('pvi',), **flipout, **{'pvi.damping': 0.5}
  )


if __name__ == '__main__':
  command_line.main(main)
