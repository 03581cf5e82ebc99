"""Flags of a config: its fields, and the settings of the methods it chooses.

Flags are parsed twice: first those that choose methods, then their settings,
`--<method>.<setting>=value`. What is wrong is one line, code 2.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import errno
import functools
import inspect
import os
import pathlib
import re
import select
import signal
import sys
import traceback
import types
import typing

from absl import app, flags, logging

from bfl_tf import federation, own
from bfl_tf.config import config as config_lib
from experiments import describe

_DEFINE = {
  bool: flags.DEFINE_boolean,
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  str: flags.DEFINE_string,
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SETTING = re.compile(r'--?(?P<key>\w+(?:\.\w+)+)(?:=(?P<text>.*))?')


@dataclasses.dataclass
class _Given:
  """Settings as texts, in order; those that a person typed."""

  texts: dict[str, str] = dataclasses.field(default_factory=dict)
  typed: list[str] = dataclasses.field(default_factory=list)


_given = _Given()


def define(values: flags.FlagValues = flags.FLAGS) -> None:
  """Defines a flag for every field of the config."""
  for name, declared in config_lib.FIELDS.items():
    doc, default = declared.help, declared.default
    if declared.many:
      items = [str(item) for item in default]
      flags.DEFINE_list(name, items, doc, flag_values=values)
    else:
      _DEFINE[declared.kind](name, default, doc, flag_values=values)


def config() -> config_lib.Config:
  """Returns the config that the parsed flags say.

  Raises:
    ValueError: naming the flag.
  """
  return config_lib.Config.of(
    {**_fields(flags.FLAGS), **_given.texts}, typed=_given.typed
  )


def read_file(path: str | os.PathLike) -> dict[str, typing.Any]:
  """Returns those fields and settings that a preset sets."""
  values = flags.FlagValues()
  define(values)
  flags.DEFINE_string('output_dir', None, '', flag_values=values)
  rest, given = _split(values, [str(path), f'--flagfile={path}'])
  values(rest)
  return {**_fields(values, present=True), **given.texts}


def main(function: Callable[..., int | None]) -> None:
  """Runs a binary: parses flags, turns what a user got wrong into one line.

  Args:
    function: without arguments, or with one for the words beside the flags.
  """
  takes_words = bool(inspect.signature(function).parameters)

  def body(arguments: Sequence[str]) -> int | None:
    try:
      code = call(arguments)
      if sys.stdout:
        sys.stdout.flush()
      return code
    except KeyboardInterrupt as stop:
      interrupted(stop)
    except OSError as error:
      # A file that somebody named, or one of a run, is none to be read.
      place = '' if error.filename is None else f'{error.filename}: '
      if error.errno in _FULL:
        fail(f'{place}{error.strerror}: make room, then do it again.', code=1)
      if not place:
        raise
      fail(f'{place}{error.strerror}.')

  def call(arguments: Sequence[str]) -> int | None:
    if takes_words:
      return function(arguments[1:])
    if len(arguments) > 1:
      fail(f'unexpected argument {arguments[1]!r}; flags begin with --.')
    return function()

  module = sys.modules[function.__module__]
  try:
    app.run(body, flags_parser=functools.partial(_parse, module))
  except BrokenPipeError:
    if _is_read():
      raise  # Another pipe's.
    # What is left is flushed once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def fail(message: object, code: int = 2) -> typing.NoReturn:
  """Prints one line and exits; what a person's own code raised comes before."""
  theirs = isinstance(message, own.RaisedError | federation.CulpritError)
  if theirs and message.__cause__:
    traceback.print_exception(message.__cause__)
  # What was typed may have more lines.
  line = ' '.join(str(message).splitlines())
  print(f'error: {line}', file=sys.stderr)
  sys.exit(code)


def fail_with_traceback(error: Exception, code: int) -> typing.NoReturn:
  """Prints what nobody expected, theirs or ours, and exits."""
  traceback.print_exception(error)
  fail(f'{own.describe(error)}.', code)


def flower(flag: str) -> types.ModuleType:
  """Returns `bfl_tf.flower`; without its extra, one line says what needs it."""
  try:
    from bfl_tf import flower as module
  except ModuleNotFoundError as error:
    fail(
      f"{flag} needs {error.name}, of the extra: pip install 'bfl_tf[flower]'."
    )
  return module


def on_server(flag: str, path: str | os.PathLike) -> pathlib.Path:
  """Returns a path of another machine, where no working directory is ours."""
  if not os.path.isabs(path):
    fail(
      f"{flag}={path}: with --superlink it is a path on the server's machine: "
      'begin it with /.'
    )
  return pathlib.Path(path)


@contextlib.contextmanager
def watching(connection: str) -> Iterator[None]:
  """Turns what ends a run on a SuperLink, or the watching, into one line."""
  try:
    yield
  except federation.StoppedError as error:
    fail(error, code=1)
  except KeyboardInterrupt as stop:
    interrupted(
      stop,
      f'the run goes on: flwr list {connection} tells its number, flwr stop '
      'ends it',
    )


def interrupted(stop: KeyboardInterrupt, left: str = '') -> typing.NoReturn:
  """Says what an interrupt left behind: code 130; 143 if terminated."""
  code = 143 if isinstance(stop, federation.Terminated) else 130
  said = [str(stop) or 'interrupted', *([left] if left else [])]
  fail(': '.join(said), code)


def terminable() -> None:
  """Has SIGTERM end the program as Ctrl-C does."""
  signal.signal(signal.SIGTERM, _terminate)


def _is_read() -> bool:
  """Whether who reads the output is still there; `head` may have gone."""
  ends = select.poll()
  try:
    ends.register(sys.stdout.fileno(), select.POLLOUT)
  except (AttributeError, OSError):  # None, or no file.
    return True
  return not any(
    event & (select.POLLERR | select.POLLHUP) for _, event in ends.poll(0)
  )


def _terminate(*unused):
  raise federation.Terminated('terminated')


def _fields(values, present=False) -> dict[str, typing.Any]:
  fields = {}
  for name, declared in config_lib.FIELDS.items():
    if name in values and (values[name].present or not present):
      value = values[name].value
      fields[name] = (
        declared.parse(name, declared.format(value)) if declared.many else value
      )
  return fields


def _parse(module, arguments):
  # TensorFlow reports every checkpoint at INFO.
  logging.set_verbosity(logging.WARNING)
  try:
    describe.answer(arguments, module)
    rest, given = _split(flags.FLAGS, arguments)
    _given.texts, _given.typed = given.texts, given.typed
    return flags.FLAGS(rest)
  except flags.Error as error:
    said = ' '.join(str(error).split()).rstrip('.')
    fail(f'{said}.{_near(str(error))}')
  except UnicodeDecodeError as error:
    fail(f'--flagfile names a file that is no text in UTF-8: {error}.')
  except ValueError as error:
    fail(error)


def _split(values, arguments) -> tuple[list[str], _Given]:
  """Returns the flags of absl and, apart, the settings of methods."""
  if 'pooling' not in values:
    # A binary without a config: a setting is a flag that it does not know.
    return list(arguments), _Given()
  rest, given = list(arguments[:1]), _Given()
  words = list(arguments[1:])
  while words:
    word = words.pop(0)
    if re.fullmatch(r'--?flagfile', word) and words:
      word = f'{word}={words.pop(0)}'
    from_file = re.match(r'--?flagfile=', word)
    lines = values.read_flags_from_files([word], False) if from_file else [word]
    for line in lines:
      found = _SETTING.fullmatch(line)
      if not found:
        rest.append(line)
        continue
      following = words if not from_file else []
      key, text = _key_and_text(found['key'], found['text'], following)
      given.texts[key] = text
      if not from_file and key not in given.typed:
        given.typed.append(key)
  return rest, given


def _key_and_text(key, text, words) -> tuple[str, str]:
  """Reads `--a.b=c`, `--a.b c`, and of a switch `--a.b` and `--noa.b`."""
  if text is not None:
    return key, text
  known = config_lib.known_settings()
  plain = key.removeprefix('start.')
  if plain not in known and plain.removeprefix('no') in known:
    return key.replace(plain, plain.removeprefix('no')), 'false'
  switch = plain in known and known[plain].kind is bool
  if not switch and words and not words[0].startswith('-'):
    return key, words.pop(0)
  return key, 'true'


def _near(message):
  """A hint for a flag that is a setting now, or nearly one of the config's."""
  found = re.search(r"flag '(\w+)'", message)
  if not found or 'pooling' not in flags.FLAGS:
    return ''
  return config_lib.near(found[1], '--{}')
