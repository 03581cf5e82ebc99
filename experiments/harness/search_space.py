"""Settings of a study, trials of the values to tune, and the best trial."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import itertools
import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import metrics, seeds, training
from bfl_tf.config import catalog, named_method
from bfl_tf.config import config as config_lib
from bfl_tf.declare import registry
from bfl_tf.federation import personal, plan
from bfl_tf.methods import NAMED
from bfl_tf.runs import study

# Scores for selection, and whether the highest value is the best.
MOST = {
  f'validation_{score.name}': score.best == 'high'
  for score in (*metrics.TABLE, *metrics.REGRESSION)
  if score.compute and score.best
}
MOST |= dict.fromkeys([f'validation_{n}' for n in metrics.TEMPERED], False)
MOST |= {
  f'validation_personal_{name}': MOST[f'validation_{name}']
  for name in personal.SCORES
}
_OPTIMIZER = 'client_optimizer'
_RATE = 'client_learning_rate'
_OF_OPTIMIZER = frozenset({_OPTIMIZER, *training.OPTIMIZERS})


class Space(NamedTuple):
  """The compared settings of a study, by the flags in which they differ.

  Attributes:
    points: Values of the flags of --grid, by name of the setting. `task` is
      the path of a flag file, whose flags replace others.
    refused: The flags of settings that cannot be run, and the reason.
  """

  configs: dict[str, config_lib.Config]
  points: dict[str, dict[str, str]]
  refused: dict[str, tuple[dict[str, str], str]]


class Axis(NamedTuple):
  """Values of a flag that a score chooses from.

  Attributes:
    method: Name of the method, or of the client optimizer, that it applies to;
      empty for all.
    values: Values to try; empty for a range.
    is_log: Whether the values of a range are drawn on a logarithmic scale.
    ends: Lower and upper bound of a range.
  """

  flag: str
  method: str
  key: str
  values: tuple[str, ...]
  is_log: bool = False
  ends: tuple[float, float] = (0.0, 0.0)

  def drawn(self, index: int) -> str:
    """Returns the value of a trial; it does not depend on other flags."""
    low, high = self.ends
    share = seeds.generator(0, f'sweep_{self.key}', index).uniform()
    value = low + share * (high - low)
    if self.is_log:
      value = low * (high / low) ** share
    declared = known().get(self.key)
    is_whole = declared is not None and declared.kind is int
    return str(round(value)) if is_whole else f'{value:.4g}'


class Trial(NamedTuple):
  """Tuned values by flag, and the config with them."""

  values: dict[str, str]
  config: config_lib.Config


class GivenFlags(NamedTuple):
  """Flags of all settings.

  Attributes:
    typed: Names of flags that the user typed; some setting must use each.
    match_epochs: Whether methods that need other numbers of rounds or clients
      per round train for as many local epochs in total as the others.
  """

  fixed: Mapping[str, Any]
  typed: Collection[str] = ()
  match_epochs: bool = False

  def config(
    self, point: Mapping[str, str]
  ) -> tuple[config_lib.Config, set[str]]:
    """Returns the config of a point, and the given flags that it uses."""
    of_task = config_lib.read_flagfile(point['task']) if 'task' in point else {}
    flags = {key: text for key, text in point.items() if key != 'task'}
    values = {**self.fixed, **of_task, **flags}
    if self.match_epochs:
      values |= _matched(values)
    here = {*self.typed, *of_task, *flags}
    here -= {*config_lib.ignored(values, here)}
    config = config_lib.Config.of(values, typed=here)
    return config, here | ({*point} - {*flags})


def _matched(values) -> dict[str, int]:
  """Returns flags of a method that needs other numbers of rounds or clients."""
  method = values.get('method')
  needs = named_method.read(method).needs if method else {}
  clients, rounds = int(values['num_clients']), int(values['num_rounds'])
  trained, found = rounds * (int(values['clients_per_round']) or clients), {}
  if needs.get('num_rounds') == 1:
    epochs = int(values['local_epochs']) * trained // clients
    found = {'clients_per_round': 0, 'local_epochs': epochs}
  if needs.get('clients_per_round') == 1:
    found = {'num_rounds': trained}
  return {**found, **needs}


def space(given: GivenFlags, grids: Sequence[str]) -> Space:
  """Returns every combination of the values of grids.

  A setting has no effect on combinations that do not select its method.
  """
  swept = [_grid(text) for text in grids]
  keys = [key for key, _ in swept]
  for key in keys:
    if key == 'seed' or keys.count(key) > 1:
      raise ValueError(
        f'--grid={key}: give each flag once, and seeds with --seeds=0,1,2.'
      )
    if key in given.typed:
      raise ValueError(f'--grid={key}: remove --{key}, which it replaces.')
  options = [[(key, text) for text in texts] for key, texts in swept]
  found, used = Space({}, {}, {}), set()
  for chosen in itertools.product(*options):
    point = dict(chosen)
    try:
      config, here = given.config(point)
      plan.Plan.of(config)
    except ValueError as error:
      found.refused[_name(point)] = (point, str(error))
      continue
    name = _name({key: text for key, text in point.items() if key in here})
    other = found.points.get(name, point)
    for key in {'task', 'method'} & point.keys():
      if point[key] != other[key]:
        raise ValueError(
          f'--grid={key}: tables have one name for {other[key]} and '
          f'{point[key]}: rename one of them.'
        )
    found.configs[name], found.points[name] = config, point
    used |= here
  if not found.configs:
    _, reason = next(iter(found.refused.values()))
    raise ValueError(reason)
  flags = {key: text for key, text in point.items() if key != 'task'}
  for key in {*given.typed, *flags} - used:
    # No combination selects the setting's method, so this raises an error.
    config_lib.Config.of({**given.fixed, **flags}, typed=[key])
  return found


def axes(
  texts: Sequence[str], configs: Iterable[config_lib.Config]
) -> list[Axis]:
  """Returns the axes of flags such as `fedavg:client_learning_rate=0.1|0.3`.

  Ranges are `log:LOW:HIGH` or `uniform:LOW:HIGH`. The text `default` stands for
  the default ranges of the methods of the configs. Tables of trials, `*.csv`,
  have no axis.

  Raises:
    ValueError: A flag is wrong, or its values belong to the task: a score
      would choose the easiest task.
  """
  found = []
  named = dict.fromkeys(config.requested_method for config in configs)
  for text in texts:
    if text == 'default':
      found += [
        _axis(f'{name}:{key}={values}')
        for name in filter(None, named)
        for key, values in named_method.read(name).tune.items()
      ]
    elif not text.endswith('.csv'):
      found.append(_axis(text))
  return found


def _axis(text) -> Axis:
  flags, values = _split('tune', text)
  name, _, key = flags.rpartition(':')
  if name and name not in training.OPTIMIZERS:
    named_method.read(name)
  method = named_method.label(name)
  if key in catalog.of_task() - {'central.clip_norm'}:
    raise ValueError(
      f'--tune={text}: a score would choose the easiest task: compare the '
      f"values of --{key} with '--grid={key}={values}'."
    )
  kind, *ends = values.split(':')
  if kind not in ('log', 'uniform') or not ends:
    _, each = _grid(f'{key}={values}', 'tune')
    return Axis(text, method, key, tuple(each))
  try:
    low, high = map(float, ends)
  except ValueError:
    low = high = math.nan
  is_log = kind == 'log'
  if not low < high or (is_log and low <= 0):
    raise ValueError(
      f'--tune={text} must be flag=log:low:high with both above 0, or '
      'flag=uniform:low:high.'
    )
  return Axis(text, method, key, (), is_log, (low, high))


def axes_of(config: config_lib.Config, every: Sequence[Axis]) -> list[Axis]:
  """Returns the axes of a config.

  Those of its method replace those of its optimizer, and these replace others.
  A method that names its optimizer keeps it and its settings, unless the axis
  names the method or the optimizer.
  """
  method = config.requested_method
  # A name that is also one of a method, such as ivon, stands for the method.
  optimizer = config.client_optimizer
  names = (
    '', '' if optimizer in NAMED else optimizer, named_method.label(method),
  )  # fmt: skip
  fixed = named_method.read(method).flags if method else {}
  is_fixed = _OPTIMIZER in fixed
  return [
    *{
      axis.key: axis
      for name in names
      for axis in every
      if axis.method == name
      and (name or not is_fixed or axis.key.split('.')[0] not in _OF_OPTIMIZER)
    }.values()
  ]


def trials(
  given: GivenFlags,
  point: Mapping[str, str],
  every: Sequence[Axis],
  number: int,
  before: Mapping[str, str] | None = None,
) -> dict[str, Trial]:
  """Returns the trials of a setting, by their tuned values.

  They are all combinations of listed values. With ranges, the `number` of
  draws is divided equally over these combinations, and each has at least one.
  Settings that a combination does not select are left out. All trials have the
  values of `before`, unless an axis replaces them.
  """

  def trial(chosen):
    return _trial(given, point, chosen)

  def listed(start, axes):
    """Returns the trials with each combination of the values of axes."""
    options = [[(axis.key, text) for text in axis.values] for axis in axes]
    every = itertools.product(*options)
    return dict(trial({**start.values, **dict(each)}) for each in every)

  _, start = trial(before or {})
  mine = axes_of(start.config, every)
  starts: dict[str, Trial] = {}
  # Other axes may depend on the optimizer.
  optimizers = [axis for axis in mine if axis.key == _OPTIMIZER]
  for each in listed(start, optimizers).values():
    mine = axes_of(each.config, every)
    some = [axis for axis in mine if axis.values and axis.key != _OPTIMIZER]
    starts |= listed(each, some)
  found: dict[str, Trial] = {}
  for name, start in starts.items():
    ranges = [each for each in axes_of(start.config, every) if not each.values]
    for index in range(max(1, number // len(starts)) if ranges else 0):
      drawn = {axis.key: axis.drawn(index) for axis in ranges}
      found |= [trial({**start.values, **drawn})]
    if not ranges:
      found[name] = start
  return found


def _trial(given, point, chosen):
  made, here = given.config({**point, **chosen})
  values = {key: text for key, text in chosen.items() if key in here}
  return _name(values), Trial(values, made)


def end(key: str, best: Trial, every: Iterable[Trial]) -> str:
  """Returns `lowest` or `highest` if the best trial has an end of the values.

  They are the numbers of trials with the same optimizer, at least three.
  """
  optimizer = best.config.client_optimizer
  alike = [t for t in every if t.config.client_optimizer == optimizer]
  tried = [t.values[key] for t in alike if key in t.values]
  try:
    value, numbers = float(best.values[key]), sorted({*map(float, tried)})
  except (KeyError, ValueError):
    return ''  # A text has no order.
  if len(numbers) < 3:
    return ''
  return {numbers[0]: 'lowest', numbers[-1]: 'highest'}.get(value, '')


def beyond(
  given: GivenFlags,
  point: Mapping[str, str],
  best: Trial,
  every: Iterable[Trial],
) -> dict[str, Trial]:
  """Returns three trials with rates beyond that of the best one, at an end."""
  place = end(_RATE, best, every)
  factors = {'lowest': (0.5, 0.25, 0.125), 'highest': (2, 4, 8)}.get(place, ())
  return dict(
    _trial(given, point, {**best.values, _RATE: f'{rate:.4g}'})
    for rate in (float(best.values[_RATE]) * each for each in factors)
  )


def check_used(
  every: Iterable[Axis], trials: Iterable[Mapping[str, Trial]]
) -> None:
  """Raises a ValueError if no setting uses an axis.

  An optimizer and its settings are only for methods that name no optimizer. A
  name before the flag may be that of a method that --grid does not contain, so
  that the flags of a study also serve a part of its methods.
  """
  each = [trial for of in trials for trial in of.values()]
  used = {key for trial in each for key in trial.values}
  methods = {named_method.label(t.config.requested_method) for t in each}
  for axis in every:
    is_absent = axis.method and axis.method not in methods
    is_of_optimizer = axis.key.split('.')[0] in _OF_OPTIMIZER
    if not (axis.key in used or is_absent or is_of_optimizer):
      raise ValueError(
        f'--tune={axis.flag}: no setting of --grid uses this flag.'
      )


def _name(point) -> str:
  return ','.join(f'{k}={text}' for k, text in shown(point).items()) or 'all'


def shown(point: Mapping[str, str]) -> dict[str, str]:
  """Returns the values of a point, with short names of task and method."""
  short = {'task': _stem, 'method': named_method.label}
  return {key: short.get(key, str)(text) for key, text in point.items()}


def _stem(path):
  return pathlib.Path(path).stem


def _split(flag, text):
  key, is_there, values = text.partition('=')
  if not (key and is_there and values):
    raise ValueError(f'--{flag}={text} must be a flag and values: see --help.')
  return key, values


def _grid(text, flag='grid'):
  """Returns a flag and its values."""
  key, values = _split(flag, text)
  declared = known().get(key)
  if not declared and '.' not in key and key not in ('method', 'task'):
    raise ValueError(f'--{flag}={text}: --{key} is unknown.{catalog.near(key)}')
  is_free = declared and (declared.many or declared.is_free_text)
  if ',' in values and (key == 'method' or declared) and not is_free:
    raise ValueError(
      f'--{flag}={text}: separate values with |, and quote the flag: '
      f"'--{flag}={key}={values.replace(',', '|')}'."
    )
  if (key, values) == ('method', 'all'):
    values = '|'.join(sorted(NAMED))
  # A misspelled value is an error; a combination that does not fit is a row.
  for value in values.split('|'):
    if key == 'task':
      config_lib.read_flagfile(value)
    elif key == 'method':
      named_method.read(value)
    elif declared:
      checked = declared.checked(key, value)
      for name in checked if declared.many else (checked,):
        if declared.table is not None:
          registry.resolve(key, name, declared.table)
  return key, values.split('|')


def known() -> dict[str, Any]:
  """Returns the declarations of all fields and settings, by key."""
  return {**config_lib.FIELDS, **catalog.known_settings()}


def check_choice(score: str, config: config_lib.Config) -> None:
  """Raises a ValueError if a score cannot select among trials of a config."""
  if not config.validation_split:
    raise ValueError(
      f'--choose_by={score} needs validation examples: set --validation_split.'
    )
  table = metrics.REGRESSION if config.is_numeric else metrics.TABLE
  clients = plan.Plan.of(config)
  # Layers that clients keep are not trained in the global model.
  is_global = all(part.trains_global_model for part in clients.locals)
  prefixes = [
    *['validation_'] * is_global,
    *['validation_personal_'] * personal.is_scored(clients),
  ]
  names = [prefix + each.name for prefix in prefixes for each in table]
  known = [name for name in names if name in MOST]
  registry.check_choice('choose_by', score, [*known, *_own(config)])


def _own(config) -> dict[str, bool]:
  """Returns the scores of `--own_scores`, as in `MOST`.

  The lowest value is the best, unless a function has the attribute `best`.
  """
  return {
    f'validation_{name}': getattr(function, 'best', 'low') == 'high'
    for name, function in config.functions_of_scores.items()
  }


def usual_score(config: config_lib.Config) -> str:
  """Returns the NLL of the personal models, if the method has them."""
  is_personal = personal.makes_models(plan.Plan.of(config))
  return 'validation_personal_nll' if is_personal else 'validation_nll'


def best(
  runs: Mapping[str, Sequence[study.Point]], score: str
) -> tuple[str, Any] | None:
  """Returns the name with the best mean over seeds, and that mean.

  Only trials with all their seeds are selected, since failed runs might have
  been the worst. A diverged model, whose score is NaN, ranks last.
  """
  means = {name: mean_of(each, score) for name, each in runs.items()}
  config = next(run.config for each in runs.values() for run in each)
  sign = -1 if {**_own(config), **MOST}[score] else 1
  losses = {
    name: math.inf if math.isnan(mean) else sign * mean
    for name, mean in means.items()
    if mean is not None
  }
  name = min(losses, key=losses.__getitem__, default=None)
  return None if name is None else (name, means[name])


def mean_of(runs: Sequence[study.Point], score: str) -> float | None:
  """Returns the mean of a score over seeds; None if a run is not finished."""
  if not all(run.is_done for run in runs):
    return None
  for run in runs:
    if score not in run.scores:
      raise ValueError(
        f'{run.name}, {run.values} has no score {score}: delete its row in '
        'trials.csv.'
      )
  return float(np.mean([run.scores[score] for run in runs]))
