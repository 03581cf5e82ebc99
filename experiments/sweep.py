"""Train a grid or random draws of settings over seeds, and compare them.

  bfl-tf sweep --flagfile=configs/quickstart.flags --output_dir=runs/rules \\
    '--grid=pooling=nwa|ws|lp' '--grid=dirichlet.alpha=0.1|0.5' --seeds=0,1,2
  bfl-tf sweep --flagfile=configs/quickstart.flags --output_dir=runs/rates \\
    '--draw=client_learning_rate=log:1e-4:1e-1' --num_draws=20 \\
    --validation_split=0.2 --choose_by=validation_nll

The same command resumes an interrupted sweep; more values, seeds or draws
extend it. The runs are compared as by `bfl-tf compare`, whose flags are also
accepted. Exit code 1: a run failed; 2: a flag is wrong, and nothing was
written. An unknown name in --scores is found only after the runs, which are
kept.
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
  'Score whose mean over seeds selects the setting in best.flags. One of: '
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
  command_line.terminable()
  typed = 'output_dir' in command_line.given()[1]
  root = pathlib.Path(_OUTPUT_DIR.value if typed else 'runs/sweep')
  runs = _planned(root)
  settings = [groups.settings_of(of[0].config) for of in runs.values()]
  compare.check([groups.Group(each) for each in settings], root)
  study.check(runs)
  every = [run for of_name in runs.values() for run in of_name]
  jobs = _JOBS.value or len(os.sched_getaffinity(0))
  print(f'{root}: {estimates.described(every, jobs)}', flush=True)
  try:
    failed = [o for o in executor.run_all(every, jobs) if o.failed]
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'the same command continues')
  _compare(runs, root)
  return int(bool(failed))


def _planned(root):
  fixed, typed = command_line.given()
  configs = search_space.configs(
    fixed, typed, _GRID.value, _DRAW.value, _NUM_DRAWS.value
  )
  if _CHOOSE_BY.value:
    search_space.check_choice(_CHOOSE_BY.value, configs)
  seeds = command_line.seeds(_SEEDS.value)
  return study.points(configs, root, seeds)


def _compare(runs, root):
  """Writes the comparison of the finished runs and the best setting."""
  done = study.finished(runs)
  if not done:
    return
  found = []
  for name, of in runs.items():
    # A setting whose runs all failed keeps its row and the reason.
    own = groups.grouped(done.get(name, [])) or [
      groups.Group(groups.settings_of(of[0].config))
    ]
    own[-1].failures |= {
      run.config.seed: run.failure or 'not finished'
      for run in of
      if not run.is_done
    }
    found += own
  compare.report(found, root)
  score = _CHOOSE_BY.value
  if found := score and search_space.best(runs, score):
    name, mean = found
    path = root / 'best.flags'
    files.write_text(path, search_space.flags_of(runs[name][0].directory))
    print(f'best by {score}, {metrics.as_text(mean)}: {name}, in {path}')
  elif score:
    print(f'no setting is selected by {score}: each lacks a finished seed')


if __name__ == '__main__':
  command_line.main(main)
