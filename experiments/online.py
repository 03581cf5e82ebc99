"""Add, replace or remove a client of a finished one-shot run.

  python -m experiments.online --run=runs/fl_swag --remove=3
  python -m experiments.online --run=runs/fl_swag --add=3

The run must have stored its updates with `--server_parts=store_updates`.
Changes accumulate in `<run>/online`; the run's own files stay unchanged. Exit
code 2: the change is not possible, and nothing was changed.
"""

from absl import flags

from bfl_tf import analysis, federation, metrics, run_files
from bfl_tf.analysis import online
from bfl_tf.federation import evaluation
from bfl_tf.runs import checkpoints, run_config
from experiments import command_line, finished

flags.adopt_module_key_flags(finished)
_CHANGES = {
  kind: flags.DEFINE_integer(kind, None, f'Number of the client to {kind}.')
  for kind in online.KINDS
}


def main() -> None:
  """Makes the change and prints the traffic and the scores."""
  wanted = [
    online.Change(kind, flag.value)
    for kind, flag in _CHANGES.items()
    if flag.value is not None
  ]
  path = finished.path()
  if len(wanted) != 1:
    command_line.fail('give one of --add, --replace, --remove.')
  trained = analysis.load(path)
  run_config.check_unchanged(path, trained.config)
  # Without the lock, a concurrent change could be lost.
  with finished.locked(path):
    changed = path / run_files.ONLINE
    before = checkpoints.restore(changed) or trained.state
    try:
      online.members(before)
      experiment = federation.Experiment.build(trained.config)
      result = online.apply(experiment, before, wanted[0])
    except federation.StoppedError as error:
      command_line.fail(error)
    scores = evaluation.evaluate(experiment, result, last=True).scores
    checkpoints.save(result.state, changed)
  info = result.info
  print(f'clients  {", ".join(map(str, sorted(online.members(result.state))))}')
  print(f'sent     {info["bytes_up"]} bytes up, {info["bytes_down"]} down')
  for name in ('accuracy', 'rmse', 'nll', 'ece'):
    if name in scores:
      print(f'{name:8} {metrics.as_text(scores[name])}')


if __name__ == '__main__':
  command_line.main(main)
