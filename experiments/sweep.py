"""Train a grid or random draws of settings over seeds, and compare them.

  bfl-tf sweep --flagfile=configs/quickstart.flags --output_dir=runs/rules \\
    '--grid=pooling=nwa|ws|lp' '--grid=dirichlet.alpha=0.1|0.5' --seeds=0,1,2
  bfl-tf sweep --flagfile=configs/quickstart.flags --output_dir=runs/rates \\
    '--grid=method=fedavg|flipout_nwa|pvi' \\
    '--draw=client_learning_rate=log:1e-4:1e-1' --num_draws=20 \\
    --validation_split=0.2 --choose_by=validation_nll

The same command resumes an interrupted sweep; more values, seeds or draws
extend it. The runs are compared as by `bfl-tf compare`, whose flags are also
accepted. With --grid=method=fedavg|pvi, --choose_by selects a setting of each
method and compares the selected ones. A combination that cannot run becomes a
row with the reason. Exit code 1: a run failed or cannot run; 2: a flag is
wrong, and nothing was written. An unknown name in --scores is found only after
the runs, which are kept.
"""

import os
import pathlib

from absl import flags

from bfl_tf import files, metrics
from bfl_tf.runs import executor, groups, study
from experiments import command_line, compare
from experiments.harness import estimates, search_space

command_line.define()
flags.adopt_module_key_flags(command_line)
flags.adopt_module_key_flags(compare)
_GRID = flags.DEFINE_multi_string(
  'grid',
  [],
  'Values of a flag, as flag=value|value. Several --grid flags give all '
  'combinations.',
)
_DRAW = flags.DEFINE_multi_string(
  'draw',
  [],
  'Random values of a flag, as flag=log:LOW:HIGH or flag=uniform:LOW:HIGH.',
)
_NUM_DRAWS = flags.DEFINE_integer(
  'num_draws', 10, 'Number of random settings, for --draw.', lower_bound=1
)
_SEEDS = flags.DEFINE_list(
  'seeds', [], 'Random seeds of each setting, such as 0,1,2; empty: --seed.'
)
_JOBS = flags.DEFINE_integer(
  'jobs', 0, 'Number of parallel runs; 0: one per core.', lower_bound=0
)
_CHOOSE_BY = flags.DEFINE_string(
  'choose_by',
  '',
  'Score whose mean over seeds selects the setting in best.flags, or the '
  'setting of each method in best/. One of: '
  f'{", ".join(search_space.MOST)}.',
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'Directory of the runs and their comparison; empty: runs/sweep. The '
  '--output_dir of a preset is ignored.',
)


def main() -> int:
  """Trains the missing runs and compares the finished ones."""
  typed = 'output_dir' in command_line.given()[1]
  root = pathlib.Path(_OUTPUT_DIR.value if typed else 'runs/sweep')
  space = _space()
  study_runs = study.points(
    space.configs, root, command_line.seeds(_SEEDS.value)
  )
  # Groups in the place of settings that have no finished run.
  rows = {
    name: groups.Group(groups.settings_of(of[0].config))
    for name, of in study_runs.items()
  }
  for name, (flags_of, reason) in space.refused.items():
    rows[name] = groups.Group(flags_of, failures={0: reason})
  compare.check([*rows.values()], compare.output(root))
  reasons = study.check(study_runs)
  if len(reasons) == len(study_runs):
    command_line.fail(next(iter(reasons.values())))
  for name, reason in reasons.items():
    seeds = [of.config.seed for of in study_runs.pop(name)]
    rows[name].failures = dict.fromkeys(seeds, reason)
  every = [run for of_name in study_runs.values() for run in of_name]
  jobs = _JOBS.value or len(os.sched_getaffinity(0))
  print(f'{root}: {estimates.described(every, jobs)}', flush=True)
  command_line.terminable()
  try:
    failed = [o for o in executor.run_all(every, jobs) if o.failed]
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'the same command continues')
  _compare(rows, study_runs, root)
  return int(bool(failed or len(rows) > len(study_runs)))


def _space():
  fixed, typed = command_line.given()
  if _CHOOSE_BY.value:
    search_space.check_axes(_GRID.value, _DRAW.value)
  found = search_space.space(
    fixed, typed, _GRID.value, _DRAW.value, _NUM_DRAWS.value
  )
  if _CHOOSE_BY.value:
    search_space.check_choice(_CHOOSE_BY.value, found.configs)
  return found


def _compare(rows, runs, root):
  """Writes the comparison of the finished runs and the best settings."""
  done = study.finished(runs)
  if not done:
    return
  found = []
  for name, empty in rows.items():
    # A setting whose runs all failed keeps its row and the reason.
    own = groups.grouped(done.get(name, [])) or [empty]
    own[-1].failures |= {
      run.config.seed: run.failure or 'not finished'
      for run in runs.get(name, [])
      if not run.is_done
    }
    found += own
  compare.report(found, compare.output(root), also=_CHOOSE_BY.value)
  if _CHOOSE_BY.value:
    _choose(runs, root)


def _choose(runs, root):
  """Writes the best setting, or that of each method with their comparison."""
  score, chosen = _CHOOSE_BY.value, []
  keys = [text.partition('=')[0] for text in (*_GRID.value, *_DRAW.value)]
  methods = dict.fromkeys(of[0].config.method for of in runs.values())
  for method in methods:
    own = {k: of for k, of in runs.items() if of[0].config.method == method}
    best = search_space.best(own, score)
    of = f' of {method}' if len(methods) > 1 else ''
    if best is None:
      print(f'no setting{of} is selected: each lacks a finished seed')
      continue
    name, mean = best
    path = root / 'best' / f'{method}.flags' if of else root / 'best.flags'
    path.parent.mkdir(exist_ok=True)
    files.write_text(path, search_space.flags_of(own[name][0].directory))
    print(f'best{of} by {score}, {metrics.as_text(mean)}: {name}, in {path}')
    # A random value is often the smallest or largest one by chance.
    for key in search_space.at_an_edge(own, name, keys[: len(_GRID.value)]):
      print(f'{key} is the smallest or largest value: add values{of}')
    chosen += groups.grouped(run.directory for run in own[name])
  if len(methods) > 1 and chosen:
    folder = (compare.output() or root) / 'best'
    compare.report(chosen, folder, keys, score)


if __name__ == '__main__':
  command_line.main(main)
