"""Runs one experiment.

  python -m experiments.run --flagfile=configs/quickstart.flags

Exit code 2: a flag or a file is wrong and nothing was written. Exit code 1: too
few good updates came in, something of one's own failed, or the disk is full;
the state is saved. Exit code 130: interrupted, 143: terminated; likewise.
"""

import signal

from absl import flags

from bfl_tf import federation, own
from experiments import flags as config_flags

config_flags.define()
flags.adopt_module_key_flags(config_flags)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', None, 'Where results go; the same run resumes there.'
)
_SUPERLINK = flags.DEFINE_string(
  'superlink',
  '',
  "With --engine=flower, a connection of Flower's config.toml; a simulation on "
  'this machine if none.',
)


def main() -> None:
  """Runs what the flags say and prints the final scores."""
  signal.signal(signal.SIGTERM, _terminate)
  if not _OUTPUT_DIR.value:
    config_flags.fail('--output_dir is missing: name a directory for results.')
  try:
    config = config_flags.config()
    if config.engine == 'flower':
      return _on_flower(config)
    if _SUPERLINK.value:
      config_flags.fail('--superlink needs --engine=flower.')
    run = federation.Run(config, _OUTPUT_DIR.value)
  except ValueError as error:
    config_flags.fail(error)
  except KeyboardInterrupt as stop:
    why = str(stop) or 'interrupted'
    config_flags.fail(f'{why}: nothing was written', _code(stop))
  except Exception as error:
    _fail_if_theirs(error, code=2)
  try:
    summary = run.play()
  except federation.BusyError as error:
    config_flags.fail(error)
  except federation.StoppedError as error:
    config_flags.fail(error, code=1)
  except KeyboardInterrupt as stop:
    config_flags.fail(stop, _code(stop))
  except Exception as error:
    _fail_if_theirs(error, code=1)
  _show(summary)


def _on_flower(config):
  """The same on Flower's simulation, or where a SuperLink listens."""
  flower = config_flags.flower('--engine=flower')
  try:
    if _SUPERLINK.value:
      path = config_flags.on_server('--output_dir', _OUTPUT_DIR.value)
      flower.play(config, path, _SUPERLINK.value)
      print(f"\nresults in {_OUTPUT_DIR.value}, on the server's machine")
    else:
      _show(flower.simulate(config, _OUTPUT_DIR.value))
  except federation.StoppedError as error:
    config_flags.fail(error, code=1)
  except KeyboardInterrupt as stop:
    left = (
      f'the run goes on: flwr list {_SUPERLINK.value} tells its number, flwr '
      'stop ends it'
      if _SUPERLINK.value
      else 'the same command goes on after the last round'
    )
    config_flags.fail(f'{str(stop) or "interrupted"}: {left}', _code(stop))


def _show(summary):
  print(f'\n{federation.table(summary)}\n\nresults in {_OUTPUT_DIR.value}')


def _terminate(*unused):
  raise federation.Terminated('terminated')


def _code(stop):
  return 143 if isinstance(stop, federation.Terminated) else 130


def _fail_if_theirs(error, code):
  """One line for what a person's own code raised; ours shows all of it."""
  if own.place(error) is None:
    raise error
  config_flags.fail(f'{own.describe(error)}.', code)


if __name__ == '__main__':
  config_flags.main(main)
