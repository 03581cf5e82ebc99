"""Tests of the federated evaluation on nodes with their own files."""

import re

from flwr import app
import numpy as np
import pytest
import toys
import wines

from bfl_tf import analysis, data, federation, metrics
from bfl_tf.analysis import prediction_sets, risk, site_statistics
from bfl_tf.config.config import Config
from bfl_tf.flower import (
  client_state,
  federated_evaluation,
  nodes,
  servers,
)
from bfl_tf.runs import run_config


@pytest.fixture(scope='module')
def files(tmp_path_factory):
  return wines.wine(tmp_path_factory.mktemp('wine'))


@pytest.fixture(scope='module')
def run_dir(files, tmp_path_factory):
  path = tmp_path_factory.mktemp('run')
  *own, server = files
  wines.execute(path, own, server, engine='flower', calibration_fraction=0.3)
  return path


def ask(run_dir, files, answer=lambda reply: reply, instead=()):
  """Returns a report of nodes, which read the files `instead` if given."""
  grid = wines.grid(files[:3])
  trained = analysis.load(run_dir)
  there = servers._introduced(grid, trained.config, wines.settings(run_dir))
  grid.answer = answer
  grid.node_configs[12]['name'] = 'Charité'
  for config, file in zip(grid.node_configs.values(), instead):
    config['data'] = file
  return federated_evaluation.FederatedEvaluation(
    *there, trained, 'raps', str(run_dir), 0.05
  ).report()


def held_out(trained, file, share):
  """Returns predictions for a share of a site's file, and its labels."""
  own = data.load(file, calibration_fraction=0.3)
  split = getattr(own, share)
  names = trained.task.class_names
  y = np.array([names.index(own.class_names[c]) for c in split.y])
  return trained.predict(split.x).probs, y


def test_scores_of_each_site_and_of_all_equal_those_computed_by_hand(
  run_dir, files
):
  trained = analysis.load(run_dir)
  found = ask(run_dir, files)
  calibration = [held_out(trained, f, 'calibration') for f in files[:3]]
  counts = [
    metrics.score_counts(*predicted, 'raps') for predicted in calibration
  ]
  counts = {'': np.sum(counts, 0)[np.newaxis]}
  assert found.sets == prediction_sets.PredictionSets.of(counts, 2, 'raps')
  tests = [held_out(trained, f, 'test') for f in files[:3]]
  together = [np.concatenate(both) for both in zip(*tests)]
  assert [row['site'] for row in found.sites] == ['0', '1', '2 Charité']
  for row, predicted in zip(
    [*found.sites, found.summary[0]], [*tests, together], strict=True
  ):
    by_hand = site_statistics.SiteStatistics.of(*predicted, found.sets).row(
      found.sets
    )
    by_hand.pop('auroc')
    assert by_hand == pytest.approx({name: row[name] for name in by_hand})
  recall = metrics.per_class_recall(*together)
  assert [row['recall'] for row in found.classes] == recall.tolist()
  # One site has a single class, and the server has no scores of examples.
  assert [row['auroc'] is None for row in found.sites] == [True, False, False]
  assert found.summary[0]['auroc'] is None
  assert not found.rejected


def test_groups_and_recalibration_equal_those_computed_by_hand(tmp_path):
  own = wines.wine(tmp_path, np.array(['red', 'white', 'red']))
  run_dir = tmp_path / 'run'
  wines.execute(run_dir, own[:3], own[3], engine='flower',
                calibration_fraction=0.3, num_rounds=1)  # fmt: skip
  for by in ('site', 'class'):
    settings = {'sets-by': by, 'recalibrate': 'platt', 'sets': 'lac'}
    servers._score(wines.grid(own[:3]), wines.settings(run_dir) | settings)
    trained, sets = analysis.load(run_dir), prediction_sets.read(run_dir)
    names, held = trained.task.classes, {}
    for number, file in enumerate(own[:3]):
      probs, y = held_out(trained, file, 'calibration')
      prediction = analysis.Prediction(probs, *[probs[:, 0]] * 3)
      held[str(number)] = site_statistics.HeldCounts.of(prediction, y, 'lac')
    counts = {site: each.counts for site, each in held.items()}
    of_counts = prediction_sets.PredictionSets.of
    assert sets == of_counts(counts, 2, 'lac', by, names)
    risks = {site: each.risk for site, each in held.items()}
    choice = risk.Risk(recalibrate='platt')
    assert trained.risk == choice.fitted(names, risks, None)
    rows = toys.table(run_dir / 'sites' / 'sites.csv')
    tested = toys.table(run_dir / 'sites' / 'risk.csv')
    assert [row['updates'] for row in tested] == ['', '1', '1', '1']
    for number, (row, file) in enumerate(zip(rows, own)):
      probs, y = held_out(trained, file, 'test')
      members, _ = sets.at(str(number)).classes(probs)
      inside = members[np.arange(len(y)), y].mean()
      assert float(row['coverage_0.9']) == pytest.approx(inside)
      events = y == names.index(trained.risk.event)
      assert int(tested[number + 1]['num_events']) == events.sum()


@pytest.mark.parametrize(
  'name, value, why',
  [
    ('right', lambda a: -a - 1, 'its right is impossible'),
    ('loss', lambda a: a.astype(np.float32), 'its loss is float32'),
    ('counts', lambda a: a + 1, r'its counts do not match its \d+ examples'),
  ],
)
def test_a_site_with_impossible_statistics_is_rejected(
  run_dir, files, name, value, why
):
  def of_site_1(reply):
    arrays = reply.content.array_records.get('arrays', {})
    if reply.metadata.src_node_id == 11 and name in arrays:
      arrays[name] = app.Array(value(arrays[name].numpy()))
    return reply

  found = ask(run_dir, files, of_site_1)
  assert [row['site'] for row in found.sites] == ['0', '2 Charité']
  assert list(found.rejected) == ['1']
  share = 'calibration' if name == 'counts' else 'test'
  assert re.match(f'{share} share: {why}', found.rejected['1'])
  others = found.summary[0]['num_examples']
  assert others == sum(row['num_examples'] for row in found.sites)


def test_the_order_of_arrival_changes_no_bits(run_dir, files, monkeypatch):
  exchange, first = nodes.exchange, ask(run_dir, files)
  monkeypatch.setattr(nodes, 'exchange', lambda *a: [*exchange(*a)][::-1])
  assert ask(run_dir, files) == first


def test_a_failing_site_is_named_and_too_few_sites_raise_an_error(
  run_dir, files
):
  gone = str(run_dir / 'gone.csv')
  found = ask(run_dir, files, instead=[*files[:2], gone])
  assert [row['site'] for row in found.sites] == ['0', '1']
  assert 'the file of this node' in found.rejected['2']
  few = r'fewer than --min_clients=1 \(0, 1, 2: calibration share: '
  with pytest.raises(federation.StoppedError, match=few):
    ask(run_dir, files, instead=[gone] * 3)


@pytest.mark.parametrize(
  ('part', 'changes'),
  [('ditto', {}), ('local_layers', {'local_layers.layers': 'head'})],
)
def test_nodes_score_the_personal_models_that_they_keep(
  files, tmp_path, part, changes
):
  *own, server = files
  changes = {'engine': 'flower', 'client_parts': (part,), **changes}
  config = Config.of(wines.SETTINGS | changes | {'dataset': server})
  path, grid = tmp_path / 'run', wines.grid(own)
  for config_of_node in grid.node_configs.values():
    config_of_node['memory'] = str(tmp_path / 'memory')
  flags = '\n'.join(run_config.flag_lines(config))
  servers._execute(grid, wines.settings(path, flags))
  servers._score(grid, wines.settings(path))
  rows = toys.table(path / 'sites' / 'sites.csv')
  trained = analysis.load(path)
  with pytest.raises(ValueError, match='on the nodes'):
    trained.personal('1')
  for client, row in enumerate(rows):
    kept = client_state.MemoryFolder.of(
      str(tmp_path / 'memory'), str(path), flags, client
    )
    found = trained.with_memory(kept.take(1))
    accuracy = metrics.accuracy(*held_out(found, own[client], 'test'))
    assert float(row['personal_accuracy']) == pytest.approx(accuracy)
    # Kept layers are not trained in the global model, which is then not scored.
    is_same = row['personal_nll'] == row['nll']
    assert is_same == (part == 'local_layers')
