"""Runs one experiment.

  python -m experiments.run --flagfile=configs/quickstart.flags

Exit code 2: a flag or a file is wrong and nothing was written. Exit code 1: too
few good updates came in; the state is saved.
"""

from absl import flags

from bfl_tf import federation
from experiments import flags as config_flags

config_flags.define()
flags.adopt_module_key_flags(config_flags)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', None, 'Where results go; the same run resumes there.'
)


def main() -> None:
  """Runs what the flags say and prints the final scores."""
  if not _OUTPUT_DIR.value:
    config_flags.fail('--output_dir is missing: name a directory for results.')
  try:
    run = federation.Run(config_flags.config(), _OUTPUT_DIR.value)
  except ValueError as error:
    config_flags.fail(error)
  try:
    summary = run.play()
  except federation.TooFewClientsError as error:
    config_flags.fail(error, code=1)
  print(f'\n{federation.table(summary)}\n\nresults in {_OUTPUT_DIR.value}')


if __name__ == '__main__':
  config_flags.main(main)
