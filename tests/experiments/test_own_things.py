"""What is wrong with one's own things is one line that names the culprit.

Before anything is written it is code 2; while a run goes on it is code 1 and
the state is saved.
"""

import pathlib
import re

import binaries
import pytest

_FOLDER = pathlib.Path(__file__).parent
_HERE = rf'{_FOLDER}/own_things\.py, line \d+'

# By the flags: what the line must say; `own:` stands for `own_things:`.
REFUSED = {
  '--partition=own:five': 'must return an index array a client: 2, got 5',
  '--partition=own:five --num_clients=7': 'a client: 7, got 5',
  '--partition=own:shared': 'gives an example to two clients',
  '--partition=own:outside': 'gives client 1 an index outside of 0 to 59',
  '--partition=own:empty': r'give client 1 a vector of integers.*\(0,\)',
  '--partition=own:twice': 'gives client 0 an example twice',
  '--partition=own:fractions': 'client 0 a vector of integers.*of float64',
  '--partition=own:raising': rf"raised KeyError: 'site' \({_HERE}\)",
  '--partition=own:by_hospital': "missing a required argument: 'hospitals'",
  '--partition=own:by_id': 'asks for client_ids, which .* does not bring',
  '--model=own:dense --variant=flipout': 'has no variational weight',
  '--model=own:dense --pooling=wc': 'no weights are random here',
  '--model=own:dense --pooling=own:Average': 'no weights are random here',
  '--model=own:softmax': 'ends in a softmax',
  '--model=own:rank_three': r'outputs of shape \(None, 2, 3\) for 3 classes',
  '--model=own:seven': r'outputs of shape \(None, 7\) for 3 classes',
  '--model=own:two': r'outputs of shape \[\(None, 3\), \(None, 3\)\]',
  '--model=own:unbuilt': 'is not built: begin it with tf_keras.Input',
  '--model=own:keras_three': r'returned keras\..*: a tf_keras model is wanted',
  '--model=own:forgotten': 'returned .*NoneType: a tf_keras model is wanted',
  '--model=own:dense --flipout.initial_scale=1': 'which is not chosen',
  '--pooling=own:NoTerms --variant=flipout': 'NoTerms lacks terms',
  '--pooling=own:Nothing': 'lacks accumulate, finalize, takes_weights',
  '--weighting=own:Nothing': 'Nothing lacks one or all',
  '--server_step=own:NoCall': 'NoCall lacks __call__',
  '--client_parts=own:NoName': 'NoName lacks name',
  '--client_parts=own:NamedByNumber': 'its name must be a text, got 7',
  '--client_parts=own:Needy': "missing a required argument: 'strength'",
  '--dataset=own:reading': rf'raised FileNotFoundError.*\({_HERE}\)',
  '--dataset=own:from_folder': "missing a required argument: 'folder'",
  '--dataset=own:texts': "y_train has texts, as 'cat': number them",
  '--dataset=own:one_class': 'y_train has no class but 0',
  '--dataset=own:not_one_hot': 'is not one-hot',
  '--dataset=own:objects': 'x_train must be numbers, got <U',
  '--dataset=grades.csv': 'a file must be an .npz',
  '--dataset=missing_scaled': 'is unknown',
  '--model=resnet21': 'as resnet20 or resnet26',
}
STOPPED = {
  '--variant=flipout --pooling=own:NoMean': (
    'round 0: --pooling=own_things:NoMean .* its loc is not finite'
  ),
  '--variant=flipout --pooling=own:Negative': 'a variance below 0 has no root',
  '--weighting=own:Zero': 'the weighting Zero gave all clients weight 0',
  '--weighting=own:ZeroOfAll': 'ZeroOfAll gave all clients weight 0',
  '--weighting=own:NotANumber': 'gave client 0 the weight nan',
  '--weighting=own:TooFew': 'gave 1 weights to 2 clients',
  '--server_step=own:Exploding': 'the server stage exploding returned a model',
  '--server_step=own:NoState': r'must return \(state, info\)',
  '--server_step=own:Raising': rf"KeyError: 'slot' \({_HERE}\)",
  '--client_parts=own:BadLoss': (
    rf"0, 1: it raised AttributeError.*'no_such_attribute' \({_HERE}\)"
  ),
}


@pytest.fixture(scope='module')
def said(tmp_path_factory):
  tmp = tmp_path_factory.mktemp('own')
  defaults = [
    '--num_rounds=1', '--num_clients=2', '--num_workers=1',
    '--variant=deterministic', '--model=logistic', '--dataset=own_things:data',
  ]  # fmt: skip
  flags = [*REFUSED, *STOPPED]
  lines = [
    [
      *defaults,
      *each.replace('own:', 'own_things:').split(),
      f'--output_dir={tmp}/{number}',
    ]
    for number, each in enumerate(flags)
  ]
  outcomes = binaries.drive('experiments.run', lines, _FOLDER)
  paths = [tmp / str(number) for number in range(len(flags))]
  return dict(zip(flags, zip(paths, outcomes), strict=True))


@pytest.mark.parametrize('flags', REFUSED)
def test_refused_before_anything_is_written(said, flags):
  path, (code, out, error) = said[flags]
  assert code == 2, error
  assert re.fullmatch(rf'error: .*{REFUSED[flags]}.*\n', error)
  assert out == ''
  assert not path.exists()


@pytest.mark.parametrize('flags', STOPPED)
def test_stopped_with_the_state_saved(said, flags):
  path, (code, _, error) = said[flags]
  assert code == 1, error
  (line,) = [x for x in error.splitlines() if x.startswith('error: ')]
  assert re.search(STOPPED[flags], line)
  assert (path / 'checkpoints' / 'state-0.index').exists()
  assert not (path / 'summary.json').exists()
