"""Settings of a sweep by grids and random draws; selection of the best."""

from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import itertools
import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import data, metrics, seeds
from bfl_tf.config import catalog, method_file
from bfl_tf.config import config as config_lib
from bfl_tf.declare import registry
from bfl_tf.federation import personal, plan
from bfl_tf.runs import flags_file, groups, run_spec

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


# Flags of the task, which are no hyperparameters of a method.
_OF_TASK = {
  *(field.name for field in dataclasses.fields(data.DatasetConfig)),
  *('likelihood', 'partition', 'num_clients', 'model', 'privacy', 'attack'),
  *catalog.settings_of_roles(('partition', 'privacy', 'attack')),
} - {'central.clip_norm'}


class Space(NamedTuple):
  """The combinations of a sweep, by the flags in which they differ.

  Attributes:
    configs: Configs of the combinations.
    refused: The flags of combinations that cannot be run, and the reason.
  """

  configs: dict[str, config_lib.Config]
  refused: dict[str, tuple[dict[str, str], str]]


def space(
  fixed: Mapping[str, Any],
  typed: Collection[str],
  grids: Sequence[str],
  draws: Sequence[str] = (),
  num_draws: int = 1,
) -> Space:
  """Returns every combination.

  A setting has no effect on combinations that do not select its method.

  Args:
    fixed: Fields and settings of all combinations.
    typed: Settings that the user typed; some combination must use each.
    grids: Grids, such as `pooling=nwa|ws`.
    draws: Random values, such as `client_learning_rate=log:1e-3:1e-1`; a
      draw has one value for each of these flags.
    num_draws: Number of draws; a smaller number gives the first of them.

  Raises:
    ValueError: A flag is wrong, or no combination can be run.
  """
  swept = [_grid(text) for text in grids]
  spans = [_span(text) for text in draws]
  keys = [key for key, *_ in (*swept, *spans)]
  for key in keys:
    if key == 'seed' or keys.count(key) > 1:
      raise ValueError(
        f'--grid={key}: give each flag once, and seeds with --seeds=0,1,2.'
      )
  options = [[(key, text) for text in texts] for key, texts in swept]
  every = [*_drawn(spans, num_draws)] if spans else [()]
  found, used = Space({}, {}), set()
  for *chosen, drawn in itertools.product(*options, every):
    point = dict([*chosen, *drawn])
    values, here = {**fixed, **point}, {*typed, *point}
    try:
      here -= {*config_lib.ignored(values, here)}
      config = config_lib.Config.of(values, typed=here)
    except ValueError as error:
      name = ','.join(f'{k}={text}' for k, text in point.items())
      found.refused[name or 'all'] = (point, str(error))
      continue
    name = ','.join(f'{k}={text}' for k, text in point.items() if k in here)
    if (name or 'all') not in found.configs and config in [
      other for other in found.configs.values() if other.method == config.method
    ]:
      raise ValueError(f'--grid: {name} is the same setting as another one.')
    found.configs[name or 'all'] = config
    used |= here
  if not found.configs:
    _, reason = next(iter(found.refused.values()))
    raise ValueError(reason)
  for key in {*typed, *point} - used:
    # No combination selects the setting's method, so this raises an error.
    config_lib.Config.of({**fixed, **point}, typed=[key])
  return found


def _split(flag, text):
  key, is_there, values = text.partition('=')
  if not (key and is_there and values):
    raise ValueError(f'--{flag}={text} must be a flag and values: see --help.')
  return key, values


def _grid(text):
  """Returns a flag and its values."""
  key, values = _split('grid', text)
  declared = known().get(key)
  is_free = declared and (declared.many or declared.is_free_text)
  if ',' in values and (key == 'method' or declared) and not is_free:
    raise ValueError(
      f'--grid={text}: separate values with |, and quote the flag: '
      f"'--grid={key}={values.replace(',', '|')}'."
    )
  # A misspelled value is an error; a combination that does not fit is a row.
  for value in values.split('|'):
    if key == 'method':
      method_file.read(value)
    elif declared:
      checked = declared.checked(key, value)
      for name in checked if declared.many else (checked,):
        if declared.table is not None:
          registry.resolve(key, name, declared.table)
  return key, values.split('|')


def known() -> dict[str, Any]:
  """Returns the declarations of all fields and settings, by key."""
  return {**config_lib.FIELDS, **catalog.known_settings()}


def _span(text):
  """Returns a flag, whether it is drawn on a log scale, and its bounds."""
  key, values = _split('draw', text)
  kind, *ends = values.split(':')
  try:
    least, most = map(float, ends)
  except ValueError:
    least = most = math.nan
  is_log = kind == 'log'
  is_known = is_log or kind == 'uniform'
  if not (is_known and least < most) or (is_log and least <= 0):
    raise ValueError(
      f'--draw={text} must be flag=log:low:high with both above 0, or '
      'flag=uniform:low:high.'
    )
  return key, is_log, least, most


def _drawn(spans, num_draws) -> Iterator[list[tuple[str, str]]]:
  declared = known()
  for index in range(num_draws):
    draw = []
    for key, is_log, least, most in spans:
      # The seed depends on the flag, so other flags do not change its draws.
      share = seeds.generator(0, f'sweep_{key}', index).uniform()
      value = least + share * (most - least)
      if is_log:
        value = least * (most / least) ** share
      is_whole = key in declared and declared[key].kind is int
      draw.append((key, repr(round(value) if is_whole else value)))
    yield draw


def check_axes(grids: Sequence[str], draws: Sequence[str] = ()) -> None:
  """Raises a ValueError if values of a flag of the task are compared.

  A score would choose the easiest task.

  Args:
    grids: Grids, as in `space`.
    draws: Random values, as in `space`.
  """
  for flag, texts in (('grid', grids), ('draw', draws)):
    for text in texts:
      key = text.partition('=')[0]
      if key in _OF_TASK:
        raise ValueError(
          f'--{flag}={text}: --choose_by would choose the easiest task: run '
          f'one sweep for each value of --{key}, in its own --output_dir.'
        )


def check_choice(
  score: str, chosen_of: Mapping[str, config_lib.Config]
) -> None:
  """Raises a ValueError if a score cannot select among the configs."""
  registry.check_choice('choose_by', score, MOST)
  for config in chosen_of.values():
    table = metrics.REGRESSION if config.is_numeric else metrics.TABLE
    name = score.removeprefix('validation_')
    own, clients = name.removeprefix('personal_'), plan.Plan.of(config)
    if own != name and not personal.makes_models(clients):
      raise ValueError(
        f'--choose_by={score} needs methods with personal models: choose '
        'another score.'
      )
    if own == name and not all(p.trains_global_model for p in clients.parts):
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


def best(
  runs: Mapping[str, Sequence[run_spec.RunSpec]], score: str
) -> tuple[str, float] | None:
  """Returns the name with the best mean over seeds, and that mean.

  Only settings with all their seeds are selected, since failed runs might have
  been the worst. A diverged model, whose score is NaN, ranks last.
  """
  means = {
    name: float(
      np.mean([groups.scores_of(run.directory)[score] for run in of_name])
    )
    for name, of_name in runs.items()
    if all(run.is_done for run in of_name)
  }
  sign = -1 if MOST[score] else 1

  def loss(name):
    return math.inf if math.isnan(means[name]) else sign * means[name]

  name = min(means, key=loss, default=None)
  return None if name is None else (name, means[name])


def at_an_edge(
  runs: Mapping[str, Sequence[run_spec.RunSpec]],
  chosen: str,
  keys: Sequence[str],
) -> list[str]:
  """Returns the numeric flags whose best value is an end of its range.

  Args:
    runs: Runs by name of the setting.
    chosen: Name of the best setting.
    keys: Flags of the grids.
  """
  found = []
  for key in keys:
    values = {name: of[0].config.get(key) for name, of in runs.items()}
    numbers = sorted({v for v in values.values() if isinstance(v, int | float)})
    if len(numbers) > 2 and values[chosen] in (numbers[0], numbers[-1]):
      found.append(key)
  return found


def flags_of(run: pathlib.Path) -> str:
  """Returns the text of a flagfile of a run, without its seed."""
  lines = flags_file.flag_lines(flags_file.read_config(run))
  return '\n'.join([*(x for x in lines if not x.startswith('--seed=')), ''])
