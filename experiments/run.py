"""Train one federated run.

  python -m experiments.run --flagfile=configs/quickstart.flags

Exit code 2: a flag or a file is wrong, and nothing was written. Exit code 1:
too few valid updates, an error in user code, or a full disk. Exit code 130: the
run was interrupted; 143: terminated. The state is saved after codes 1, 130 and
143.
"""

from absl import flags

from bfl_tf import federation, files, runs
from experiments import command_line

command_line.define()
flags.adopt_module_key_flags(command_line)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'Directory of the results; an interrupted run in it is resumed.',
)
_OVERWRITE = flags.DEFINE_boolean(
  'overwrite', False, 'Replace another run in --output_dir.'
)
_SUPERLINK = flags.DEFINE_string(
  'superlink',
  '',
  "Connection in Flower's config.toml, for --engine=flower; empty for a "
  'simulation on this machine.',
)


def main() -> None:
  """Trains the run of the flags and prints the final scores."""
  if not _OUTPUT_DIR.value:
    command_line.fail('--output_dir is missing: name a directory for results.')
  try:
    config = command_line.config()
    if config.engine == 'flower':
      return _on_flower(config)
    if _SUPERLINK.value:
      command_line.fail('--superlink needs --engine=flower.')
    run = runs.Run(config, _OUTPUT_DIR.value, overwrite=_OVERWRITE.value)
  except (OSError, ValueError, federation.StoppedError):
    raise
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'nothing was written')
  except Exception as error:
    command_line.fail_with_traceback(error, code=2)
  # Until here, nothing needs to be saved.
  command_line.terminable()
  try:
    summary = run.execute()
  except (
    runs.BusyError, files.UnreadableError, federation.OtherSideError
  ) as error:  # fmt: skip
    command_line.fail(error)
  except ValueError as error:
    command_line.fail_with_traceback(error, code=1)
  _show(config, summary)


def _on_flower(config):
  """Runs on Flower's simulation, or on a SuperLink."""
  flower = command_line.flower('--engine=flower')
  if _SUPERLINK.value:
    path = command_line.on_server('--output_dir', _OUTPUT_DIR.value)
    with command_line.watching(_SUPERLINK.value):
      flower.execute(config, path, _SUPERLINK.value, _OVERWRITE.value)
    print(f"\nresults in {path}, on the server's machine")
    return
  command_line.terminable()
  try:
    path, overwrite = _OUTPUT_DIR.value, _OVERWRITE.value
    _show(config, flower.simulate(config, path, overwrite))
  except KeyboardInterrupt as stop:
    command_line.interrupted(stop, 'the same command continues')


def _show(config, summary):
  parts = [f'pooling {config.pooling}', *config.client_parts]
  parts += config.server_parts
  print(
    f'\n{config.dataset}, {config.model}, {config.variant}, '
    f'{config.num_clients} clients, {" + ".join(parts)}\n'
    f'{runs.table(summary)}\n\nresults in {_OUTPUT_DIR.value}'
  )


if __name__ == '__main__':
  command_line.main(main)
