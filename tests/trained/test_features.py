"""Features of a network: of what it was not trained on, by the binary too."""

import pathlib

import binaries
import numpy as np
import pytest
import toys

from bfl_tf import config as config_lib
from bfl_tf import datasets
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf.trained import features

pytestmark = pytest.mark.process


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A pre-trained network, and its directory."""
  path = tmp_path_factory.mktemp('features') / 'run'
  config = config_lib.Config(
    dataset='toys:halves', variant='deterministic', num_clients=1,
    num_rounds=1, settings={'mlp.hidden_units': (7,)},
  )  # fmt: skip
  runs_lib.run(config, path)
  return path


def test_clients_rows_are_those_it_has_not_seen(run):
  trained, whole = trained_lib.load(run), toys.blobs()
  found = features.of_dataset(trained, whole)
  assert np.array_equal(found['y_train'], whole.train.y[100:])
  assert found['x_train'].shape == (50, 7) and len(found['x_test']) == 60
  # The head on them says what the network says.
  kernel, bias = trained.model.trainable_variables[-2:]
  logits = found['x_test'] @ kernel.numpy() + bias.numpy()
  probs = np.exp(logits - logits.max(-1, keepdims=True))
  probs /= probs.sum(-1, keepdims=True)
  np.testing.assert_allclose(
    probs, trained.predict(whole.test.x).probs, atol=1e-5
  )


def test_the_binary_writes_a_data_set_or_says_in_a_line_why_not(run, tmp_path):
  path = tmp_path / 'features.npz'
  blobs = '--dataset=toys:blobs'
  lines = [
    [f'--run={run}', blobs, f'--output={path}'],
    [f'--run={run}'],
    [f'--run={run}', blobs, f'--output={tmp_path}/features.csv'],
    [f'--run={tmp_path}', blobs, f'--output={path}'],
    [f'--run={run}', '--dataset=wine', f'--output={path}'],
    [f'--run={run}', blobs, '--train_split=train[:9]', f'--output={path}'],
  ]
  (code, out, _), *wrong = binaries.drive(
    'experiments.features', lines, pathlib.Path(__file__).parents[1]
  )
  assert code == 0
  assert '50 examples for clients and 60 to test, 7 features each' in out
  dataset = datasets.load(str(path))
  assert dataset.num_classes == 3 and dataset.train.x.shape == (50, 7)
  for (code, _, error), message in zip(
    wrong,
    (
      'give --run and --output',
      'features.csv must end in .npz',
      'holds no run: name the --output_dir of one',
      'raw examples of shape (4,)',
      '--train_split=',
    ),
  ):
    assert code == 2 and message in error and error.count('\n') == 1, error
  assert [p.name for p in tmp_path.iterdir()] == ['features.npz']


def test_a_table_is_read_as_the_run_read_it(tmp_path):
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(100, 3)), np.arange(100) % 2
  np.savez(tmp_path / 'own.npz', x=x.astype(np.float32), y=y)
  config = config_lib.Config(
    dataset=str(tmp_path / 'own.npz'), test_fraction=0.1, validation_split=0.1
  )
  found = features.read(config, config.dataset, test_split='test')
  assert found.test.y.size == 10 and found.train.y.size == 90
  other = features.read(config, 'wine', train_split='train')
  assert other.name == 'wine' and other.test.y.size > 10


def test_columns_go_by_their_names(tmp_path):
  def table(name, header, lines):
    path = tmp_path / name
    path.write_text(
      '\n'.join(','.join(map(str, line)) for line in [header, *lines]) + '\n'
    )
    return str(path)

  rng = np.random.default_rng(0)
  rows = [[*rng.normal(size=2), i % 2] for i in range(60)]
  first = table('first.csv', ['a', 'b', 'kind'], rows[:30])
  config = config_lib.Config(
    dataset=first, label_column='kind', variant='deterministic', num_clients=1,
    num_rounds=1, settings={'mlp.hidden_units': (4,)},
  )  # fmt: skip
  runs_lib.run(config, tmp_path / 'run', show_progress=False)
  trained = trained_lib.load(tmp_path / 'run')

  def found(path):
    return features.of_dataset(trained, features.read(config, path))

  same = found(table('same.csv', ['a', 'b', 'kind'], rows[30:]))
  assert len(same['y_train']) + len(same['y_test']) == 30
  turned = table('turned.csv', ['b', 'a', 'kind'], rows[30:])
  with pytest.raises(ValueError, match='trained on a, b'):
    found(turned)


def test_what_is_wrong_is_one_line(run, tmp_path):
  trained = trained_lib.load(run)
  own = trained_lib.load(run).config.dataset
  with pytest.raises(ValueError, match='was trained on every example of it'):
    features.of_dataset(trained, datasets.load(own))
  with pytest.raises(ValueError, match='raw examples of shape'):
    features.of_dataset(trained, datasets.load('wine'))
  stochastic = trained_lib.Trained(
    trained.config.replace(variant='flipout'), trained.task, trained.weights
  )
  with pytest.raises(ValueError, match='--run is of --variant=flipout'):
    features.of_dataset(stochastic, toys.blobs())
