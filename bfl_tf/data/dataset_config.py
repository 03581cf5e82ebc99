"""Flags of a run that select and read its data set."""

import dataclasses
from typing import Annotated

from bfl_tf.data import builtin, table_format
from bfl_tf.declare import settings
from bfl_tf.declare.settings import Setting

# Fields that apply only to tables: names of columns, and notation of cells.
COLUMNS = (
  'label_column', 'client_column', 'ignore_columns', 'categorical_columns',
)  # fmt: skip
FORMAT = tuple(
  field.name for field in dataclasses.fields(table_format.TableFormat)
)


@dataclasses.dataclass(frozen=True)
class DatasetConfig:
  """Data set."""

  dataset: Annotated[
    str,
    Setting(
      f'Data set: {", ".join(builtin.BUILTIN)}, tiny_imagenet, a TFDS name, '
      'the path of an .npz, .csv or .tsv file, or package.module:function.'
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
      le=10**6,
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
  min_site_examples: Annotated[
    int,
    Setting(
      'Minimum number of examples of a site; smaller sites are left out and '
      'listed.',
      ge=0,
    ),
  ] = 0
  separator: Annotated[
    str,
    Setting(
      'Separator of the cells of a table: a comma, a semicolon, | or tab; '
      'empty for a comma, and for a tab in a .tsv file.'
    ),
  ] = ''
  decimal: Annotated[
    str, Setting('Decimal separator of the numbers of a table: . or a comma.')
  ] = '.'
  thousands: Annotated[
    str,
    Setting(
      "Thousands separator of the numbers of a table: a comma, . or ', or "
      'space; empty for none.'
    ),
  ] = ''
  missing_values: Annotated[
    tuple[str, ...],
    Setting(
      'Cells of a table that are missing values, such as -999, besides empty '
      'cells, ?, NA, NaN, NULL.'
    ),
  ] = ()

  def __post_init__(self):
    for name, spec in settings.of(DatasetConfig).items():
      object.__setattr__(self, name, spec.checked(name, vars(self)[name]))

  @property
  def notation(self) -> table_format.TableFormat:
    """Notation of the cells of a table."""
    return table_format.TableFormat(*(getattr(self, name) for name in FORMAT))
