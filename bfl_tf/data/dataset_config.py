"""Flags of a run that select and read its data set."""

import dataclasses
from typing import Annotated

from bfl_tf.config.settings import Setting
from bfl_tf.data import builtin

# Fields that apply only to .csv files.
COLUMNS = (
  'label_column', 'client_column', 'ignore_columns', 'categorical_columns',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class DatasetConfig:
  """Data set."""

  dataset: Annotated[
    str,
    Setting(
      f'Data set: {", ".join(builtin.BUILTIN)}, tiny_imagenet, a TFDS name, '
      'the path of an .npz or .csv file, or package.module:function.'
    ),
  ] = 'digits'
  train_split: Annotated[
    str, Setting('TFDS split of the training examples, such as train[:10000].')
  ] = 'train'
  test_split: Annotated[str, Setting('TFDS split of the test examples.')] = (
    'test'
  )
  validation_split: Annotated[
    float,
    Setting(
      'Fraction of the training examples held out for validation.', ge=0, lt=1
    ),
  ] = 0.0
  calibration_fraction: Annotated[
    float,
    Setting(
      "Fraction of each client's training examples held out for calibration.",
      ge=0,
      lt=1,
    ),
  ] = 0.0
  test_fraction: Annotated[
    float,
    Setting(
      "Fraction of each site's examples held out for testing, of a file "
      'without test examples.',
      ge=0,
      lt=1,
    ),
  ] = 0.2
  num_classes: Annotated[
    int,
    Setting(
      'Number of classes, if the labels do not contain all of them; 0 to count '
      'the labels.',
      ge=0,
    ),
  ] = 0
  label_column: Annotated[
    str, Setting('Column of a .csv file with the class.')
  ] = 'label'
  client_column: Annotated[
    str,
    Setting(
      'Column of a .csv file with the client of each row, for '
      '--partition=natural.'
    ),
  ] = ''
  ignore_columns: Annotated[
    tuple[str, ...], Setting('Columns of a .csv file that are not features.')
  ] = ()
  categorical_columns: Annotated[
    tuple[str, ...],
    Setting('Numeric columns of a .csv file that are categorical.'),
  ] = ()
