"""The command `bfl-tf`: the same as `python -m experiments.<command>`.

  bfl-tf run --dataset=digits --output_dir=runs/digits
  bfl-tf run --help

User modules are found in the current folder, as with `python -m`.
"""

import difflib
import os
import runpy
import sys

# Description of each command, whose module in `experiments` has its name.
COMMANDS = {
  'run': 'Train one federated run.',
  'sweep': 'Train a grid of settings and seeds, and compare them.',
  'compare': 'Compare finished runs in a table and figures.',
  'predict': 'Predict the rows of a file with a finished run.',
  'report': 'Write a report with the scores of each site.',
  'uncertainty': 'Evaluate out-of-distribution detection and calibration.',
  'ensemble': 'Average the predictions of finished runs.',
  'export': 'Export the model of a finished run.',
  'reproduce': 'Reproduce the tables and figures of the papers.',
  'online': 'Add, change or remove a client of a finished one-shot run.',
  'sites': 'Write a data set whose clients have their own test examples.',
  'features': 'Compute features of a data set with any trained network.',
  'benchmark': 'Measure the speed of training.',
}


def main() -> None:
  """Runs the binary that the first argument names."""
  command = sys.argv[1] if len(sys.argv) > 1 else ''
  if command in ('', '-h', '--help'):
    commands = '\n'.join(
      f'  {name:12} {what}' for name, what in COMMANDS.items()
    )
    print(f'{__doc__}\nCommands:\n{commands}')
    return
  if command not in COMMANDS:
    near = difflib.get_close_matches(command, COMMANDS, n=1)
    hint = f' Did you mean {near[0]}?' if near else ''
    print(
      f'error: bfl-tf {command} is not a command.{hint} See bfl-tf --help.',
      file=sys.stderr,
    )
    sys.exit(2)
  sys.path.insert(0, os.getcwd())
  del sys.argv[1]
  module = f'experiments.{command}'
  runpy.run_module(module, run_name='__main__', alter_sys=True)


if __name__ == '__main__':
  main()
