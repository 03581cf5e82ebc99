"""Settings of a study, trials of the values to tune, and the best trial."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import metrics, seeds
from bfl_tf.config import catalog, named_method
from bfl_tf.config import config as config_lib
from bfl_tf.declare import registry
from bfl_tf.federation import personal, plan
from bfl_tf.runs import groups, run_spec

# Scores for selection, and whether the highest value is the best.
MOST = {
  f'validation_{score.name}': score.best == 'high'
  for score in (*metrics.TABLE, *metrics.REGRESSION)
  if score.compute and score.best
}
MOST |= {
  f'validation_personal_{name}': MOST[f'validation_{name}']
  for name in personal.SCORES
}
# Fraction of a range from which a chosen value is at its end.
_END = 0.1


class Space(NamedTuple):
  """The compared settings of a study, by the flags in which they differ.

  Attributes:
    points: Values of the flags of --grid, by name of the setting.
    refused: The flags of settings that cannot be run, and the reason.
  """

  configs: dict[str, config_lib.Config]
  points: dict[str, dict[str, str]]
  refused: dict[str, tuple[dict[str, str], str]]


class Axis(NamedTuple):
  """Values of a flag that a score chooses from.

  Attributes:
    flag: Text of the flag `--tune`.
    method: Name of the method that it applies to; empty for all.
    key: Name of the field or setting.
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

  def is_end(self, text: str, tried: Collection[str]) -> bool:
    """Returns whether a value is at an end of the values or of the range."""
    try:
      value, numbers = float(text), sorted({float(each) for each in tried})
    except ValueError:
      return False  # A text has no order.
    if self.values:
      return len(numbers) > 2 and value in (numbers[0], numbers[-1])
    low, high = self.ends
    share = (value - low) / (high - low)
    if self.is_log:
      share = math.log(value / low) / math.log(high / low)
    return not _END <= share <= 1 - _END


class Trial(NamedTuple):
  """Tuned values by flag, and the config with them."""

  values: dict[str, str]
  config: config_lib.Config


def space(
  fixed: Mapping[str, Any], typed: Collection[str], grids: Sequence[str]
) -> Space:
  """Returns every combination of the values of grids.

  A setting has no effect on combinations that do not select its method.

  Args:
    fixed: Fields and settings of all combinations.
    typed: Settings that the user typed; some combination must use each.
    grids: Grids, such as `pooling=nwa|ws`.

  Raises:
    ValueError: A flag is wrong, or no combination can be run.
  """
  swept = [_grid(text) for text in grids]
  keys = [key for key, _ in swept]
  for key in keys:
    if key == 'seed' or keys.count(key) > 1:
      raise ValueError(
        f'--grid={key}: give each flag once, and seeds with --seeds=0,1,2.'
      )
  options = [[(key, text) for text in texts] for key, texts in swept]
  found, used = Space({}, {}, {}), set()
  for chosen in itertools.product(*options):
    point = dict(chosen)
    try:
      config, here = _config(fixed, typed, point)
    except ValueError as error:
      found.refused[_name(point)] = (point, str(error))
      continue
    name = _name({key: text for key, text in point.items() if key in here})
    if name not in found.configs and config in [
      other for other in found.configs.values() if other.method == config.method
    ]:
      raise ValueError(f'--grid: {name} is the same setting as another one.')
    found.configs[name], found.points[name] = config, point
    used |= here
  if not found.configs:
    _, reason = next(iter(found.refused.values()))
    raise ValueError(reason)
  for key in {*typed, *point} - used:
    # No combination selects the setting's method, so this raises an error.
    config_lib.Config.of({**fixed, **point}, typed=[key])
  return found


def axes(
  texts: Sequence[str], configs: Iterable[config_lib.Config]
) -> list[Axis]:
  """Returns the axes of flags such as `fedavg:client_learning_rate=0.1|0.3`.

  Ranges are `log:LOW:HIGH` or `uniform:LOW:HIGH`. The text `default` stands for
  the default ranges of the methods of the configs.

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
    else:
      found.append(_axis(text))
  return found


def _axis(text) -> Axis:
  flags, values = _split('tune', text)
  name, _, key = flags.rpartition(':')
  if name:
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
  """Returns the axes of a config; those of its method replace others."""
  mine = sorted(
    (axis for axis in every if axis.method in ('', config.method)),
    key=lambda axis: bool(axis.method),
  )
  return [*{axis.key: axis for axis in mine}.values()]


def trials(
  fixed: Mapping[str, Any],
  typed: Collection[str],
  point: Mapping[str, str],
  every: Sequence[Axis],
  number: int,
) -> dict[str, Trial]:
  """Returns the trials of a setting, by their tuned values.

  They are all combinations of listed values. With ranges, each has `number`
  draws. Settings that a combination does not select are left out.

  Args:
    fixed: Fields and settings of all settings, as in `space`.
    typed: Names of flags that the user typed, as in `space`.
    point: Values of --grid.
    every: Axes of all methods.
    number: Number of draws.
  """
  config, _ = _config(fixed, typed, point)
  mine = axes_of(config, every)
  listed = [axis for axis in mine if axis.values]
  ranges = [axis for axis in mine if not axis.values]
  found: dict[str, Trial] = {}
  for texts in itertools.product(*(axis.values for axis in listed)):
    for index in range(number if ranges else 1):
      chosen = {axis.key: text for axis, text in zip(listed, texts)}
      chosen |= {axis.key: axis.drawn(index) for axis in ranges}
      made, here = _config(fixed, typed, {**point, **chosen})
      values = {key: text for key, text in chosen.items() if key in here}
      found.setdefault(_name(values), Trial(values, made))
  return found


def _config(fixed, typed, point):
  """Returns a config, and the typed flags and those of a point that it uses."""
  values, here = {**fixed, **point}, {*typed, *point}
  here -= {*config_lib.ignored(values, here)}
  return config_lib.Config.of(values, typed=here), here


def _name(point) -> str:
  return ','.join(f'{key}={text}' for key, text in point.items()) or 'all'


def _split(flag, text):
  key, is_there, values = text.partition('=')
  if not (key and is_there and values):
    raise ValueError(f'--{flag}={text} must be a flag and values: see --help.')
  return key, values


def _grid(text, flag='grid'):
  """Returns a flag and its values."""
  key, values = _split(flag, text)
  declared = known().get(key)
  is_free = declared and (declared.many or declared.is_free_text)
  if ',' in values and (key == 'method' or declared) and not is_free:
    raise ValueError(
      f'--{flag}={text}: separate values with |, and quote the flag: '
      f"'--{flag}={key}={values.replace(',', '|')}'."
    )
  # A misspelled value is an error; a combination that does not fit is a row.
  for value in values.split('|'):
    if key == 'method':
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


def check_choice(
  score: str, chosen_of: Mapping[str, config_lib.Config]
) -> None:
  """Raises a ValueError if a score cannot select among the configs."""
  for config in chosen_of.values():
    if score in _own(config):
      continue
    registry.check_choice('choose_by', score, [*MOST, *_own(config)])
    table = metrics.REGRESSION if config.is_numeric else metrics.TABLE
    name = score.removeprefix('validation_')
    own, clients = name.removeprefix('personal_'), plan.Plan.of(config)
    if own != name and not personal.is_scored(clients):
      raise ValueError(
        f'--choose_by={score} needs personal models: set --personal_scores.'
      )
    if own == name and not all(p.trains_global_model for p in clients.locals):
      raise ValueError(
        f'--choose_by={score} scores a global model whose weights are not all '
        f'trained: choose --choose_by=validation_personal_{name}.'
      )
    if own not in {each.name for each in table}:
      raise ValueError(
        f'--choose_by={score} does not apply to --likelihood='
        f'{config.likelihood}: choose another score.'
      )
  if not all(config.validation_split for config in chosen_of.values()):
    raise ValueError(
      f'--choose_by={score} needs validation examples: set --validation_split.'
    )


def _own(config) -> dict[str, bool]:
  """Returns the scores of `--own_scores`, as in `MOST`.

  The lowest value is the best, unless a function has the attribute `best`.
  """
  return {
    f'validation_{name}': getattr(function, 'best', 'low') == 'high'
    for name, function in config.functions_of_scores.items()
  }


def best(
  runs: Mapping[str, Sequence[run_spec.RunSpec]], score: str
) -> tuple[str, float] | None:
  """Returns the name with the best mean over seeds, and that mean.

  Only trials with all their seeds are selected, since failed runs might have
  been the worst. A diverged model, whose score is NaN, ranks last.
  """
  means = {name: mean_of(each, score) for name, each in runs.items()}
  config = next(run.config for each in runs.values() for run in each)
  sign = -1 if {**_own(config), **MOST}[score] else 1
  losses = {
    name: sign * mean for name, mean in means.items() if mean is not None
  }

  def loss(name):
    return math.inf if math.isnan(losses[name]) else losses[name]

  name = min(losses, key=loss, default=None)
  return None if name is None else (name, sign * losses[name])


def mean_of(runs: Sequence[run_spec.RunSpec], score: str) -> float | None:
  """Returns the mean of a score over seeds; None if a run is not finished."""
  if not all(run.is_done for run in runs):
    return None
  scores = [groups.scores_of(run.directory)[score] for run in runs]
  return float(np.mean(scores))
