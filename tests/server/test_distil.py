"""Tests of ensembles of a round's models and of their distillation."""

import fake
import numpy as np
import of_papers
import pytest
import tensorflow as tf
import toys

from bfl_tf import metrics, parts, training
from bfl_tf.federation import ensembles

DISTIL = {
  'server_parts': ('distil',), 'num_server_examples': 60, 'distil.epochs': 5,
  'distil.batch_size': 12, 'distil.swa_start': 4, 'distil.swa_cycle': 5,
  'ensemble.num_samples': 3,
}  # fmt: skip
SEED = np.zeros(2, np.int32)
STUDENTS = {
  'server_parts': (of_papers.STUDENTS,),
  'students.students': ('C:sgd', 'A+C+S:swa'),
}


def run(path, **settings):
  """Runs a logistic regression; returns the summary and the last row."""
  changes = {'num_clients': 10, 'clients_per_round': 0, 'client_parts': ()}
  changes |= {'server_parts': (), 'num_rounds': 1} | settings
  summary = fake.train(path, fake.CONFIG.replace(**changes))
  return summary, toys.table(path / 'metrics.csv')[-1]


def test_sharpening_matches_hand_computed_values():
  def sharpened(probs, exponent):
    prediction = training.Predictive(np.array(probs), None, None, None)
    return training.Categorical().targets(prediction, exponent)

  found = sharpened([[0.8, 0.2], [1e-30, 1e-30]], 2.0)
  np.testing.assert_allclose(found, [[16 / 17, 1 / 17], [0.5, 0.5]], rtol=1e-6)
  np.testing.assert_allclose(sharpened([[0.3, 0.7]], 1), [[0.3, 0.7]])


def test_groups_of_a_round_have_the_expected_models():
  state, groups = toys.groups(toys.experiment(**DISTIL))
  sizes = {name: len(group) for name, group in groups.items()}
  assert sizes == {'A': 1, 'C': 6, 'S': 3}
  # A is FedAvg's model: the result of the same round without distillation.
  plain, _ = toys.execute(toys.experiment(num_server_examples=60), 1)
  assert toys.same(groups['A'][0], plain.model)
  assert not toys.same(state.model, plain.model)
  spread = np.std([m.point for m in groups['C']], 0)
  sampled = np.std([m.point for m in groups['S']], 0)
  assert 0.2 < np.median(sampled / spread) < 3
  watching = toys.experiment(**DISTIL | {'server_parts': ('ensemble',)})
  watched, others = toys.groups(watching)
  assert toys.same(watched.model, plain.model)
  assert set(others) == {'A', 'C', 'S'}


def test_the_student_is_the_same_for_any_number_of_workers():
  settings = DISTIL | {'distil.optimizer': 'swa'}
  one, infos = toys.execute(toys.experiment(num_workers=1, **settings), 2)
  two, others = toys.execute(toys.experiment(num_workers=2, **settings), 2)
  assert toys.same(one.model, two.model)
  assert infos == others


def test_fractions_are_of_the_total_number_of_steps():
  """There are 5 epochs with 5 batches."""
  steps = toys.experiment(
    **DISTIL | {'distil.swa_start': 10, 'distil.swa_cycle': 5}
  )
  fractions = toys.experiment(
    **DISTIL | {'distil.swa_start': 0.4, 'distil.swa_cycle': 0.2}
  )
  (one,), (two,) = (e.plan.servers for e in (steps, fractions))
  assert two.num_steps(fractions.tools) == 25
  assert one.averaging(25) == two.averaging(25)
  assert (two.averaging(25).start, two.averaging(25).period) == (10, 5)
  # The rate falls linearly in each cycle, and then restarts.
  cycle = [1e-3, 8.5e-4, 7e-4, 5.5e-4, 4e-4]
  np.testing.assert_allclose(two.rates(25), 5 * cycle, rtol=1e-6)


def test_an_averaged_student_has_recalibrated_batch_statistics():
  experiment = toys.experiment(model='toys:normalized', **DISTIL)
  state, _ = toys.execute(experiment, 1)
  x = experiment.dataset.train.x[experiment.server_indices]
  measured = training.recalibrate(experiment.workers, state.model, x, seed=SEED)
  assert toys.same(measured, state.model)


def test_the_student_learns_the_predictions_of_the_teachers():
  """After enough steps, the student is near the teachers' predictions."""
  settings = DISTIL | {
    'server_parts': (f'{__name__}:Spoil', 'distil'), 'distil.epochs': 200,
    'distil.learning_rate': 0.5, 'distil.swa_min_learning_rate': 0.2,
    'distil.swa_start': 500, 'distil.sharpening': 1.0, 'distil.teachers': 'C',
  }  # fmt: skip
  experiment = toys.experiment(**settings)
  state, groups = toys.groups(experiment)
  x = experiment.dataset.train.x[experiment.server_indices]
  student = training.predict(experiment.workers, state.model, x, seed=SEED)
  (_, distil), own = experiment.plan.servers, {'C': groups['C']}
  teachers = distil.predicted(experiment.tools, own, SEED)[0].union('C')
  agreement = np.mean(student.mean.argmax(-1) == teachers.mean.argmax(-1))
  assert agreement > 0.9
  assert np.abs(student.mean - teachers.mean).mean() < 0.08


class Spoil(parts.Server):
  """A part that negates the average."""

  name = 'spoil'

  def step(self, model, sums, slot, ctx):
    return parts.Outcome(model.replace_mean(-model.mean))


def test_distillation_from_labels_reaches_a_high_accuracy():
  by_labels = DISTIL | {
    'distil.targets': 'labels',
    'distil.learning_rate': 0.1,
    'distil.swa_min_learning_rate': 0.1,
  }
  experiment = toys.experiment(**by_labels)
  state, (info,) = toys.execute(experiment, 1)
  held = experiment.server_indices
  probs = training.predict(
    experiment.workers,
    state.model,
    experiment.dataset.train.x[held],
    seed=SEED,
  ).mean
  right = probs.argmax(-1) == experiment.dataset.train.y[held]
  assert right.mean() > 0.8
  assert info['distillation_loss'] < np.log(3)


def test_distillation_keeps_the_pooled_scale():
  settings = {'variant': 'flipout', 'client_optimizer': 'adam'}
  plain, _ = toys.execute(
    toys.experiment(num_server_examples=60, num_mc_samples=2, **settings), 1
  )
  settings |= DISTIL | {'ensemble.posterior': 'pooled', 'num_mc_samples': 2}
  state, groups = toys.groups(toys.experiment(**settings))
  assert toys.same(state.model.scale, plain.model.scale)
  assert not toys.same(state.model.loc, plain.model.loc)
  # Samples of the pooled posterior are points.
  assert groups['S'][0].scale.max() < 1e-5


def test_every_union_is_scored_and_any_can_be_the_predictor(tmp_path):
  settings = DISTIL | {'num_rounds': 2, 'predictor': 'C+S'}
  # Clients disagree at this rate.
  settings['client_learning_rate'] = 0.1
  summary, columns = run(tmp_path / 'run', **settings)
  for name in ('A', 'C', 'S', 'A+C', 'A+S', 'C+S', 'A+C+S'):
    assert 0 <= float(columns[f'accuracy_{name}']) <= 1
    assert float(columns[f'nll_{name}']) > 0
  assert summary['final']['nll'] == float(columns['nll_C+S'])
  with np.load(tmp_path / 'run' / 'members.npz') as members:
    assert members['confidence_S'].shape == (3, 60)
    best = members['correct_C'].mean(-1).max()
    conflict = metrics.hypothesis_conflict(members['classes_C'])
  assert conflict == float(columns['hypothesis_conflict_C']) > 0
  assert 'hypothesis_conflict_A' not in columns
  assert best == float(columns['best_accuracy_C'])
  assert 0 < float(columns['mean_ece_S']) < 1
  assert set(columns) > {'distil_seconds', 'predict_teachers_seconds'}


class Blown(parts.Local):
  """A client part with finite weights, but infinite outputs."""

  name = 'blown'

  def end(self, model, carry, trace):
    return parts.Sent(model._replace(point=tf.sign(model.point) * 1.8e19))


def test_diverged_teachers_are_rejected_and_counted(tmp_path):
  # The product of two layers overflows float32.
  settings = DISTIL | {'client_parts': (f'{__name__}:Blown',), 'model': 'mlp'}
  # There is no bound on the update, whose weights are finite.
  settings |= {'max_update_norm': 0.0}
  _, (state, info, groups) = toys.rounds(toys.experiment(**settings), 1)
  # The teachers are one average, six clients and three samples.
  assert info['teachers_rejected'] == 10
  assert info['students_refused'] == 1
  assert toys.same(state.model, groups['A'][0])
  _, columns = run(tmp_path / 'run', **settings)
  assert columns['accuracy_A+C+S'] == 'nan'
  assert float(columns['best_accuracy_C']) == 0
  assert (tmp_path / 'run' / 'summary.json').exists()


def test_a_further_part_does_not_change_the_draws_of_distillation():
  """FedBE with and without another part must be comparable by seed."""
  alone, _ = toys.execute(toys.experiment(**DISTIL), 1)
  more = {'server_parts': ('momentum', 'distil'), 'momentum.decay': 0.0}
  with_more, _ = toys.execute(toys.experiment(**DISTIL | more), 1)
  assert toys.same(alone.model, with_more.model)


def test_students_of_a_round_are_scored_and_the_model_is_the_average(tmp_path):
  settings = DISTIL | STUDENTS
  summary, columns = run(tmp_path / 'run', predictor='A+C+S:swa', **settings)
  assert summary['final']['nll'] == float(columns['nll_A+C+S:swa'])
  assert columns['nll_C:sgd'] != columns['nll_A+C+S:swa']
  assert columns['students_refused'] == columns['members_rejected'] == '0'
  # The model remains the average.
  experiment = toys.experiment(**settings)
  compared, groups = toys.groups(experiment)
  assert toys.same(compared.model, groups['A'][0])


def test_at_a_constant_rate_sgd_and_swa_have_the_same_trajectory():
  """An average over the last step only equals the SGD student bit for bit."""
  students = {'students.students': ('C:sgd', 'C:swa')}
  average = {'distil.swa_start': 20, 'distil.swa_min_learning_rate': 1e-3}
  settings = DISTIL | STUDENTS | students | average
  _, groups = toys.groups(toys.experiment(**settings))
  assert toys.same(groups['C:sgd'], groups['C:swa'])
  assert not toys.same(groups['C:sgd'], groups['A'])


def test_unions_exclude_members_that_are_not_finite():
  experiment = toys.experiment(**DISTIL)
  good = experiment.initial_weights()
  bad = good.replace_mean(np.full_like(good.mean, np.nan))
  test = experiment.dataset.test
  found = ensembles.predict(
    experiment.workers,
    {'A': (good,), 'C': (good, bad), 'S': (bad,)},
    *test[:2],
    SEED,
    1,
  )
  assert found.rejected == 2
  probs = {name: union.mean for name, union in found.unions.items()}
  for name in ('A', 'C', 'A+C', 'A+S', 'A+C+S'):
    np.testing.assert_array_equal(probs[name], probs['A'])
  assert np.isnan(probs['S']).all() and len(probs['S']) == len(test.y)


def test_group_b_is_scored_distilled_and_fits_beta(tmp_path):
  groups = {'ensemble.groups': 'C+B', 'distil.teachers': 'B', 'predictor': 'B'}
  _, mixture = run(tmp_path / '0', **DISTIL, **groups | {'ensemble.beta': 0.0})
  for score in ('accuracy', 'nll', 'ece'):
    assert mixture[f'{score}_B'] == mixture[f'{score}_C']
  fitted, row = run(
    tmp_path / 'fitted', **DISTIL, **groups | {'ensemble.fits_beta': True}
  )
  assert 0 < float(row['beta']) < 1
  assert fitted['final']['nll'] == pytest.approx(float(row['nll_B']))
