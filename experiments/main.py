"""The command `bfl-tf`: the same as `python -m experiments.<command>`.

  bfl-tf run --dataset=digits --output_dir=runs/digits

Modules of one's own are found in the current folder, as with `python -m`.
"""

import os
import runpy
import sys

# By command, the module.
COMMANDS = {
  name: f'experiments.{name}'
  for name in (
    'run',
    'sweep',
    'predict',
    'report',
    'uncertainty',
    'compare',
    'export',
    'reproduce',
    'features',
    'online',
    'benchmark',
  )
}
_USAGE = f'bfl-tf {"|".join(COMMANDS)} --help'


def main() -> None:
  """Runs the binary that the first argument names."""
  command = sys.argv[1] if len(sys.argv) > 1 else ''
  if command in ('', '-h', '--help'):
    print(f'{__doc__}\n{_USAGE}')
    return
  if command not in COMMANDS:
    print(f'error: bfl-tf {command} is unknown: {_USAGE}.', file=sys.stderr)
    sys.exit(2)
  sys.path.insert(0, os.getcwd())
  del sys.argv[1]
  runpy.run_module(COMMANDS[command], run_name='__main__', alter_sys=True)
