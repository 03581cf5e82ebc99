"""Runs of version 0.1 are the same runs of this one, finished or not."""

import dataclasses
import pathlib
from typing import ClassVar

import numpy as np
import pytest
import stopping
import toys

import bfl_tf
from bfl_tf import federation, version
from bfl_tf.federation import checkpoints, config, loop, trees
from experiments import convert

# What version 0.1 wrote of a run whose every flag had its default.
_FLAGS = pathlib.Path(__file__).with_name('flags_0_1.txt').read_text()
_RUN = {
  'dataset': 'toys:blobs', 'model': 'logistic', 'num_clients': '5',
  'clients_per_round': '3', 'client_parts': 'toys:Counter',
  'server_step': 'momentum', 'num_rounds': '4', 'num_mc_samples': '2',
  'final_num_mc_samples': '3', 'num_workers': '1',
  'client_learning_rate': '0.01',
}  # fmt: skip


def old_flags(**changes):
  """The `flags.txt` of version 0.1 with other values; all that are there."""
  first, *lines = _FLAGS.splitlines()
  values = dict(line.removeprefix('--').split('=') for line in lines)
  assert values.keys() >= changes.keys()
  values |= changes
  return '\n'.join([first, *(f'--{n}={v}' for n, v in values.items()), ''])


def make_old(path, **changes):
  """Leaves in a directory what version 0.1 would have."""
  (path / 'task.json').unlink(missing_ok=True)
  (path / 'flags.txt').write_text(old_flags(**changes))


_DISTIL = {'refine': 'distil', 'variant': 'deterministic'}
# By the methods chosen: old flags, and settings, each different from a default.
_MOVED = [
  ({'partition': 'dirichlet'}, {'alpha': '0.1', 'min_examples': '3'},
   {'dirichlet.alpha': 0.1, 'dirichlet.min_examples': 3}),
  ({'partition': 'dirichlet_equal'}, {'alpha': '5.0'},
   {'dirichlet_equal.alpha': 5.0}),
  ({'partition': 'shards'}, {'classes_per_client': '3'},
   {'shards.classes_per_client': 3}),
  ({'partition': 'step'},
   {'classes_per_client': '3', 'minor_examples': '4', 'step_deal': 'ring'},
   {'step.classes_per_client': 3, 'step.minor_examples': 4,
    'step.deal': 'ring'}),
  ({'partition': 'majority'}, {'major_fraction': '0.5'},
   {'majority.major_fraction': 0.5}),
  ({'model': 'mlp'},
   {'hidden_units': '8,4', 'initial_scale': '0.1', 'prior_scale': '2.0',
    'update_prior': 'True'},
   {'mlp.hidden_units': (8, 4), 'flipout.initial_scale': 0.1,
    'flipout.prior_scale': 2.0, 'flipout.update_prior': True}),
  ({'model': 'convnet', 'variant': 'mc_dropout'},
   {'extra_layers': '2', 'dropout_rate': '0.5'},
   {'convnet.extra_layers': 2, 'mc_dropout.rate': 0.5}),
  ({'model': 'resnet14'}, {'normalization': 'group'},
   {'resnet.normalization': 'group'}),
  ({'model': 'mobilenetv2'}, {'normalization': 'none'},
   {'mobilenetv2.normalization': 'none'}),
  ({'client_optimizer': 'sgd'}, {'client_momentum': '0.5'},
   {'sgd.momentum': 0.5}),
  ({'learning_rate_schedule': 'steps'},
   {'decay_at': '0.2,0.4', 'decay_factor': '0.5', 'first_factor': '0.2',
    'decay_after': 'True'},
   {'steps.decay_at': (0.2, 0.4), 'steps.decay_factor': (0.5,),
    'steps.first_factor': 0.2, 'steps.decay_after': True}),
  ({'learning_rate_schedule': 'exponential'},
   {'round_decay': '0.5', 'silent_rounds': '3'},
   {'exponential.decay': 0.5, 'exponential.silent_rounds': 3}),
  ({'client_parts': 'proximal'},
   {'proximal_weight': '0.5', 'proximal_penalty': 'norms'},
   {'proximal.weight': 0.5, 'proximal.penalty': 'norms'}),
  *[({'pooling': rule}, {'min_scale': '0.001'}, {f'{rule}.min_scale': 0.001})
    for rule in bfl_tf.pooling.RULES],
  ({'pooling': 'dwc'}, {'dwc_min_precision': '0.5'},
   {'dwc.min_precision': 0.5}),
  ({'weighting': 'max_discrepancy'}, {'discrepancy': 'nearest'},
   {'max_discrepancy.discrepancy': 'nearest'}),
  ({'server_step': 'momentum'},
   {'server_momentum': '0.5', 'server_dampening': '0.5'},
   {'momentum.decay': 0.5, 'momentum.dampening': 0.5}),
  ({'start': 'fine_tune'},
   {'server_epochs': '5', 'server_patience': '0',
    'server_learning_rate': '0.5'},
   {'fine_tune.epochs': 5, 'fine_tune.patience': 0,
    'fine_tune.learning_rate': 0.5}),
  (_DISTIL,
   {'ensemble': 'A,C', 'num_teacher_samples': '3',
    'teacher_posterior': 'gaussian', 'gaussian_fit': 'released',
    'min_sampled_variance': '0.5', 'teachers': 'A,C',
    'distillation_targets': 'labels', 'sharpening': '1.0',
    'distillation': 'sgd', 'distillation_epochs': '3',
    'distillation_batch_size': '16', 'distillation_learning_rate': '0.5',
    'distillation_momentum': '0.5', 'distillation_weight_decay': '0.5',
    'distillation_augment': 'False', 'swa_min_learning_rate': '0.1',
    'swa_start': '3', 'swa_cycle': '4'},
   {'ensemble.groups': 'A+C', 'ensemble.num_samples': 3,
    'ensemble.posterior': 'gaussian', 'gaussian.fit': 'released',
    'ensemble.min_variance': 0.5, 'distil.teachers': 'A+C',
    'distil.targets': 'labels', 'distil.sharpening': 1.0,
    'distil.optimizer': 'sgd', 'distil.epochs': 3, 'distil.batch_size': 16,
    'distil.learning_rate': 0.5, 'distil.momentum': 0.5,
    'distil.weight_decay': 0.5, 'distil.augment': False,
    'distil.swa_min_learning_rate': 0.1, 'distil.swa_start': 3,
    'distil.swa_cycle': 4}),
  # One name, two things: each gets its own.
  ({**_DISTIL, 'partition': 'dirichlet', 'teacher_posterior': 'dirichlet'},
   {'dirichlet_alpha': '0.7', 'alpha': '0.2'},
   {'posterior.dirichlet.alpha': 0.7, 'partition.dirichlet.alpha': 0.2}),
  ({'refine': 'students'}, {'students': 'C:sgd,A+C+S:swa'},
   {'students.students': ('C:sgd', 'A+C+S:swa')}),
]  # fmt: skip


@pytest.mark.parametrize(
  'methods, flags, expected',
  _MOVED,
  ids=lambda value: '-'.join(value) if isinstance(value, dict) else None,
)
def test_a_flag_sets_what_it_set(methods, flags, expected):
  _, *lines = old_flags(**methods, **flags).splitlines()
  converted = convert.configured(lines)
  for key, value in expected.items():
    assert converted.get(key) == value, key


def test_every_flag_of_version_0_1_is_known():
  _, *lines = _FLAGS.splitlines()
  names = {line.removeprefix('--').split('=')[0] for line in lines}
  assert len(names) == 100
  moved = {name for _, flags, _ in _MOVED for name in flags}
  assert moved == set(convert.MOVED) == names - set(config.FIELDS)


def test_defaults_were_the_defaults():
  _, *lines = _FLAGS.splitlines()
  assert convert.configured(lines) == (
    # Its default is another one since.
    federation.Config(client_learning_rate=0.001)
  )


def test_unions_are_joined_by_a_plus():
  everything = {'ensemble': 'A,C,S', 'teachers': 'A+C+S'}
  assert convert.renamed(everything) == {
    'ensemble.groups': 'A+C+S', 'distil.teachers': 'A+C+S',
  }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Shrink(toys.Idle):
  """A part of anybody's that was given the value of a flag of version 0.1."""

  name: ClassVar[str] = 'shrink'
  proximal_weight: float = 0.25


def test_what_a_flag_gave_anybodys_own_is_its_setting():
  part = f'{__name__}:Shrink'
  _, *lines = old_flags(client_parts=part, proximal_weight='0.75').splitlines()
  assert convert.configured(lines).settings == {'Shrink.proximal_weight': 0.75}


def test_a_finished_run_is_the_same_finished_run(tmp_path, never):
  stopping.play(tmp_path)
  files = ('flags.txt', 'task.json')
  before = [(tmp_path / name).read_text() for name in files]
  make_old(tmp_path, **_RUN)
  with pytest.raises(ValueError, match=r'bfl_tf 0\.1\.0.*experiments\.convert'):
    bfl_tf.load(tmp_path)
  with pytest.raises(ValueError, match=r'bfl_tf 0\.1\.0.*experiments\.convert'):
    stopping.play(tmp_path)
  assert convert.convert(tmp_path) == 'converted'
  assert [(tmp_path / name).read_text() for name in files] == before
  assert stopping.play(tmp_path)['rounds'] == 4
  assert stopping.outcome(tmp_path) == never
  predicted = bfl_tf.load(tmp_path).predict(toys.blobs().test.x)
  recorded = np.load(tmp_path / 'predictions.npz')
  assert toys.same(predicted.probs, recorded['probs'])
  assert convert.convert(tmp_path) == 'left alone: of version 0.2.0'


def test_an_unfinished_run_goes_on_to_the_same_bits(
  tmp_path, never, monkeypatch
):
  flatten = trees.flatten

  def without_factor(tree):
    return ((n, v) for n, v in flatten(tree) if not n.endswith('|factor'))

  # The weights of version 0.1 were four arrays.
  with monkeypatch.context() as patch:
    patch.setattr(trees, 'flatten', without_factor)
    stopping.stopped(tmp_path, loop, 'federated_round', 3)
  make_old(tmp_path, **_RUN)
  convert.convert(tmp_path)
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 2
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_a_lost_task_is_made_anew(tmp_path):
  stopping.play(tmp_path)
  task = (tmp_path / 'task.json').read_text()
  (tmp_path / 'task.json').unlink()
  with pytest.raises(ValueError, match=r'experiments\.convert --root='):
    bfl_tf.load(tmp_path)
  assert convert.convert(tmp_path) == 'given its task'
  assert (tmp_path / 'task.json').read_text() == task


def run(monkeypatch, root):
  monkeypatch.setattr(convert, '_ROOT', type('Flag', (), {'value': str(root)}))
  return convert.main()


def test_a_folder_of_runs(tmp_path, monkeypatch, capsys):
  for name in ('a', 'b/c'):
    (tmp_path / name).mkdir(parents=True)
    make_old(tmp_path / name, **_RUN)
  stamp = tmp_path / 'version.txt'
  stamp.write_text('bfl_tf 0.1.0\n')
  assert run(monkeypatch, tmp_path) == 0
  printed = capsys.readouterr().out
  assert printed == f'{tmp_path}/a: converted\n{tmp_path}/b/c: converted\n'
  assert stamp.read_text() == f'bfl_tf {version.__version__}\n'
  for name in ('a', 'b/c'):
    assert federation.read_config(tmp_path / name) == stopping.CONFIG


@pytest.mark.parametrize(
  'text, message',
  [
    ('# bfl_tf 0.0.9\n', 'neither of version 0.1.0 nor of'),
    ('', 'neither of version'),
    ('# bfl_tf 0.1.0\n--nothing=1\n', '--nothing is unknown'),
    ('# bfl_tf 0.1.0\n--dataset=gone.npz\n', 'gone.npz'),
  ],
)
def test_what_cannot_be_converted_stays_as_it_is(
  tmp_path, monkeypatch, capsys, text, message
):
  bad, good = tmp_path / 'bad', tmp_path / 'good'
  for path in (bad, good):
    path.mkdir()
    make_old(path, **_RUN)
  (bad / 'flags.txt').write_text(text)
  assert run(monkeypatch, tmp_path) == 1
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 2 and message in lines[0]
  assert lines[1] == f'{good}: converted'
  assert (bad / 'flags.txt').read_text() == text
  assert {path.name for path in bad.iterdir()} == {'flags.txt'}


@pytest.mark.parametrize('root', ['', 'nothing'])
def test_no_run(tmp_path, monkeypatch, capsys, root):
  with pytest.raises(SystemExit) as stopped:
    run(monkeypatch, tmp_path / root if root else '')
  assert stopped.value.code == 2
  assert capsys.readouterr().err.startswith('error: --root')
