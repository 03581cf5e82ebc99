"""Nodes with files of their own: the bits of one process with all of them."""

import json

import fake
import numpy as np
import pytest
import wines
from wines import play, wine, write

from bfl_tf import datasets
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf.trained import reopened


def together(path, files, server):
  """An .npz of what the nodes train on, and the server tests on."""
  parts = [datasets.load(file) for file in files]
  own = datasets.load(server)
  numbers = {name: n for n, name in enumerate(sorted(wines.NAMES))}

  def labels(dataset, split):
    return [numbers[dataset.class_names[c]] for c in split.y]

  np.savez(
    path,
    x_train=np.concatenate([part.train.x for part in parts]),
    y_train=np.concatenate([labels(part, part.train) for part in parts]),
    x_test=np.concatenate([own.train.x, own.test.x]),
    y_test=np.concatenate([labels(own, own.train), labels(own, own.test)]),
    client_ids=np.repeat(range(3), [len(part.train.y) for part in parts]),
  )
  return str(path)


def test_the_bits_of_one_process_with_all_the_files(tmp_path):
  *files, server = wine(tmp_path)
  config = play(tmp_path / 'nodes', files, server, engine='flower')
  alone = config.replace(
    dataset=together(tmp_path / 'a.npz', files, server), engine='local'
  )
  runs_lib.Run(alone, tmp_path / 'alone', False).play()
  table, arrays, final, rounds = fake.outcome(tmp_path / 'nodes')
  assert (table, arrays, final, rounds) == fake.outcome(tmp_path / 'alone')
  # What the model says has the names of all sites.
  task = trained_lib.load(tmp_path / 'nodes').task
  assert task.class_names == ('barbera', 'barolo', 'grignolino')
  assert task.feature_names == tuple('abcdefghijklm')
  # Who asks more of it is told where its examples are.
  with pytest.raises(ValueError, match='clients trained on files of their own'):
    reopened.reopen(tmp_path / 'nodes')


@pytest.mark.parametrize(
  'spoil, message',
  [
    (lambda f: [*f[:2], ''], r'clients 2 have no file of their own and others'),
    (lambda f: [*f[:2], _renamed(f[2])], r'client 2: its feature names are'),
  ],
)
def test_what_does_not_fit_is_one_line(tmp_path, spoil, message):
  *files, server = wine(tmp_path)
  with pytest.raises(ValueError, match=message):
    play(tmp_path / 'out', spoil(files), server)
  assert not (tmp_path / 'out').exists()


def _renamed(file):
  with open(file) as opened:
    text = opened.read()
  with open(file, 'w') as opened:
    opened.write(text.replace('a,b,c', 'a,c,b', 1))
  return file


def test_a_class_of_the_servers_alone(tmp_path):
  *files, _ = wine(tmp_path)
  server = write(tmp_path / 's.csv', np.ones([20, 13]), ['barolo', 'rose'] * 10)
  with pytest.raises(ValueError, match="the class 'rose', which no client has"):
    play(tmp_path / 'out', files, server)


def test_files_that_nodes_have_exchanged_end_a_run_that_goes_on(tmp_path):
  one, other, third, server = wine(tmp_path)
  play(tmp_path / 'nodes', [one, other, third], server)
  kept = tmp_path / 'nodes' / 'nodes.json'
  assert list(json.loads(kept.read_text())) == ['0', '1', '2']
  # The sums of all are as they were.
  with pytest.raises(ValueError, match='files of nodes have changed since'):
    play(tmp_path / 'nodes', [other, one, third], server, num_rounds=3)


def test_the_servers_share_of_nothing_is_refused(tmp_path):
  *files, server = wine(tmp_path)
  with pytest.raises(ValueError, match='name --server_dataset in place of'):
    play(tmp_path / 'out', files, server, num_server_examples=9)
