"""Does a finished run's model know what it does not know?

  python -m experiments.doubt --run=runs/mnist --far=fashion_mnist --near=digits

Scores on the run's test examples, written to <run>/doubt: telling examples of
other sets, by entropy, aleatoric and epistemic uncertainty; staying silent;
calibration, before and after a temperature; corrupted images. Other sets are
resized to the run's images; of TFDS their test split, or NAME@SPLIT. Exit code
2: something is wrong, and nothing was written.
"""

import json
import pathlib

from absl import flags

from bfl_tf import datasets, metrics, plots
from bfl_tf.datasets import builtin, loading
from bfl_tf.federation import doubts, reopened
from bfl_tf.federation import rows as rows_lib
from experiments import finished
from experiments import flags as config_flags

flags.adopt_module_key_flags(finished)
_OTHERS = {
  distance: flags.DEFINE_list(distance, [], text)
  for distance, text in (
    ('near', 'Sets much like it: of CIFAR-10 cifar100.'),
    ('far', 'Sets of another world: of CIFAR-10 mnist.'),
  )
}
_EXAMPLES = flags.DEFINE_integer(
  'num_examples', 0, 'Of each set, so many at most; 0: all.', lower_bound=0
)
_SAMPLES = flags.DEFINE_integer(
  'num_mc_samples', None, "Of a stochastic model; the run's last if not said."
)
_CORRUPT = flags.DEFINE_boolean(
  'corrupt', True, 'Score corrupted images, if they are uint8 images.'
)

# Below it images are of another scale, as scikit-learn's digits of 0 to 16.
_DARK = 128


def main() -> None:
  """Asks, writes tables and plots, and prints the tables."""
  path = finished.path()
  try:
    run = finished.reopen()
    found = ask(run, list(others(run.dataset)))
  except ValueError as error:
    config_flags.fail(error)
  folder = path / 'doubt'
  folder.mkdir(exist_ok=True)
  for name, rows in found.items():
    # Of an earlier question, which this one does not ask.
    for kind in ('csv', 'png'):
      (folder / f'{name}.{kind}').unlink(missing_ok=True)
    if rows:
      rows_lib.write_csv(folder / f'{name}.csv', rows)
      if name != 'corruptions':
        print(f'{rows_lib.table(rows)}\n')
  rows_lib.write_text(
    folder / 'scores.json', json.dumps(doubts.flat(found), indent=2) + '\n'
  )
  for name, figure in figures(found).items():
    figure.savefig(folder / f'{name}.png')
  print(f'tables and plots in {folder}')


def others(dataset: datasets.Dataset):
  """Yields the sets that the flags name."""
  seen: set[tuple[str, str]] = set()
  for distance, flag in _OTHERS.items():
    for text in flag.value:
      name, _, split = text.partition('@')
      ours = name in builtin.BUILTIN or name.endswith(('.npz', '.csv'))
      default = 'train' if ours or loading.is_function(name) else 'test'
      x = datasets.load_unlabeled(
        name, split=split or default, like=dataset, resize=True, flag=distance
      )
      shown = pathlib.Path(name).stem if ours else name
      if (distance, shown) in seen:
        raise ValueError(
          f'--{distance}={text}: another set is called {shown} too: rename one.'
        )
      seen.add((distance, shown))
      yield doubts.Other(distance, shown, doubts.some_of(x, _EXAMPLES.value))


def ask(run: reopened.Reopened, others) -> dict[str, list[doubts.Row]]:
  """Returns the tables by name; one that cannot be made is empty."""
  trained, samples = run.trained, _SAMPLES.value
  test = doubts.some(run.test.split, _EXAMPLES.value)
  said = trained.predict(test.x, samples)
  found = {
    'detection': [
      row
      for other in others
      for row in doubts.detection(
        said, trained.predict(other.x, samples), other
      )
    ],
    'selection': list(doubts.selection(said, test.y)),
    'calibration': [doubts.calibration(said.probs, test.y)],
    'corruptions': [],
  }
  held = doubts.temperature_data(run)
  if held:
    name, split = held
    probs = trained.predict(split.x, samples).probs
    temperature = metrics.fit_temperature(probs, split.y)
    found['calibration'].append(
      doubts.calibration(said.probs, test.y, temperature)
    )
    print(f'a temperature of {temperature:.3f}, fitted on {name}')
  else:
    print(
      'no temperature: give the run a --calibration_fraction, or '
      '--calibrate_on_test=0.5 here'
    )
  if test.x.ndim == 4 and test.x.dtype == 'uint8' and test.x.max() < _DARK:
    print(
      f'pixels go up to {test.x.max()}: other sets, and corruptions, are made '
      'for 255 and lie far off'
    )
  if _CORRUPT.value and test.x.ndim == 4 and test.x.dtype == 'uint8':
    seed = trained.config.seed
    found['corruptions'] = list(doubts.corrupted(trained, test, samples, seed))
  return found


def figures(found):
  """Draws what is in the tables."""
  drawn = {}
  if found['detection']:
    rows: dict[str, dict[str, float]] = {}
    for row in found['detection']:
      name = f'{row["set"]} ({row["distance"]})'
      shown = row['measure'].replace('_', ' ').capitalize()
      rows.setdefault(name, {})[shown] = row['auroc']
    drawn['detection'] = plots.dots(
      rows, 'AUROC (0.5 knows nothing)', 'Telling other sets from the test set'
    )
  if found['corruptions']:
    drawn['corruptions'] = plots.corruption(found['corruptions'])
  return drawn


if __name__ == '__main__':
  config_flags.main(main)
