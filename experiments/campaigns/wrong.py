"""What a user may hand to a binary: mostly wrong, drawn at random."""

from collections.abc import Sequence
import contextlib
import pathlib
from typing import Any

import numpy as np

from bfl_tf import settings
from bfl_tf.config import config as config_lib

# No place outside of where it is tried: `convert` writes wherever it is sent.
_TEXTS = (
  '', ' ', '0', '1', '2', '3', '-1', '0.5', '-0.5', '1.5', '1e-9', '1e38',
  '1e999', '-inf', 'nan', '2147483647', '2147483648', '-9223372036854775809',
  '1' + '0' * 30, '0x10', '1_0', '1,2', '1,,2', ',', 'a,b', 'true', 'false',
  'none', 'None', '[]', '{}', '%s', '{x}', "'", '"', '--seed', '-', '=',
  '/dev/null', 'é', '\u202e', '☃' * 50, 'x' * 5000, '\t', 'a\nb',
  'os:getcwd', 'json:loads', 'no.module:f', 'os:nothing', ':', 'os:', ':f',
  'builtins:int', 'builtins:dict', 'numpy:zeros', 'math:pi', 'digits', 'wine',
  'A+C+S', '+', 'train[:9]', 'train[9', 'test', 'mnist', 'no_such_set',
)  # fmt: skip
# Of absl, those that neither ask for help nor for a debugger.
_OF_ABSL = (
  'v', 'verbosity', 'logger_levels', 'stderrthreshold', 'undefok', 'log_dir',
  'flagfile', 'alsologtostderr',
)  # fmt: skip
_KEYS = tuple(dict.fromkeys(config_lib.setting_keys()))


def one_of(things: Sequence[Any], rng: np.random.Generator) -> Any:
  """Returns one of things, of whatever type."""
  return things[int(rng.integers(len(things)))]


def flags(rng: np.random.Generator) -> list[str]:
  """Returns one to four flags of a run."""
  return [_flag(rng) for _ in range(rng.integers(1, 5))]


def others(names: Sequence[str], rng: np.random.Generator) -> list[str]:
  """Returns none to three flags of another binary."""
  return [
    f'--{one_of((*names, *_OF_ABSL), rng)}={one_of(_TEXTS, rng)}'
    for _ in range(rng.integers(4))
  ]


def _flag(rng):
  kind = rng.random()
  if kind < 0.05:
    return one_of(_TEXTS, rng)
  if kind < 0.1:
    return f'--{one_of(_OF_ABSL, rng)}={one_of(_TEXTS, rng)}'
  if kind < 0.55:
    name = one_of([*config_lib.FIELDS], rng)
    return f'--{name}={_value(config_lib.FIELDS[name], rng)}'
  key = one_of(_KEYS, rng)
  if kind < 0.65:
    cut = int(rng.integers(1, len(key)))
    key = key[:cut] + key[cut + 1 :]
  return f'--{key}={one_of(_TEXTS, rng)}'


def _value(declared: settings.Declared, rng):
  """Half of the time one that may be right."""
  if rng.random() < 0.5:
    return one_of(_TEXTS, rng)
  named = [*(declared.table or {}), *declared.setting.choices]
  if named:
    words = rng.choice(named, size=rng.integers(1, 3) if declared.many else 1)
    return ','.join(words)
  return one_of(['0', '1', '2', '0.2', 'true', 'digits', 'wine'], rng)


def npz(path: pathlib.Path, rng: np.random.Generator) -> None:
  """Writes an .npz with one to three things wrong in it."""
  size = int(rng.integers(1, 40))
  arrays: dict[str, Any] = {}
  for split in ('train', 'test'):
    arrays[f'x_{split}'] = rng.normal(size=[size, 3])
    arrays[f'y_{split}'] = np.arange(size) % 3
  for _ in range(rng.integers(1, 4)):
    name = one_of(['x_train', 'y_train', 'x_test', 'y_test', 'more'], rng)
    array = np.asarray(arrays.get(name, np.zeros(3)))
    change = one_of(_ARRAYS, rng)
    # What was changed before may not take this too.
    with contextlib.suppress(TypeError, ValueError, IndexError, OverflowError):
      arrays[name] = change(array)
  save = np.savez if rng.random() < 0.5 else np.savez_compressed
  save(path, **{k: v for k, v in arrays.items() if v is not None})
  if rng.random() < 0.4:
    damage(path, rng)


_ARRAYS = (
  lambda a: None,
  lambda a: a[:0],
  lambda a: a[1:],
  lambda a: a[None],
  lambda a: a.reshape(-1),
  lambda a: a * np.nan,
  lambda a: a * np.inf,
  lambda a: a * 1e300,
  lambda a: -a,
  lambda a: a + 0.5,
  lambda a: a * 2**40,
  lambda a: a * 0,
  lambda a: a.astype(str),
  lambda a: a.astype(object),
  lambda a: a.astype(bool),
  lambda a: a.astype(np.complex64),
  lambda a: a.astype('datetime64[s]'),
  lambda a: a.astype(np.uint8),
  lambda a: a.astype(np.float16),
  lambda a: np.float64(3),
  lambda a: np.array('text'),
  lambda a: np.array({'a': 1}),
  lambda a: np.zeros([2, 0, 3]),
  lambda a: np.eye(3)[np.arange(len(a)) % 3] if a.ndim else a,
)


def csv(path: pathlib.Path, rng: np.random.Generator) -> None:
  """Writes a .csv with one to three things wrong in it."""
  rows = [['a', 'b', 'site', 'label']]
  for i in range(int(rng.integers(0, 30))):
    rows.append([f'{i}.5', str(-i), 'xyz'[i % 3], str(i % 3)])
  for _ in range(rng.integers(1, 4)):
    row = one_of(rows, rng)
    if not row:
      continue
    place = int(rng.integers(len(row)))
    what = rng.integers(6)
    if what == 0:
      del row[place]
    elif what == 1:
      row.append(one_of(_CELLS, rng))
    elif what == 2:
      rows.append(list(row))
    elif what == 3:
      rows.remove(row)
      rows = rows or [[]]
    else:
      row[place] = one_of(_CELLS, rng)
  end, mark = one_of(['\n', '\n', '\r\n', '\r'], rng), one_of(',,,;\t', rng)
  text = end.join(mark.join(row) for row in rows)
  coding = one_of(['utf-8', 'utf-8', 'utf-8-sig', 'utf-16'], rng)
  path.write_bytes(text.encode(coding))
  if rng.random() < 0.3:
    damage(path, rng)


_CELLS = (
  '', ' ', 'nan', 'inf', '1e400', 'text', '"', '"a,b"', '"a\nb"', "'", '1,5',
  '0x1', '٣', 'label', 'a', 'site', '-1', '999999999999999999999', 'NA', '#',
  'x' * 200000, '\0', '=1+1', 'é', '1.0', 'True',
)  # fmt: skip


def flag_file(path: pathlib.Path, rng: np.random.Generator) -> None:
  """Writes a file of flags, comments and what does not belong there."""
  lines = [_flag(rng) for _ in range(rng.integers(0, 5))]
  lines.insert(
    int(rng.integers(len(lines) + 1)),
    one_of(
      ['# a comment', '', 'no flag', f'--flagfile={path}', '--flagfile',
       '--num_rounds', '--noaugment', '--num_rounds 3', '----', '\\', '\ufeff'],
      rng,
    ),
  )  # fmt: skip
  path.write_text('\n'.join(lines), encoding='utf-8', errors='replace')
  if rng.random() < 0.3:
    damage(path, rng)


def damage(path: pathlib.Path, rng: np.random.Generator) -> None:
  """Cuts, empties, changes or removes a file, or puts a folder there."""
  data = bytearray(path.read_bytes())
  how = rng.integers(6)
  if how == 0:
    path.write_bytes(data[: int(rng.integers(len(data) + 1))])
  elif how == 1:
    path.write_bytes(b'')
  elif how == 2:
    path.unlink()
  elif how == 3:
    path.unlink()
    path.mkdir()
  else:
    for _ in range(int(rng.integers(1, 4)) if data else 0):
      data[rng.integers(len(data))] = int(rng.integers(256))
    path.write_bytes(data)
