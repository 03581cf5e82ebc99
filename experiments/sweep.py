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
trials extend it. The runs are compared as by `bfl-tf compare`, whose flags are
also accepted. A setting that cannot run becomes a row with the reason. Exit
code 1: a run failed or cannot run; 2: a flag is wrong, and nothing was written.
An unknown name in --scores is found only after the runs, which are kept.
"""

import dataclasses
import os
import pathlib
import statistics

from absl import flags

from bfl_tf import metrics, run_files
from bfl_tf import seeds as seeds_lib
from bfl_tf.analysis import ensembles
from bfl_tf.federation import personal, plan
from bfl_tf.runs import executor, groups, study, tables
from experiments import command_line, compare
from experiments.harness import estimates, search_space

command_line.define()
flags.adopt_module_key_flags(command_line)
flags.adopt_module_key_flags(compare)
_GRID = flags.DEFINE_multi_string(
  'grid',
  [],
  'Values of a flag to compare, as flag=value|value. Several --grid flags give '
  'all combinations.',
)
_TUNE = flags.DEFINE_multi_string(
  'tune',
  [],
  'Values of a flag to choose from, for each setting of --grid: '
  'flag=value|value, flag=log:LOW:HIGH or flag=uniform:LOW:HIGH; '
  'method:flag=... is for one method, and default stands for the ranges that '
  'the methods declare.',
)
_TRIALS = flags.DEFINE_integer(
  'trials',
  8,
  'Number of random draws from the ranges of --tune, for each setting.',
  lower_bound=1,
)
_CHOOSE_BY = flags.DEFINE_string(
  'choose_by',
  'validation_nll',
  'Score whose mean over --trial_seeds chooses the values of --tune. One of: '
  f'{", ".join(search_space.MOST)}.',
)
_SEEDS = flags.DEFINE_list(
  'seeds', [], 'Random seeds of each setting, such as 0,1,2; empty: --seed.'
)
_TRIAL_SEEDS = flags.DEFINE_list(
  'trial_seeds', [], 'Random seeds of each trial; empty: --seed.'
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
_TRIALS_FOLDER = 'trials'


def main() -> int:
  """Trains the missing runs and compares the finished ones."""
  fixed, typed = command_line.given()
  is_given = 'output_dir' in typed
  root = pathlib.Path(_OUTPUT_DIR.value if is_given else 'runs/sweep')
  space = search_space.space(fixed, typed, _GRID.value)
  plans = map(plan.Plan.of, space.configs.values())
  if any(map(personal.makes_models, plans)):
    # Every row has personal scores, if one has.
    fixed = {**fixed, 'personal_scores': True}
    space = search_space.space(fixed, typed, _GRID.value)
  # Groups in the place of settings that have no finished run.
  rows = {
    name: groups.Group(groups.settings_of(config))
    for name, config in space.configs.items()
  }
  for name, (flags_of, reason) in space.refused.items():
    rows[name] = groups.Group(flags_of, failures={0: reason})
  # A wrong --names or --baseline fails before any run.
  every = [group for row in rows.values() for group in _with_ensemble(row)]
  compare.check(every, compare.output(root), _keys())
  seeds = command_line.seeds(_SEEDS.value)
  trials = _trials(fixed, typed, space)
  if trials:
    some = {name: next(iter(of.items())) for name, of in trials.items()}
    points = _final(some, root, seeds)
  else:
    points = study.points(space.configs, root, seeds)
  reasons = _checked(points, trials, root)
  for name, reason in reasons.items():
    rows[name].failures = dict.fromkeys(seeds or [fixed.get('seed', 0)], reason)
    points.pop(name)
    trials.pop(name, None)
  if not points:
    command_line.fail(next(iter(reasons.values())))
  command_line.terminable()
  failed = []
  try:
    if trials:
      of_trials = _points_of(trials, root)
      failed = _run(of_trials, root, 'trials')
      chosen = _choose(of_trials, trials, space, root)
      for name in trials.keys() - chosen.keys():
        rows[name].failures = {0: 'no trial has all its seeds'}
      points = _final(chosen, root, seeds)
    failed += _run(
      {
        name: [each for run in runs for each in _members(run)]
        for name, runs in points.items()
      },
      root,
      'runs',
    )
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'the same command continues')
  _compare(rows, points, root)
  return int(bool(failed or len(rows) > len(points)))


def _trials(fixed, typed, space):
  """Returns the trials of each setting, by its name; none without --tune."""
  if not _TUNE.value:
    if flags.FLAGS['choose_by'].present:
      raise ValueError(
        f'--choose_by={_CHOOSE_BY.value} chooses among the values of --tune: '
        'give the flags to choose with --tune in place of --grid.'
      )
    return {}
  axes = search_space.axes(_TUNE.value, space.configs.values())
  found = {
    name: search_space.trials(fixed, typed, point, axes, _TRIALS.value)
    for name, point in space.points.items()
  }
  used = {
    key for of in found.values() for each in of.values() for key in each.values
  }
  for axis in axes:
    if axis.key not in used and axis.flag in _TUNE.value:
      raise ValueError(
        f'--tune={axis.flag}: no setting of --grid uses this flag.'
      )
  several = {n: space.configs[n] for n, of in found.items() if len(of) > 1}
  search_space.check_choice(_CHOOSE_BY.value, several)
  return found


def _final(chosen, root, seeds):
  """Returns the runs with the values of a trial, by name of the setting.

  They train on all training examples. Each choice has its own directory.
  """
  return {
    name: _below(
      study.place(name),
      {values: trial.config.replace(validation_split=0.0)},
      root,
      seeds,
    )[values]
    for name, (values, trial) in chosen.items()
  }


def _below(place, configs, root, seeds):
  """Returns runs in a folder below the root, by name."""
  return {
    name: [
      dataclasses.replace(run, place=f'{place}/{run.place}') for run in runs
    ]
    for name, runs in study.points(configs, root / place, seeds).items()
  }


def _points_of(trials, root):
  """Returns the runs of all trials, by names of the setting and the trial.

  A setting with a single trial has no choice, and needs no run.
  """
  seeds = command_line.seeds(_TRIAL_SEEDS.value)
  return {
    (name, values): runs
    for name, of in trials.items()
    if len(of) > 1
    for values, runs in _below(
      f'{_TRIALS_FOLDER}/{study.place(name)}',
      {values: trial.config for values, trial in of.items()},
      root,
      seeds,
    ).items()
  }


def _checked(points, trials, root):
  """Returns why settings cannot run, by name, before any run."""
  reasons = study.check(points)
  for (name, _), reason in study.check(_points_of(trials, root)).items():
    reasons.setdefault(name, reason)
  return reasons


def _members(run):
  """Returns a run and the other members of its ensemble."""
  return [run, *(_member(run, n) for n in range(1, _ENSEMBLE.value))]


def _member(run, number):
  """Returns the run of another seed on the same data."""
  own = run.config
  draw = seeds_lib.generator(own.seed, 'ensemble_member', number)
  config = own.replace(
    seed=int(draw.integers(2**31)), data_seed=own.seed_of_data
  )
  below = f'{run.directory.name}_members/{number}'
  place = f'{run.place}_members/{number}'
  return study.Point(config, run.directory.parent / below, place)


def _run(points, root, what):
  """Trains runs; returns the failed ones."""
  every = [run for of_name in points.values() for run in of_name]
  jobs = _JOBS.value or len(os.sched_getaffinity(0))
  print(f'{root}, {what}: {estimates.described(every, jobs)}', flush=True)
  return [each for each in executor.run_all(every, jobs) if each.failed]


def _choose(points, trials, space, root):
  """Writes all trials, and returns the best one of each setting."""
  score, chosen, lines = _CHOOSE_BY.value, {}, []
  axes = search_space.axes(_TUNE.value, space.configs.values())
  for name, of in trials.items():
    if len(of) == 1:
      chosen[name] = next(iter(of.items()))
      continue
    runs = {values: points[name, values] for values in of}
    best = search_space.best(runs, score)
    for values in of:
      mean = search_space.mean_of(runs[values], score)
      failures = [run.failure for run in runs[values] if not run.is_done]
      lines.append(
        {
          'setting': name,
          **space.points[name],
          'trial': values,
          score: mean,
          'chosen': bool(best) and values == best[0],
          'failure': '; '.join(filter(None, dict.fromkeys(failures))),
        }
      )
    if best is None:
      continue
    values, mean = best
    chosen[name] = values, _with_factor(of[values], runs[values])
    print(f'chosen for {name} by {score} ({metrics.as_text(mean)}): {values}')
    for axis in search_space.axes_of(of[values].config, axes):
      tried = [t.values[axis.key] for t in of.values() if axis.key in t.values]
      value = of[values].values.get(axis.key)
      if value is not None and axis.is_end(value, tried):
        print(
          f'warning: {name}: the chosen --{axis.key}={value} is at an end of '
          f'--tune={axis.flag}: extend it'
        )
  if lines:
    tables.write_csv(root / 'trials.csv', lines)
  return chosen


def _with_factor(trial, runs):
  """Returns a trial with the factor of the posterior that its runs chose.

  The final runs have no validation examples to choose it.
  """
  summaries = [run_files.read_summary(run.directory) for run in runs]
  factors = [each.get('posterior_factor', -1) for each in summaries]
  if min(factors) < 0:  # The method has no posterior.
    return trial
  config = trial.config.replace(posterior_factor=statistics.median(factors))
  return trial._replace(config=config)


def _fill(several, runs):
  """Writes the ensembles of a setting, and adds them to its row."""
  for run in runs:
    members = _members(run)
    name = f'{run.directory.name}_ensemble{len(members)}'
    folder = run.directory.with_name(name)
    if all(each.is_done for each in members):
      if not run_files.is_finished(folder):
        ensembles.write([each.directory for each in members], folder)
      several.runs[run.config.seed] = folder
    else:
      several.failures[run.config.seed] = 'a member is not finished'


def _compare(rows, points, root):
  """Writes the comparison of the finished runs."""
  done = study.finished(points)
  if not done:
    return
  found = []
  for name, empty in rows.items():
    # A setting whose runs all failed keeps its row and the reason.
    own = groups.grouped(done.get(name, [])) or [empty]
    own[-1].failures |= {
      run.config.seed: run.failure or 'not finished'
      for run in points.get(name, [])
      if not run.is_done
    }
    for group, *several in map(_with_ensemble, own):
      found += [group, *several]
      if several:
        several[0].failures |= group.failures
        _fill(*several, points.get(name, []))
  compare.report(found, compare.output(root), _keys())


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
