"""Runs one experiment.

  python -m experiments.run --flagfile=configs/quickstart.flags

Exit code 2: a flag or a file is wrong and nothing was written. Exit code 1: too
few good updates came in, something of one's own failed, or the disk is full;
the state is saved. Exit code 130: interrupted, 143: terminated; likewise.
"""

from absl import flags

from bfl_tf import federation
from bfl_tf import runs as runs_lib
from experiments import flags as config_flags

config_flags.define()
flags.adopt_module_key_flags(config_flags)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', None, 'Where results go; the same run resumes there.'
)
_OVERWRITE = flags.DEFINE_boolean(
  'overwrite', False, 'Replace another run in --output_dir.'
)
_SUPERLINK = flags.DEFINE_string(
  'superlink',
  '',
  "With --engine=flower, a connection of Flower's config.toml; a simulation on "
  'this machine if none.',
)


def main() -> None:
  """Runs what the flags say and prints the final scores."""
  config_flags.terminable()
  if not _OUTPUT_DIR.value:
    config_flags.fail('--output_dir is missing: name a directory for results.')
  try:
    config = config_flags.config()
    if config.engine == 'flower':
      return _on_flower(config)
    if _SUPERLINK.value:
      config_flags.fail('--superlink needs --engine=flower.')
    run = runs_lib.Run(config, _OUTPUT_DIR.value, overwrite=_OVERWRITE.value)
  except (ValueError, federation.StoppedError):
    raise
  except KeyboardInterrupt as stop:
    config_flags.interrupted(stop, 'nothing was written')
  except Exception as error:
    config_flags.fail_with_traceback(error, code=2)
  try:
    summary = run.play()
  except (runs_lib.BusyError, federation.OtherSideError) as error:
    config_flags.fail(error)
  except ValueError as error:
    config_flags.fail_with_traceback(error, code=1)
  _show(summary)


def _on_flower(config):
  """The same on Flower's simulation, or where a SuperLink listens."""
  flower = config_flags.flower('--engine=flower')
  if _SUPERLINK.value:
    path = config_flags.on_server('--output_dir', _OUTPUT_DIR.value)
    with config_flags.watching(_SUPERLINK.value):
      flower.play(config, path, _SUPERLINK.value)
    print(f"\nresults in {path}, on the server's machine")
    return
  try:
    _show(flower.simulate(config, _OUTPUT_DIR.value))
  except KeyboardInterrupt as stop:
    left = 'the same command goes on after the last round'
    config_flags.interrupted(stop, left)


def _show(summary):
  print(f'\n{runs_lib.table(summary)}\n\nresults in {_OUTPUT_DIR.value}')


if __name__ == '__main__':
  config_flags.main(main)
