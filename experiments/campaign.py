"""Tries to break what is promised, and counts.

  python -m experiments.campaign --case=kills --count=100

kills: runs killed at random moments. inputs: bad flags, files and directories
of runs. updates: what a client may send. files: a run's files, damaged. soak:
so many rounds of all four papers' presets. `docs/reliability.md` says what each
expects.

Prints a table of what was tried and how often a promise broke, and what broke.
The same command goes on counting where it was interrupted. Exit code 1: a
promise was broken; 2: a flag is wrong.
"""

import pathlib

from absl import flags

from bfl_tf import seeds
from experiments import flags as config_flags
from experiments.campaigns import books, files, inputs, kills, soak, updates

CASES = {
  'files': files.Case,
  'inputs': inputs.Case,
  'kills': kills.Case,
  'soak': soak.Case,
  'updates': updates.Case,
}
_CASE = flags.DEFINE_enum('case', 'kills', [*CASES], 'What to try.')
_COUNT = flags.DEFINE_integer('count', 10, 'Attempts.', lower_bound=1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of what is tried.', lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', 'runs/campaign', 'Where counts go, and what broke.'
)


def main() -> int:
  """Goes on until there are enough attempts; prints what came of them."""
  folder = pathlib.Path(_OUTPUT_DIR.value) / f'{_CASE.value}-{_SEED.value}'
  folder.mkdir(parents=True, exist_ok=True)
  book = books.Book(folder / 'trials.jsonl')
  case = CASES[_CASE.value](folder, _COUNT.value)
  try:
    while book.count < _COUNT.value:
      number = len(book.trials)
      rng = seeds.generator(_SEED.value, f'campaign_{_CASE.value}', number)
      book.add(case.trial(number, rng))
  finally:
    case.close()
  print(book.table())
  for trial in book.trials:
    if trial.note:
      print(trial.note)
  for broken in book.broken:
    print(f'broken: {broken}')
  return int(bool(book.broken))


if __name__ == '__main__':
  config_flags.main(main)
