"""Export the model of a finished run as a TensorFlow SavedModel.

  python -m experiments.export --run=runs/wine_sites --output=exported

Processes without this package can load it. Its random seed is fixed. Exit code
2: the export failed, and nothing was written.
"""

from __future__ import annotations

from absl import flags

from bfl_tf.analysis import exporting
from bfl_tf.startup import tf
from experiments import command_line, finished

_SAMPLES = finished.num_mc_samples()
_SITE = finished.site()
flags.adopt_module_key_flags(finished)
_OUTPUT = flags.DEFINE_string(
  'output', None, 'Directory of the SavedModel, which must not exist.'
)


def main() -> None:
  """Exports the model and prints its path."""
  run = finished.path()
  if not _OUTPUT.value:
    command_line.fail('--output is missing: name a new folder.')
  trained = finished.model(run, _SITE.value)
  try:
    path = exporting.export(trained, _OUTPUT.value, _SAMPLES.value)
  except tf.errors.OpError as error:
    # TensorFlow raises this error if the disk is full.
    reason = error.message.splitlines()[0]
    command_line.fail(f'--output={_OUTPUT.value}: {reason}.', code=1)
  print(path)


if __name__ == '__main__':
  command_line.main(main)
