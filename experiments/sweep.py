"""Compare settings over seeds, with values that a validation score chooses.

  bfl-tf sweep --flagfile=configs/quickstart.flags --output_dir=runs/rules \\
    '--grid=pooling=nwa|ws|lp' '--grid=dirichlet.alpha=0.1|0.5' --seeds=0,1,2
  bfl-tf sweep --flagfile=configs/quickstart.flags --output_dir=runs/methods \\
    '--grid=method=fedavg|flipout_nwa|pvi' '--grid=partition=iid|dirichlet' \\
    --tune=client_learning_rate=log:1e-4:1e-1 --tune=default --trials=8 \\
    --validation_split=0.2 --seeds=0,1,2 --baseline=fedavg

Every combination of the values of --grid is a setting, and a row of the table.
With --tune, each setting first has trials with other values of the tuned
flags. The trial with the best mean of --choose_by, on validation examples,
gives its values to the runs of the table, which train on all training
examples. The same command resumes an interrupted study; more values, seeds or
trials extend it. trials.csv and runs.csv have a row for each run; a run with a
row is not repeated, also on another machine. The runs are compared as by
`bfl-tf compare`, whose flags are also accepted. A setting that cannot run
becomes a row with the reason. Exit code 1: a run failed or cannot run; 2: a
flag is wrong, and nothing was written.
An unknown name in --scores is found only after the runs, which are kept.
"""

import dataclasses
import math
import os
import pathlib
import statistics
from typing import Any, NamedTuple

from absl import flags

from bfl_tf import metrics, run_files
from bfl_tf import seeds as seeds_lib
from bfl_tf.analysis import ensembles
from bfl_tf.config import config as config_lib
from bfl_tf.declare import registry
from bfl_tf.federation import personal, plan
from bfl_tf.runs import executor, groups, study
from experiments import command_line, compare
from experiments.harness import search_space, status, study_table

command_line.define()
flags.adopt_module_key_flags(command_line)
flags.adopt_module_key_flags(compare)
_GRID = flags.DEFINE_multi_string(
  'grid',
  [],
  'Values of a flag to compare, as flag=value|value. Several --grid flags give '
  'all combinations. method=all stands for all methods by name. '
  'task=FILE|FILE compares flag files, whose flags replace others.',
)
_TUNE = flags.DEFINE_multi_string(
  'tune',
  [],
  'Values of a flag to choose from, for each setting of --grid: '
  'flag=value|value, flag=log:LOW:HIGH or flag=uniform:LOW:HIGH; '
  'method:flag=... is for one method, optimizer:flag=... for one client '
  'optimizer, and default stands for the ranges that the methods declare. '
  'client_optimizer=... is for methods that name no optimizer. The trials.csv '
  'of another study gives each setting the values chosen there; a later file '
  'replaces them.',
)
_TRIALS = flags.DEFINE_integer(
  'trials',
  8,
  'Number of random draws from the ranges of --tune, for each setting. They '
  'are divided over the combinations of listed values.',
  lower_bound=1,
)
_EXTEND = flags.DEFINE_boolean(
  'extend_rates',
  False,
  'Add three trials beyond the best --client_learning_rate, if it is the '
  'lowest or highest of three or more, and choose again. Their rates are 1/2, '
  '1/4 and 1/8 of it, or 2, 4 and 8 times it.',
)
_CHOOSE_BY = flags.DEFINE_string(
  'choose_by',
  '',
  'Score whose mean over --trial_seeds chooses the values of --tune; empty: '
  'the NLL of validation examples, of the personal models if the method has '
  f'them. One of: {", ".join(search_space.MOST)}.',
)
_SEEDS = flags.DEFINE_list(
  'seeds', [], 'Random seeds of each setting, such as 0,1,2; empty: --seed.'
)
_TRIAL_SEEDS = flags.DEFINE_list(
  'trial_seeds', [], 'Random seeds of each trial; empty: --seed.'
)
_TRIAL_FLAGFILE = flags.DEFINE_string(
  'trial_flagfile', '', 'Flag file whose flags replace others in the trials.'
)
_MATCH_EPOCHS = flags.DEFINE_boolean(
  'match_epochs',
  False,
  'Give methods that need one round, or one client per round, as many local '
  'epochs in total as the others.',
)
_SCORING = flags.DEFINE_string(
  'score_runs',
  '',
  'module:function of more scores: a function from the directory of a finished '
  'run to a dictionary of numbers, called once for each final run.',
)
_ENSEMBLE = flags.DEFINE_integer(
  'ensemble',
  1,
  'Number of runs of an ensemble: each setting has a second row, of the mean '
  'prediction of this many runs, with as many times the bytes and the time. '
  'They have one --data_seed, and other initial weights and draws.',
  lower_bound=1,
)
_JOBS = flags.DEFINE_integer(
  'jobs', 0, 'Number of parallel runs; 0: one per core.', lower_bound=0
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'Directory of the runs and their comparison; empty: runs/sweep. The '
  '--output_dir of a preset is ignored.',
)


class _Study(NamedTuple):
  """The flags, settings and tables of this study."""

  given: search_space.GivenFlags
  space: search_space.Space
  root: pathlib.Path
  tried: study_table.StudyTable
  final: study_table.StudyTable

  def chosen(self, name, values, trial, table, runs=()) -> list[study.Point]:
    """Returns the final runs of a setting, with the values of a trial.

    They train on all training examples. What the trials fitted on validation
    examples, the factor of a posterior and the temperature, is fixed.
    """
    config, _ = self.given.config({**self.space.points[name], **trial.values})
    fitted: dict[str, Any] = {'validation_split': 0.0}
    for key in ('posterior_factor', 'fitted_temperature'):
      score = key.removeprefix('fitted_')
      found = [run.scores.get(score, math.nan) for run in runs]
      if found and all(map(math.isfinite, found)):
        fitted[key] = statistics.median(found)
    return self.points(name, values, config.replace(**fitted), table)

  def points(self, name, values, config, table) -> list[study.Point]:
    """Returns the runs of a setting, with their rows in a table, if any.

    Each choice of values has its folder.
    """
    texts = _TRIAL_SEEDS.value if table is self.tried else _SEEDS.value
    folder = 'trials' if table is self.tried else ''
    # Only to check that it can run: its values are not yet chosen.
    folder = folder if table else '.unchosen'
    above = pathlib.Path(folder, study.place(name) if values else '')
    seeds = command_line.seeds(texts)
    found = study.points({values or name: config}, self.root / above, seeds)
    runs = [
      dataclasses.replace(
        run,
        place=str(above / run.place),
        name=name,
        values=values,
        scoring='' if folder else _SCORING.value,
      )
      for run in found[values or name]
    ]
    return [table.attached(run) for run in runs] if table else runs

  def axes_of(self, name) -> dict[str, str]:
    """Returns the values of the axes of a setting, as columns of a table."""
    return search_space.shown(self.space.points[name])


def main() -> int:
  """Trains the missing runs and compares the finished ones."""
  own = _read()
  space = own.space
  # Groups in the place of settings that have no finished run.
  rows = {
    name: groups.Group(groups.settings_of(config) | own.axes_of(name))
    for name, config in space.configs.items()
  }
  for name, (flags_of, reason) in space.refused.items():
    flags_of = search_space.shown(flags_of)
    rows[name] = groups.Group(flags_of, failures={0: reason})
  # A wrong --names or --baseline fails before any run.
  every = [group for row in rows.values() for group in _with_ensemble(row)]
  compare.check(every, compare.output(own.root), _keys())
  trials = _trials(own)
  # A setting with a single trial has no choice. With validation examples, its
  # run fits the factor of the posterior and the temperature.
  tried = {
    (name, values): own.points(name, values, _trial(trial.config), own.tried)
    for name, of in trials.items()
    for values, trial in of.items()
    if len(of) > 1 or trial.config.validation_split
  }
  if trials:
    points = {
      name: own.chosen(name, *next(iter(of.items())), None)
      for name, of in trials.items()
    }
  else:
    points = {
      name: own.points(name, '', config, own.final)
      for name, config in space.configs.items()
    }
  reasons = study.check(points)
  first = {name: tried[name, next(iter(trials[name]))] for name, _ in tried}
  for name, reason in study.check(first).items():
    reasons.setdefault(name, reason)
  for name, reason in reasons.items():
    rows[name].failures = {r.config.seed: reason for r in points.pop(name)}
    trials.pop(name, None)
  if not points:
    command_line.fail(next(iter(reasons.values())))
  command_line.terminable()
  failed = []
  try:
    if trials:
      tried = {
        place: runs for place, runs in tried.items() if place[0] in points
      }
      failed = _run(tried, own, 'trials') if tried else []
      if _EXTEND.value and (further := _further(own, tried, trials)):
        failed += _run(further, own, 'further trials')
      points = _choose(own, tried, trials)
      for name in trials.keys() - points.keys():
        rows[name].failures = {0: 'no trial has all its seeds'}
    failed += _run(points, own, 'runs')
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'the same command continues')
  _compare(own, rows, points)
  return int(bool(failed or len(rows) > len(points)))


def _read() -> _Study:
  """Returns the study of the flags."""
  fixed, typed = command_line.given()
  is_given = 'output_dir' in typed
  root = pathlib.Path(_OUTPUT_DIR.value if is_given else 'runs/sweep')
  given = search_space.GivenFlags(fixed, typed, _MATCH_EPOCHS.value)
  space = search_space.space(given, _GRID.value)
  plans = map(plan.Plan.of, space.configs.values())
  if any(map(personal.makes_models, plans)):
    # Every row has personal scores, if one has.
    given = given._replace(fixed={**fixed, 'personal_scores': True})
    space = search_space.space(given, _GRID.value)
  if _SCORING.value:
    registry.imported('score_runs', _SCORING.value)
  names = ('trials.csv', 'runs.csv')
  tables = (study_table.StudyTable(root / name) for name in names)
  return _Study(given, space, root, *tables)


def _trials(own):
  """Returns the trials of each setting, by its name; none without --tune."""
  if not _TUNE.value:
    if flags.FLAGS['choose_by'].present:
      raise ValueError(
        f'--choose_by={_CHOOSE_BY.value} chooses among the values of --tune: '
        'give the flags to choose with --tune in place of --grid.'
      )
    return {}
  given, space = _given_to_trials(own), own.space
  axes = search_space.axes(_TUNE.value, space.configs.values())
  paths = [text for text in _TUNE.value if text.endswith('.csv')]
  for path in filter(lambda path: not os.path.exists(path), paths):
    raise ValueError(f'--tune={path}: there is no such file.')
  others = [study_table.StudyTable(pathlib.Path(path)) for path in paths]
  found = {}
  for name, point in space.points.items():
    chosen = [
      values for other in others if (values := other.chosen(name)) is not None
    ]
    if paths and not chosen:
      raise ValueError(
        f'--tune={paths[-1]} has no chosen values of {name}: name the '
        'trials.csv of a study with this setting.'
      )
    found[name] = search_space.trials(
      given, point, axes, _TRIALS.value, *chosen[-1:]
    )
  typed = [axis for axis in axes if axis.flag in _TUNE.value]
  for axis in typed:
    if axis.key in given.typed and not axis.method:
      raise ValueError(
        f'--tune={axis.flag}: remove --{axis.key}, which it replaces.'
      )
  search_space.check_used(typed, found.values())
  for of in found.values():
    if len(of) > 1:
      config = next(iter(of.values())).config
      search_space.check_choice(_score(config), config)
  return found


def _given_to_trials(own):
  if not _TRIAL_FLAGFILE.value:
    return own.given
  more = config_lib.read_flagfile(_TRIAL_FLAGFILE.value)
  return own.given._replace(fixed={**own.given.fixed, **more})


def _trial(config):
  """Returns the config of a trial, with only the scores that it needs."""
  needs_personal = 'personal' in _score(config)
  return config.replace(
    eval_every=config.num_rounds, personal_scores=needs_personal
  )


def _score(config):
  return _CHOOSE_BY.value or search_space.usual_score(config)


def _members(run, final):
  """Returns a run and the other members of its ensemble, if it has no row."""
  if final.scores(_ensemble_of(run)) is not None:
    return [run]
  return [run, *(_member(run, n) for n in range(1, _ENSEMBLE.value))]


def _member(run, number):
  """Returns the run of another seed on the same data."""
  own = run.config
  draw = seeds_lib.generator(own.seed, 'ensemble_member', number)
  config = own.replace(
    seed=int(draw.integers(2**31)), data_seed=own.seed_of_data
  )
  below = f'{run.directory.name}_members/{number}'
  return dataclasses.replace(
    run,
    config=config,
    directory=run.directory.parent / below,
    place=f'{run.place}_members/{number}',
    scoring='',
    row=None,
  )


def _ensemble_of(run):
  """Returns the ensemble of a run and its members, as a row of the table."""
  folder = f'{run.directory.name}_ensemble{_ENSEMBLE.value}'
  return dataclasses.replace(
    run,
    name=f'{run.name},ensemble={_ENSEMBLE.value}',
    directory=run.directory.with_name(folder),
    row=None,
  )


def _run(points, own, what):
  """Trains runs and writes their table; returns the failed ones."""
  is_final = what == 'runs'
  every = [
    each
    for runs in points.values()
    for run in runs
    for each in (_members(run, own.final) if is_final else [run])
  ]
  jobs = _JOBS.value or len(os.sched_getaffinity(0))
  print(f'{own.root}, {what}: {status.described(every, jobs)}', flush=True)
  table = own.final if is_final else own.tried
  mine = {run for runs in points.values() for run in runs}

  def record(run):
    if run in mine:
      table.record(run, own.axes_of(run.name))
      table.write()

  try:
    outcomes = executor.run_all(every, jobs, record)
    return [each for each in outcomes if each.failed]
  finally:
    for run in (run for runs in points.values() for run in runs):
      table.record(run, own.axes_of(run.name))
      if is_final and _ENSEMBLE.value > 1:
        _write_ensemble(run, own)
    table.write()


def _write_ensemble(run, own):
  """Writes the ensemble of a run, if its members are finished."""
  several, members = _ensemble_of(run), _members(run, own.final)
  if len(members) > 1 and all(each.is_done for each in members):
    if not run_files.is_finished(several.directory):
      directories = [each.directory for each in members]
      ensembles.write(directories, several.directory)
      try:
        several.complete()
      except Exception as error:  # A user's function costs no table.
        print(f'{several.place}: {type(error).__name__}: {error}')
    axes = {**own.axes_of(run.name), 'ensemble': f'{_ENSEMBLE.value}'}
    own.final.add(several, several.scores, axes)


def _further(own, tried, trials):
  """Adds trials beyond chosen rates at an end, and returns their runs."""
  further, given = {}, _given_to_trials(own)
  for name in dict.fromkeys(name for name, _ in tried):
    of = trials[name]
    if (best := _best(own, name, tried, of)) is None:
      continue
    point = own.space.points[name]
    more = search_space.beyond(given, point, of[best[0]], of.values())
    trials[name] = of | more
    for values, trial in more.items():
      config = _trial(trial.config)
      further[name, values] = own.points(name, values, config, own.tried)
  tried |= further
  return further


def _best(own, name, tried, trials):
  runs = {values: tried[name, values] for values in trials}
  return search_space.best(runs, _score(own.space.configs[name]))


def _choose(own, tried, trials):
  """Returns the final runs with the values of the best trial, by setting."""
  points = {}
  axes = search_space.axes(_TUNE.value, own.space.configs.values())
  for name, of in trials.items():
    if (name, next(iter(of))) not in tried:
      print(f'given for {name}: {next(iter(of))}')
      points[name] = own.chosen(name, *next(iter(of.items())), own.final)
      continue
    if (best := _best(own, name, tried, of)) is None:
      continue
    values, mean = best
    score = _score(own.space.configs[name])
    points[name] = own.chosen(
      name, values, of[values], own.final, tried[name, values]
    )
    for run in tried[name, values]:
      own.tried.record(run, own.axes_of(name), chosen_by=score)
    print(f'chosen for {name} by {score} ({metrics.as_text(mean)}): {values}')
    for axis in search_space.axes_of(of[values].config, axes):
      if place := search_space.end(axis.key, of[values], of.values()):
        value = of[values].values[axis.key]
        print(
          f'warning: {name}: the chosen --{axis.key}={value} is the {place} '
          f'value: extend --tune={axis.flag}, or raise --trials'
        )
  own.tried.write()
  return points


def _compare(own, rows, points):
  """Writes the comparison of the finished runs."""
  if not any(run.is_done for runs in points.values() for run in runs):
    return
  found, keys = [], _keys()
  for name, empty in rows.items():
    runs = points.get(name, [])
    done = [run.directory for run in runs if run.is_done and run.row is None]
    # A setting whose runs all failed keeps its row and the reason.
    found_of = groups.grouped(done) or [empty]
    for group in found_of:
      group.settings |= {
        key: text for key, text in empty.settings.items() if key in keys
      }
    for run in runs:
      if run.row is not None:
        found_of[-1].scores[run.config.seed] = dict(run.row)
      elif not run.is_done:
        reason = run.failure or 'not finished'
        found_of[-1].failures[run.config.seed] = reason
    for group, *several in map(_with_ensemble, found_of):
      found += [group, *several]
      for run in runs if several else ():
        _add_ensemble(*several, run, own.final)
  compare.report(found, compare.output(own.root), keys)


def _add_ensemble(group, run, final):
  """Adds the ensemble of a run to its row."""
  several, seed = _ensemble_of(run), run.config.seed
  scores = final.scores(several)
  if run_files.is_finished(several.directory):
    group.add(seed, several.directory)
  elif scores is not None:
    group.scores[seed] = scores
  else:
    group.failures[seed] = run.failure or 'a member is not finished'


def _keys():
  """Returns the flags that are columns of the table."""
  keys = [text.partition('=')[0] for text in _GRID.value]
  return keys + ['ensemble'] * (_ENSEMBLE.value > 1)


def _with_ensemble(group):
  """Returns a row, and the row of its ensembles with --ensemble."""
  if _ENSEMBLE.value < 2:
    return [group]
  group.settings['ensemble'] = '1'
  several = {**group.settings, 'ensemble': f'{_ENSEMBLE.value}'}
  return [group, groups.Group(several)]


if __name__ == '__main__':
  command_line.main(main)
