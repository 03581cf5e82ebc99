"""The settings of a sweep: grids of flags and random draws, and the best."""

from collections.abc import Collection, Iterator, Mapping, Sequence
import itertools
import math
import pathlib
from typing import Any

import numpy as np

from bfl_tf import metrics, seeds
from bfl_tf.config import config as config_lib
from bfl_tf.config import registry
from bfl_tf.runs import flags_file, groups, run_spec

# Scores that one may choose by, and whether the best is the highest.
MOST = {
  f'validation_{score.name}': score.best == 'high'
  for score in metrics.TABLE
  if score.compute and score.best
}


def configs(
  said: Mapping[str, Any],
  typed: Collection[str],
  grids: Sequence[str],
  draws: Sequence[str] = (),
  num_draws: int = 1,
) -> dict[str, config_lib.Config]:
  """Returns every combination, by the flags in which they differ.

  A setting of a method that only some of them choose makes no further ones of
  the others.

  Args:
    said: fields and settings of all.
    typed: settings that a person said: one of them must be of use.
    grids: `pooling=nwa|ws`.
    draws: `client_learning_rate=log:1e-3:1e-1`; all are drawn together.
    num_draws: Number of random settings; a smaller number gives the first of
      them.

  Raises:
    ValueError: naming the flag.
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
  found, used, point = {}, set(), {}
  for *chosen, drawn in itertools.product(*options, every):
    point = dict([*chosen, *drawn])
    config = config_lib.Config.of({**said, **point})
    here = {key for key in (*typed, *point) if config.get(key) is not None}
    name = ','.join(f'{k}={text}' for k, text in point.items() if k in here)
    found[name or 'all'] = config
    used |= here
  for key in {*typed, *point} - used:
    # Of no method that any of them chooses: this says so.
    config_lib.Config.of({**said, **point}, typed=[key])
  return found


def _split(flag, text):
  key, is_there, values = text.partition('=')
  if not (key and is_there and values):
    raise ValueError(f'--{flag}={text} must be a flag and values: see --help.')
  return key, values


def _grid(text):
  """Returns a flag and its values."""
  key, values = _split('grid', text)
  declared = _known().get(key)
  is_free = declared and (declared.many or declared.is_free_text)
  if ',' in values and declared and not is_free:
    raise ValueError(
      f'--grid={text}: separate values with |, and quote the flag: '
      f"'--grid={key}={values.replace(',', '|')}'."
    )
  return key, values.split('|')


def _known():
  return {**config_lib.FIELDS, **config_lib.known_settings()}


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
  known = _known()
  for index in range(num_draws):
    draw = []
    for key, is_log, least, most in spans:
      # By the flag too: a further one leaves those of the others.
      share = seeds.generator(0, f'sweep_{key}', index).uniform()
      value = least + share * (most - least)
      if is_log:
        value = least * (most / least) ** share
      is_whole = key in known and known[key].kind is int
      draw.append((key, repr(round(value) if is_whole else value)))
    yield draw


def check_choice(
  score: str, chosen_of: Mapping[str, config_lib.Config]
) -> None:
  """Raises a ValueError if configs cannot be chosen of by a score."""
  registry.check_choice('choose_by', score, MOST)
  if not all(config.validation_split for config in chosen_of.values()):
    raise ValueError(
      f'--choose_by={score} needs validation examples: set --validation_split.'
    )


def best(
  runs: Mapping[str, Sequence[run_spec.RunSpec]], score: str
) -> tuple[str, float] | None:
  """Returns the name with the best mean over seeds, and that mean.

  Only what has all its seeds is chosen: those that failed might have been the
  worst. A model that ran away, whose score is NaN, is the last.
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


def flags_of(run: pathlib.Path) -> str:
  """Returns a file of the flags of a run, but its seed."""
  lines = flags_file.flag_lines(flags_file.read_config(run))
  return '\n'.join([*(x for x in lines if not x.startswith('--seed=')), ''])
