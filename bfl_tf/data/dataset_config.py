"""Flags of a run that select and read its data set."""

import dataclasses

from bfl_tf.data import builtin, table_format
from bfl_tf.declare import settings
from bfl_tf.declare.settings import setting

# Fields that apply only to tables: names of columns, and notation of cells.
COLUMNS = (
  'label_column', 'client_column', 'group_column', 'ignore_columns',
  'categorical_columns',
)  # fmt: skip
FORMAT = tuple(
  field.name for field in dataclasses.fields(table_format.TableFormat)
)


@dataclasses.dataclass(frozen=True)
class DatasetConfig:
  """Data set."""

  dataset: str = setting(
    'digits',
    f'Data set: {", ".join(builtin.BUILTIN)}, tiny_imagenet, a TFDS name, '
    'the path of an .npz, .csv or .tsv file, or package.module:function.',
  )
  train_split: str = setting(
    'train', 'TFDS split of the training examples, such as train[:10000].'
  )
  test_split: str = setting('test', 'TFDS split of the test examples.')
  validation_split: float = setting(
    0.0,
    'Fraction of the training examples held out for validation.',
    ge=0,
    lt=1,
  )
  calibration_fraction: float = setting(
    0.0,
    "Fraction of each client's training examples held out for calibration.",
    ge=0,
    lt=1,
  )
  test_fraction: float = setting(
    0.2,
    "Fraction of each site's examples held out for testing, of a file "
    'without test examples.',
    ge=0,
    lt=1,
  )
  num_classes: int = setting(
    0,
    'Number of classes, if the labels do not contain all of them; 0 to count '
    'the labels.',
    ge=0,
    le=10**6,
  )
  label_column: str = setting('label', 'Column of a .csv file with the class.')
  client_column: str = setting(
    '',
    'Column of a .csv file with the client of each row, for '
    '--partition=natural.',
  )
  group_column: str = setting(
    '',
    'Column of a .csv file with the group of each row, such as a person. Rows '
    'of a group at one site stay in one split and with one client.',
  )
  ignore_columns: tuple[str, ...] = setting(
    (), 'Columns of a .csv file that are not features.'
  )
  categorical_columns: tuple[str, ...] = setting(
    (), 'Numeric columns of a .csv file that are categorical.'
  )
  min_site_examples: int = setting(
    0,
    'Minimum number of examples of a site; smaller sites are left out and '
    'listed.',
    ge=0,
  )
  separator: str = setting(
    '',
    'Separator of the cells of a table: a comma, a semicolon, | or tab; '
    'empty for a comma, and for a tab in a .tsv file.',
  )
  decimal: str = setting(
    '.', 'Decimal separator of the numbers of a table: . or a comma.'
  )
  thousands: str = setting(
    '',
    "Thousands separator of the numbers of a table: a comma, . or ', or "
    'space; empty for none.',
  )
  missing_values: tuple[str, ...] = setting(
    (),
    'Cells of a table that are missing values, besides empty cells, ?, NA, '
    'NaN, NULL: -999 in all columns, or age:999 in the column age.',
  )
  quiet_data: bool = setting(
    False, 'Print no warnings about suspicious cells and columns of a table.'
  )

  def __post_init__(self):
    for name, spec in settings.of(DatasetConfig).items():
      object.__setattr__(self, name, spec.checked(name, vars(self)[name]))

  @property
  def notation(self) -> table_format.TableFormat:
    """Notation of the cells of a table."""
    return table_format.TableFormat(*(getattr(self, name) for name in FORMAT))
