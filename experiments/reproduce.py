"""Reproduce tables, figures and claims of the papers.

  python -m experiments.reproduce --list
  python -m experiments.reproduce --artifact=posterior_pooling/table2
  python -m experiments.reproduce --claim=posterior_pooling/lp_last_at_one_epoch
  python -m experiments.reproduce --claim=all --scale=overnight --seeds=0
  python -m experiments.reproduce --claim=all --norun --scale=overnight

Finished runs are reused; interrupted runs resume. The verdicts on the claims of
a paper, and the value of each run, are written to `claims.txt` and `claims.csv`
in `<output_dir>/<scale>/<paper>`, in place of those of an earlier command.

Exit code of a claim: 0 if it holds, 1 if not, 3 if it is undecided or has no
test. Exit code of an artifact: 1 if a run failed or trains in another process.
Exit code 2: a flag is wrong.
"""

import os
import pathlib

from absl import flags

from bfl_tf import training
from bfl_tf.declare import registry
from bfl_tf.runs import executor
from experiments import command_line, papers
from experiments.harness import cells, claims, status

_LIST = flags.DEFINE_boolean(
  'list',
  False,
  'List all artifacts and claims at --scale, with their numbers of runs.',
)
_ARTIFACT = flags.DEFINE_list(
  'artifact',
  [],
  'Tables and figures to make, as <paper>/<name>, separated by commas. The '
  'value all selects all of them.',
)
_CLAIM = flags.DEFINE_list(
  'claim',
  [],
  'Claims to judge, as <paper>/<name>, separated by commas. The value all '
  'selects all of them.',
)
_SCALE = flags.DEFINE_string(
  'scale',
  'laptop',
  f'Scale of the runs. One of: {", ".join(cells.SCALES)}. smoke tests that the '
  'code runs. laptop takes minutes. overnight takes hours: all data with a '
  "smaller network. paper is the paper's own scale.",
)
_SEEDS = flags.DEFINE_list(
  'seeds',
  None,
  'Random seeds to run, such as 0,1; empty: all seeds of the scale. A claim is '
  'judged over all its seeds.',
)
_CELLS = flags.DEFINE_string(
  'cells', '', 'Run only cells whose path contains this text.'
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  'runs/reproduce',
  'Directory of the runs, tables and figures; several commands may share it.',
)
_JOBS = flags.DEFINE_integer(
  'jobs', 0, 'Number of parallel runs; 0: one per core.', lower_bound=0
)
_STORED = flags.DEFINE_string(
  'stored',
  '',
  'Directory of stored values, such as results: claims are judged from '
  '<stored>/<paper>/<scale>/claims.csv, nothing runs, and claims.txt and '
  'verdicts.csv are written next to it.',
)
_RUN = flags.DEFINE_boolean(
  'run', True, 'Train the missing runs; --norun reads finished runs only.'
)


def main() -> int | None:
  """Executes the command that the flags define."""
  command_line.terminable()
  try:
    return _do()
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'the same command continues')


def _do():
  registry.check_choice('scale', _SCALE.value, cells.SCALES)
  root = pathlib.Path(_OUTPUT_DIR.value)
  chosen = _chosen('artifact', _ARTIFACT.value, papers.ARTIFACTS)
  claimed = _chosen('claim', _CLAIM.value, papers.CLAIMS)
  if _LIST.value:
    if _SEEDS.value is not None or _CELLS.value:
      raise ValueError('--list lists everything: remove --seeds and --cells.')
    for kind, items in (
      ('Tables and figures (--artifact)', papers.ARTIFACTS),
      ('Claims (--claim)', papers.CLAIMS),
    ):
      print(f'{kind}, {_SCALE.value} scale:\n')
      print(status.listing(items, _SCALE.value, root))
    print('Artifacts and claims share runs: each run is counted in every row.')
    return None
  if not chosen and not claimed:
    raise ValueError('set --list, --artifact or --claim.')
  if _STORED.value:
    return max(_judge(claimed, pathlib.Path(_STORED.value)))
  tasks = _tasks([*chosen, *claimed], root, _seeds([*chosen, *claimed]))
  # Some figures evaluate models, with the configuration of a run.
  training.configure(0)
  if not (_RUN.value or root.is_dir()):
    raise ValueError(f'--output_dir={root} does not exist.')
  root.mkdir(parents=True, exist_ok=True)
  failed = 0
  if _RUN.value:
    jobs = _JOBS.value or len(os.sched_getaffinity(0))
    outcomes = executor.run_all(tasks, jobs)
    failed = sum(outcome.status != 'done' for outcome in outcomes)
  failed += sum(_write(artifact, root) for artifact in chosen)
  codes = _judge(claimed, root)
  # The verdict of a claim already accounts for missing runs.
  return max([*codes, int(bool(chosen and failed))])


def _write(artifact, root):
  """Writes and prints a table or figure; returns the number of failures."""
  try:
    text, broken = artifact.write(_SCALE.value, root)
  except (OSError, ValueError) as error:
    # An example is a data set that is not prepared.
    text, broken = f'{artifact.paper.name}/{artifact.name} failed: {error}', 1
  print(text, '\n')
  return broken


def _judge(claimed, root):
  """Prints and writes the verdicts on claims; returns their exit codes."""
  codes = []
  for paper in dict.fromkeys(claim.paper.name for claim in claimed):
    of_paper = [claim for claim in claimed if claim.paper.name == paper]
    folder = root / paper / _SCALE.value
    if not _STORED.value:
      verdicts, texts = claims.write(of_paper, _SCALE.value, root)
    elif (folder / 'claims.csv').exists():
      values = claims.stored(_SCALE.value, folder / 'claims.csv')
      verdicts, texts = claims.judge(of_paper, _SCALE.value, values, folder)
    else:
      raise ValueError(f'--stored={root} has no {folder / "claims.csv"}.')
    print(*texts, sep='\n\n', end='\n\n')
    codes += [claims.VERDICTS[verdict] for verdict in verdicts]
  return codes


def _tasks(wanted, root, seeds):
  tasks = status.tasks(wanted, _SCALE.value, root, seeds)
  # Cells that share a run have one directory but several names.
  named = [task for task in tasks if _CELLS.value in task.place]
  if tasks and not named:
    raise ValueError(
      f'--cells={_CELLS.value} matches no cell; a cell is named, for example, '
      f'{tasks[0].place}.'
    )
  return named


def _chosen(kind, names, known):
  if names == ['all']:
    return list(known.values())
  for name in names:
    if name not in known:
      near = registry.hint(name, known)
      raise ValueError(f'--{kind}={name} is unknown: see --list.{near}')
  return [known[name] for name in names]


def _seeds(wanted):
  if not _SEEDS.value:
    return None
  planned = {seed for item in wanted for seed in item.seeds[_SCALE.value]}
  named = set(command_line.seeds(_SEEDS.value))
  if not named <= planned:
    raise ValueError(
      f'--seeds={",".join(_SEEDS.value)} must be among those of {_SCALE.value} '
      f'scale: {", ".join(map(str, sorted(planned)))}.'
    )
  return named


if __name__ == '__main__':
  command_line.main(main)
