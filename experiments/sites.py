"""Write a data set whose clients are sites with their own test examples.

  bfl-tf sites --dataset=fashion_mnist --partition=dirichlet \\
    --dirichlet.alpha=0.5 --num_clients=10 --output=sites.npz
  bfl-tf run --dataset=sites.npz --partition=natural --num_clients=10 ...

The flags of data and partition are those of bfl-tf run. The test examples of a
class are divided in proportion to the clients' training examples of this class,
so that bfl-tf report scores each client on its own class proportions. Examples
that flags such as --calibration_fraction hold out are not written: hold them
out in the run. Exit code 2: a flag is wrong, and nothing was written.
"""

import pathlib

from absl import flags
import numpy as np

from bfl_tf import files
from bfl_tf.data import encoding, shares
from bfl_tf.federation import run_data
from experiments import command_line

command_line.define()
flags.adopt_module_key_flags(command_line)
_OUTPUT = flags.DEFINE_string('output', None, 'Path of the .npz file to write.')


def main() -> None:
  """Writes the file and prints its number of sites and examples."""
  if not _OUTPUT.value:
    command_line.fail('--output is missing: name an .npz file.')
  path = pathlib.Path(_OUTPUT.value)
  if path.suffix != '.npz' or path.exists():
    command_line.fail(f'--output={path} must be a new file with suffix .npz.')
  config = command_line.config()
  dataset = run_data.load(config)
  if dataset.train.is_numeric:
    command_line.fail('--likelihood=gaussian: bfl-tf sites needs classes.')
  if encoding.has_gaps(dataset.features).any():
    command_line.fail(
      f'--dataset={config.dataset} has missing values, which an .npz file '
      'cannot contain: fill them.'
    )
  if dataset.test.ids is not None and config.partition == 'natural':
    command_line.fail(
      f'--dataset={config.dataset} has sites already: bfl-tf run divides it by '
      '--partition=natural.'
    )
  clients, _ = run_data.partition_dataset(config, dataset)
  train, test = dataset.train, dataset.test
  test_ids = shares.test_clients(train.y, test.y, clients, config.seed_of_data)
  rows, used = np.concatenate(clients), test_ids >= 0
  path.parent.mkdir(parents=True, exist_ok=True)
  with files.replacing(path) as new, new.open('wb') as file:
    np.savez_compressed(
      file,
      x_train=train.x[rows],
      y_train=train.y[rows],
      client_ids=np.repeat(np.arange(len(clients)), [len(c) for c in clients]),
      x_test=test.x[used],
      y_test=test.y[used],
      client_ids_test=test_ids[used],
      class_names=np.array(dataset.class_names or range(dataset.num_classes)),
    )
  print(
    f'{len(clients)} sites with {len(rows)} training and {used.sum()} test '
    f'examples in {path}'
  )


if __name__ == '__main__':
  command_line.main(main)
