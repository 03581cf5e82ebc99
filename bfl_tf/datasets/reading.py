"""How a source of examples is read: flags of a run, declared once."""

import dataclasses
from typing import Annotated

from bfl_tf.datasets import builtin
from bfl_tf.settings import Setting

# Of a .csv alone.
COLUMNS = (
  'label_column', 'client_column', 'ignore_columns', 'categorical_columns',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Reading:
  """How a source is read; each field is a flag of its name."""

  dataset: Annotated[
    str,
    Setting(
      f'{", ".join(builtin.BUILTIN)}, a TFDS name, tiny_imagenet, a path to '
      '.npz or .csv, or package.module:function.'
    ),
  ] = 'digits'
  train_split: Annotated[str, Setting("TFDS slice: 'train[:10000]'.")] = 'train'
  test_split: Annotated[str, Setting('TFDS slice.')] = 'test'
  validation_split: Annotated[
    float,
    Setting(
      'Fraction of the training examples kept for validation.', least=0, below=1
    ),
  ] = 0.0
  calibration_fraction: Annotated[
    float,
    Setting(
      "Of each site's training examples, kept to calibrate by.",
      least=0,
      below=1,
    ),
  ] = 0.0
  test_fraction: Annotated[
    float,
    Setting(
      "Of each site's examples, kept to test on, of a file that has no test "
      'examples.',
      least=0,
      below=1,
    ),
  ] = 0.2
  num_classes: Annotated[
    int,
    Setting('Where no site has seen them all; 0: as the labels say.', least=0),
  ] = 0
  label_column: Annotated[str, Setting('Of a .csv: the class.')] = 'label'
  client_column: Annotated[
    str, Setting('Of a .csv: whose each row is, for --partition=natural.')
  ] = ''
  ignore_columns: Annotated[
    tuple[str, ...], Setting('Of a .csv: columns that are no features.')
  ] = ()
  categorical_columns: Annotated[
    tuple[str, ...],
    Setting('Of a .csv: columns whose numbers name categories.'),
  ] = ()
