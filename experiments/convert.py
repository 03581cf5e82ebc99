"""Brings runs of version 0.1 to this one: flags renamed, the task added.

  python -m experiments.convert --root=runs

Every run directory below the root is converted where it lies, finished or not:
`flags.txt` is written anew and `task.json` made from the data set. Nothing that
was measured changes, and an unfinished run goes on from its checkpoint: draws
are named as before since the repair of their names. A run of this version that
has lost its `task.json` is given a new one.
"""

from collections.abc import Iterator, Mapping
import os
import pathlib
from typing import Any

from absl import flags

from bfl_tf import federation, pooling, version
from bfl_tf.federation import building, identity, records
from bfl_tf.federation import config as config_lib
from experiments import flags as config_flags

_ROOT = flags.DEFINE_string('root', None, 'A run, or a folder of runs.')

_OLD, _OURS = '0.1.0', version.__version__
# Where a flag's value lives now; where its method is not chosen it is idle.
MOVED = {
  'alpha': ('partition.dirichlet.alpha', 'dirichlet_equal.alpha'),
  'min_examples': ('partition.dirichlet.min_examples',),
  'classes_per_client': (
    'shards.classes_per_client',
    'step.classes_per_client',
  ),
  'minor_examples': ('step.minor_examples',),
  'step_deal': ('step.deal',),
  'major_fraction': ('majority.major_fraction',),
  'hidden_units': ('mlp.hidden_units',),
  'extra_layers': ('convnet.extra_layers',),
  'normalization': ('resnet.normalization', 'mobilenetv2.normalization'),
  'dropout_rate': ('mc_dropout.rate',),
  'initial_scale': ('flipout.initial_scale',),
  'prior_scale': ('flipout.prior_scale',),
  'update_prior': ('flipout.update_prior',),
  'client_momentum': ('sgd.momentum',),
  'decay_at': ('steps.decay_at',),
  'decay_factor': ('steps.decay_factor',),
  'first_factor': ('steps.first_factor',),
  'decay_after': ('steps.decay_after',),
  'round_decay': ('exponential.decay',),
  'silent_rounds': ('exponential.silent_rounds',),
  'proximal_weight': ('proximal.weight',),
  'proximal_penalty': ('proximal.penalty',),
  'min_scale': tuple(f'{rule}.min_scale' for rule in pooling.RULES),
  'dwc_min_precision': ('dwc.min_precision',),
  'discrepancy': ('max_discrepancy.discrepancy',),
  'server_momentum': ('momentum.decay',),
  'server_dampening': ('momentum.dampening',),
  'server_epochs': ('fine_tune.epochs',),
  'server_patience': ('fine_tune.patience',),
  'server_learning_rate': ('fine_tune.learning_rate',),
  'ensemble': ('ensemble.groups',),
  'num_teacher_samples': ('ensemble.num_samples',),
  'teacher_posterior': ('ensemble.posterior',),
  'gaussian_fit': ('gaussian.fit',),
  'dirichlet_alpha': ('posterior.dirichlet.alpha',),
  'min_sampled_variance': ('ensemble.min_variance',),
  'teachers': ('distil.teachers',),
  'distillation_targets': ('distil.targets',),
  'sharpening': ('distil.sharpening',),
  'students': ('students.students',),
  'distillation': ('distil.optimizer',),
  'distillation_epochs': ('distil.epochs',),
  'distillation_batch_size': ('distil.batch_size',),
  'distillation_learning_rate': ('distil.learning_rate',),
  'distillation_momentum': ('distil.momentum',),
  'distillation_weight_decay': ('distil.weight_decay',),
  'distillation_augment': ('distil.augment',),
  'swa_min_learning_rate': ('distil.swa_min_learning_rate',),
  'swa_start': ('distil.swa_start',),
  'swa_cycle': ('distil.swa_cycle',),
}
# Groups are joined by + now.
_UNIONS = ('ensemble', 'teachers')


def main() -> int | None:
  """Converts every run below the root; 1 if one could not be."""
  if not _ROOT.value:
    config_flags.fail('--root is missing: name a run, or a folder of runs.')
  root = pathlib.Path(_ROOT.value)
  found = sorted(path.parent for path in root.rglob('flags.txt'))
  if not found:
    config_flags.fail(f'--root={root} holds no run: no flags.txt is below it.')
  built: dict[Any, Any] = {}
  failed = 0
  for run in found:
    try:
      print(f'{run}: {convert(run, built)}')
    except (OSError, ValueError) as error:
      print(f'{run}: {error}')
      failed += 1
  _stamp(root)
  return int(failed > 0)


def convert(run: pathlib.Path, built: dict[Any, Any] | None = None) -> str:
  """Converts a run directory; says what was done.

  Args:
    run: it.
    built: data sets that were loaded for others.

  Raises:
    ValueError: it is of neither version, or its data set cannot be loaded or
      has changed.
  """
  first, *lines = (run / 'flags.txt').read_text().splitlines() or ['']
  if first == f'# bfl_tf {_OLD}':
    config, done = configured(lines), 'converted'
  elif first != f'# bfl_tf {_OURS}':
    raise ValueError(f'neither of version {_OLD} nor of {_OURS}.')
  elif (run / 'task.json').exists():
    return f'left alone: of version {_OURS}'
  else:
    config, done = federation.read_config(run), 'given its task'
    # Or the task would be of other data than the model.
    identity.check(run, config)
  directory = records.RunDirectory(run)
  dataset = building.dataset(config, {} if built is None else built)
  directory.write_task(federation.Task.of(dataset))
  # Last: a run with new flags is a converted one.
  directory.write_flags(config)
  return done


def configured(lines: list[str]) -> federation.Config:
  """Returns the config that old flags say.

  Raises:
    ValueError: a flag that version 0.1 did not have.
  """
  old = dict(line.removeprefix('--').partition('=')[::2] for line in lines)
  values = renamed(old)
  chosen = federation.Config.of(values).chosen
  return federation.Config.of({**values, **dict(_of_strangers(chosen, old))})


def renamed(old: Mapping[str, str]) -> dict[str, str]:
  """Returns the values of old flags by their new names."""
  values: dict[str, str] = {}
  for name, text in old.items():
    for key in MOVED.get(name, (name,)):
      values[key] = text.replace(',', '+') if name in _UNIONS else text
  # Fields are given in their types, settings as texts.
  return {
    name: config_lib.FIELDS[name].parse(name, text)
    if name in config_lib.FIELDS
    else text
    for name, text in values.items()
  }


def _of_strangers(chosen, old) -> Iterator[tuple[str, str]]:
  """What was a flag's value in anybody's own method is a setting of its own."""
  ours = {id(method.thing) for method in config_lib.known_methods()}
  for method in chosen.methods:
    thing = getattr(method.thing, 'func', method.thing)
    if id(thing) not in ours:
      for name in method.declared.keys() & old.keys():
        yield f'{method.name}.{name}', old[name]


def _stamp(root):
  """A reproduction's folder says of which version its runs are."""
  for path in root.rglob('version.txt'):
    if path.read_text() == f'bfl_tf {_OLD}\n':
      temporary = path.with_name(f'.{path.name}')
      temporary.write_text(f'bfl_tf {_OURS}\n')
      os.replace(temporary, path)


if __name__ == '__main__':
  config_flags.main(main)
