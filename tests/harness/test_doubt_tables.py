"""What a finished run was asked stays with it."""

import json

import pytest

from bfl_tf import config as config_lib
from bfl_tf.runs import directory as directory_lib
from experiments.artifacts import doubts
from experiments.harness import cells


@pytest.fixture
def directory(tmp_path):
  run = directory_lib.RunDirectory(tmp_path / 'run')
  with run.locked():
    run.start(config_lib.Config(dataset='digits'))
  return run.path


def _answer(directory, **question):
  (directory / 'doubt').mkdir()
  asked = doubts._question(directory) | question
  text = json.dumps({'question': asked, 'answers': {'gap': 0.25}})
  (directory / 'doubt' / 'answers.json').write_text(text)


def test_a_run_is_asked_once(directory, monkeypatch):
  monkeypatch.setattr(doubts, 'ask', None)
  _answer(directory)
  assert doubts._read('gap', directory, '') == 0.25
  with pytest.raises(cells.UnrecordedError, match='near_cifar100'):
    doubts._read('near_cifar100', directory, '')


def test_another_question_is_asked_anew(directory, monkeypatch):
  _answer(directory, num_examples=7)
  with pytest.raises(cells.UnrecordedError, match='kept no model'):
    doubts._read('gap', directory, '')
  (directory / 'checkpoints').mkdir()
  monkeypatch.setattr(doubts, 'ask', lambda directory: {'gap': 0.5})
  assert doubts._read('gap', directory, '') == 0.5
  monkeypatch.setattr(doubts, 'ask', None)
  assert doubts._read('gap', directory, '') == 0.5
