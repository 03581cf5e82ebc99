"""What a user got wrong is one line and code 2, and nothing is written."""

import binaries
import numpy as np
import pytest

pytestmark = pytest.mark.process


def npz(path, **changes):
  x, y = np.random.default_rng(0).normal(size=[60, 3]), np.arange(60) % 3
  arrays = {'x_train': x, 'y_train': y, 'x_test': x, 'y_test': y} | changes
  np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
  return path


def csv(path, *more, sites='abc'):
  lines = [f'{i}.5,{sites[i % len(sites)]},{i % 3}' for i in range(30)]
  path.write_text('\n'.join(['a,site,label', *lines, *more]) + '\n')
  return path


# By what the line must say: the flags that call for it.
BAD = {
  '--num_rounds=0 must be at least 1': '--num_rounds=0',
  'num_rounds': '--num_rounds=many',
  "Unknown command line flag 'num_round'": '--num_round=3',
  "unexpected argument 'digits'": 'digits',
  '--seed=-1 must be at least 0': '--seed=-1',
  '--dirichlet.alpha=0.0 must be above 0': (
    '--partition=dirichlet --dirichlet.alpha=0'
  ),
  '--flipout.temperature=-1.0 must be above 0': '--flipout.temperature=-1',
  '--flipout.temperature=0.0 must be above 0': '--flipout.temperature=0',
  '--flipout.kl_examples=mine is unknown': '--flipout.kl_examples=mine',
  '--dirichlet.alpha=nan must be above 0': (
    '--partition=dirichlet --dirichlet.alpha=nan'
  ),
  '--validation_split=1.0 must be below 1': '--validation_split=1',
  '--mlp.hidden_units=a,b must be a comma-separated': '--mlp.hidden_units=a,b',
  '--mlp.hidden_units=0': '--mlp.hidden_units=64,0',
  '--mlp.hidden_units=-5': '--mlp.hidden_units=-5',
  '--steps.decay_at=2.0': '--steps.decay_at=2 --learning_rate_schedule=steps',
  '--local_epochs=3000000000': '--local_epochs=3000000000',
  '--num_mc_samples=3000000000': '--num_mc_samples=3000000000',
  '--dataset=no_such_set': '--dataset=no_such_set',
  '--dataset=missing.npz cannot be read': '--dataset=missing.npz',
  '--dataset=os:getcwd must return': '--dataset=os:getcwd',
  '--train_split=train[:9]': '--train_split=train[:9]',
  'validation_split=0.999': '--validation_split=0.999',
  'text.npz cannot be read as an .npz file': '--dataset={tmp}/text.npz',
  'lacks x_test, y_test': '--dataset={tmp}/half.npz',
  'y_train must be integer classes': '--dataset={tmp}/regression.npz',
  'x_train has 7 examples, y_train has 60': '--dataset={tmp}/short.npz',
  'not finite': '--dataset={tmp}/nan.npz',
  "row 4, column 'a' has ''": '--dataset={tmp}/hole.csv',
  "row 4, column 'a' has 'two'": ('--dataset={tmp}/text.csv'),
  "site 'lone' has 1 example(s) left": (
    '--dataset={tmp}/lone.csv --client_column=site'
  ),
  'has label 2, unseen by --num_classes=2': (
    '--dataset={tmp}/lone.csv --ignore_columns=site --num_classes=2'
  ),
  "has no column 'kind', which --label_column names": (
    '--dataset={tmp}/lone.csv --label_column=kind'
  ),
  '--partition=natural asks for client_ids': '--partition=natural',
  'a client of each of the 3 sites: set --num_clients=3': (
    '--dataset={tmp}/sites.csv --client_column=site --partition=natural'
  ),
  '--calibration_fraction=1.0 must be below 1': '--calibration_fraction=1',
  '--client_column=site says nothing': '--client_column=site',
  '--augment needs images': '--augment --dataset=wine',
  '--partition=rings is unknown': '--partition=rings',
  'classes_per_client must not': (
    '--partition=shards --shards.classes_per_client=11'
  ),
  'min_examples=999': '--partition=dirichlet --dirichlet.min_examples=999',
  '--num_clients=5000 exceeds': '--num_clients=5000',
  'num_server_examples': '--num_server_examples=5000',
  '--server_fraction=1.0 must be below 1': '--server_fraction=1',
  'mean the same examples: set one of them to 0': (
    '--num_server_examples=9 --server_fraction=0.1'
  ),
  "--model=lenet is unknown. Did you mean 'lenet5'": '--model=lenet',
  'resnet depth must be 6n + 2': '--model=resnet21',
  'fixup_resnet depth must be 6n + 2': '--model=fixup_resnet21',
  'classes do not divide among num_clients=3': (
    '--partition=class_split --num_clients=3'
  ),
  '--model=convnet needs images': '--model=convnet',
  '--model=no.module:f cannot be imported': '--model=no.module:f',
  '--variant=bayes is unknown': '--variant=bayes',
  '--resnet.normalization=layer is unknown': (
    '--model=resnet8 --resnet.normalization=layer'
  ),
  '--kernel_initializer=zeros is unknown': '--kernel_initializer=zeros',
  '--convnet.extra_layers=-1 must be at least 0': (
    '--model=convnet --convnet.extra_layers=-1'
  ),
  '--augment_padding=-1 must be at least 0': '--augment_padding=-1',
  '--pooling=mean is unknown': '--pooling=mean',
  '--pooling=wc pools posteriors': '--pooling=wc --variant=deterministic',
  '--pooling=product pools posteriors, and no weights are random here': (
    '--pooling=product --variant=deterministic'
  ),
  'takes no client weights': '--pooling=conflation --weighting=distance',
  '--weighting=sized is unknown': '--weighting=sized',
  '--max_discrepancy.discrepancy=median is unknown': (
    '--weighting=max_discrepancy --max_discrepancy.discrepancy=median'
  ),
  '--client_optimizer=lamb is unknown': '--client_optimizer=lamb',
  '--sgd.momentum is a setting of sgd, which is not chosen': (
    '--sgd.momentum=0.5'
  ),
  'leave it out, or set --client_parts=proximal': '--proximal.weight=1',
  'Did you mean --dirichlet.alpha': '--alpha=0.5',
  '--mlp.hidden_unit is unknown. Did you mean --mlp.hidden_units': (
    '--mlp.hidden_unit=3'
  ),
  "no setting goes by it. Did you mean 'distil'": '--distill.epochs=3',
  '--fine_tune.epochs=many must be an integer': (
    '--start=fine_tune --fine_tune.epochs=many'
  ),
  'may mean two things: say --partition.dirichlet.alpha': (
    '--partition=dirichlet --refine=ensemble --ensemble.posterior=dirichlet '
    '--dirichlet.alpha=1'
  ),
  '--describe=distill is unknown': '--describe=distill',
  '--projection.radius=0.0 must be above 0': (
    '--client_parts=projection --projection.radius=0'
  ),
  '--projection.ball=cube is unknown': (
    '--client_parts=projection --projection.ball=cube'
  ),
  '--gradient_noise.scale=-1.0 must be at least 0': (
    '--client_parts=gradient_noise --gradient_noise.scale=-1'
  ),
  '--client_parts=fedprox is unknown': '--client_parts=fedprox',
  '--client_parts name a member twice': '--client_parts=proximal,proximal',
  '--server_step=adam is unknown': '--server_step=adam',
  'at most the 2 clients of a round': (
    '--server_step=sign_threshold --sign_threshold.threshold=3'
  ),
  '--momentum.decay=1.0 must be below 1': (
    '--server_step=momentum --momentum.decay=1'
  ),
  '--momentum.decay=-0.1 must be at least 0': (
    '--server_step=momentum --momentum.decay=-0.1'
  ),
  'set --num_server_examples or --server_fraction': '--refine=fine_tune',
  '--server_dataset has no labels': (
    '--refine=fine_tune --server_dataset=digits'
  ),
  'schedule=cosine is unknown': '--learning_rate_schedule=cosine',
  '--min_clients=11 must not exceed': '--min_clients=11',
  '--clients_per_round=11': '--clients_per_round=11',
  '--min_local_epochs=2 must not exceed': '--min_local_epochs=2',
  '--distribution=ring is unknown': '--distribution=ring',
  'no.flags': '--flagfile=no.flags',
  '--output_dir is missing': '--output_dir=',
  'text.npz cannot be written': '--output_dir={tmp}/text.npz',
  'text.npz/below: ': '--output_dir={tmp}/text.npz/below',
  '/foreign is not empty and holds no run': '--output_dir={tmp}/foreign',
}


@pytest.fixture(scope='module')
def said(tmp_path_factory):
  """What the binary did for each of `BAD`, and what it wrote."""
  tmp = tmp_path_factory.mktemp('bad')
  (tmp / 'text.npz').write_text('no archive')
  npz(tmp / 'half.npz', x_test=None, y_test=None)
  npz(tmp / 'regression.npz', y_train=np.linspace(0, 1, 60))
  npz(tmp / 'short.npz', x_train=np.ones([7, 3]))
  npz(tmp / 'nan.npz', x_train=np.full([60, 3], np.nan))
  csv(tmp / 'sites.csv')
  csv(tmp / 'lone.csv', '1,lone,1')
  text = csv(tmp / 'hole.csv').read_text().replace('site', 'b')
  text = (
    text.replace(',a,', ',1,').replace(',b,0', ',2,0').replace(',c,', ',3,')
  )
  text = text.replace(',b,', ',2,')
  (tmp / 'hole.csv').write_text(text.replace('\n2.5,', '\n,'))
  (tmp / 'text.csv').write_text(text.replace('\n2.5,', '\ntwo,'))
  (tmp / 'foreign').mkdir()
  (tmp / 'foreign' / 'thesis.tex').write_text('precious')
  before = snapshot(tmp)
  small = ['--num_rounds=1', '--num_clients=2']
  lines = [
    [*small, f'--output_dir={tmp}/new{i}', *flags.format(tmp=tmp).split()]
    for i, flags in enumerate(BAD.values())
  ]
  # Last, what is noticed only while it trains.
  lines.append([f'--output_dir={tmp}/late', '--client_learning_rate=1e38'])
  *outcomes, late = binaries.drive('experiments.run', lines)
  written = snapshot(tmp) - before
  return dict(zip(BAD, outcomes, strict=True)), written, (tmp / 'late', *late)


def snapshot(folder):
  return {(path, path.stat().st_mtime_ns) for path in folder.rglob('*')}


@pytest.mark.parametrize('message', BAD)
def test_bad_input_is_one_line_and_code_2(said, message):
  code, out, error = said[0][message]
  assert code == 2, error
  assert error.startswith('error: ')
  assert error.count('\n') == 1
  assert message in error
  assert out == ''


def test_any_file_that_is_none_is_one_line(tmp_path):
  (tmp_path / 'run' / 'flags.txt').mkdir(parents=True)
  (tmp_path / 'run' / 'summary.json').write_text('{}')
  names = {
    'Is a directory': f'{tmp_path}/run',
    'holds no run': 'two\nlines',
    'too long': 'x' * 5000,
  }
  lines = [[f'--run={path}', '--output=new'] for path in names.values()]
  outcomes = binaries.drive('experiments.export', lines)
  for message, (code, _, error) in zip(names, outcomes, strict=True):
    assert code == 2, error
    assert message in error
    assert error.startswith('error: ') and error.count('\n') == 1


def test_bad_input_writes_nothing(said):
  _, written, (late, *_) = said
  assert {p.name for p, _ in written if late not in (p, *p.parents)} == set()


def test_no_good_update_is_code_1_and_saved(said):
  path, code, _, error = said[-1]
  assert code == 1
  (line,) = [x for x in error.splitlines() if x.startswith('error:')]
  assert 'round 0: 0 accepted updates are fewer than --min_clients=1' in line
  assert (path / 'checkpoints' / 'state-0.index').exists()
