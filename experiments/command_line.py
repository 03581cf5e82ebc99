"""Flags of the fields of a config and of the settings of its methods.

Settings, `--<method>.<setting>=value`, are separated before absl parses the
other flags. A wrong flag gives an error of one line and exit code 2.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import errno
import functools
import inspect
import io
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

from bfl_tf import federation
from bfl_tf.config import catalog, flagfile
from bfl_tf.config import config as config_lib
from bfl_tf.declare import registry, user_code
from experiments import describe

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Packages whose errors are printed as one line.
_OURS = ('bfl_tf', 'experiments', '__main__')
# Longest time between SIGTERM and the end of the process.
_GRACE_SECONDS = 4
_given = flagfile.TypedFlags()


def define() -> None:
  """Defines a flag for every field of the config."""
  flagfile.define(flags.FLAGS, config_lib.FIELDS)
  # --help shows a module's own flags, so binaries adopt these from here.
  flags.adopt_module_key_flags(flagfile)


def seeds(texts: list[str]) -> list[int]:
  """Returns the random seeds of the flag `--seeds`."""
  spec = dataclasses.replace(config_lib.FIELDS['seed'], many=True)
  text = ','.join(texts)
  found = spec.checked('seeds', text)
  if len(set(found)) < len(found):
    raise ValueError(f'--seeds={text} contains a seed twice.')
  return list(found)


def given() -> tuple[dict[str, typing.Any], list[str]]:
  """Returns the parsed fields, method and settings; names of typed flags."""
  fields = flagfile.fields(flags.FLAGS, config_lib.FIELDS)
  method = flags.FLAGS.method
  return {**fields, 'method': method, **_given.texts}, _given.typed


def config() -> config_lib.Config:
  """Returns the config of the parsed flags."""
  values, typed = given()
  made = config_lib.Config.of(values, typed=typed)
  if unused := config_lib.ignored(values, typed):
    keys = ' '.join(f'--{key}' for key in sorted(unused))
    print(f'not used, because their methods are not selected: {keys}')
  return made


def main(function: Callable[..., int | None]) -> None:
  """Runs a binary: parses flags and reports user errors in one line.

  Args:
    function: Function without parameters, or with one for positional arguments.
  """
  encodable()
  takes_words = bool(inspect.signature(function).parameters)

  def body(arguments: Sequence[str]) -> int | None:
    try:
      code = call(arguments)
      if sys.stdout:
        sys.stdout.flush()
      return code
    except KeyboardInterrupt as stop:
      interrupted(stop)
    except SystemExit as error:
      if _is_ours(error):
        raise
      fail_with_traceback(error, code=2)
    except ValueError as error:
      if _is_ours(error):
        fail(error)
      fail_with_traceback(error, code=2)
    except federation.StoppedError as error:
      fail(error, code=1)
    except OSError as error:
      # A file of a flag or of a run cannot be read or written.
      place = '' if error.filename is None else f'{error.filename}: '
      if error.errno in _FULL:
        fail(
          f'{place}{error.strerror}: free some disk space, then repeat the '
          'command.',
          code=1,
        )
      if not place:
        raise
      fail(f'{place}{error.strerror}.')
    except Exception as error:
      fail_with_traceback(error, code=1)

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
      raise  # The error is from another pipe.
    # Python flushes the remaining output once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def encodable() -> None:
  """Prints characters that the terminal cannot encode as escapes."""
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
      stream.reconfigure(errors='backslashreplace')


def _is_read() -> bool:
  """Returns whether the reader of the output, such as `head`, still runs."""
  ends = select.poll()
  try:
    ends.register(sys.stdout.fileno(), select.POLLOUT)
  except (AttributeError, OSError):  # stdout is None or has no descriptor.
    return True
  return not any(
    event & (select.POLLERR | select.POLLHUP) for _, event in ends.poll(0)
  )


def _is_ours(error):
  """Returns whether the error is from this package, not other code."""
  *_, (frame, _) = traceback.walk_tb(error.__traceback__)
  return frame.f_globals['__name__'].partition('.')[0] in _OURS


def fail(message: object, code: int = 2) -> typing.NoReturn:
  """Prints one line and exits; a traceback of user code comes first."""
  theirs = isinstance(
    message, user_code.RaisedError | federation.ComponentError
  )
  if theirs and message.__cause__:
    print(user_code.traceback_of(message.__cause__), file=sys.stderr)
  # User input in the message may contain line breaks.
  line = ' '.join(str(message).splitlines())
  print(f'error: {line}', file=sys.stderr)
  sys.exit(code)


def fail_with_traceback(error: BaseException, code: int) -> typing.NoReturn:
  """Prints the traceback of an unexpected error and exits."""
  print(user_code.traceback_of(error), file=sys.stderr)
  fail(f'{user_code.describe(error)}.', code)


def flower(flag: str) -> types.ModuleType:
  """Returns `bfl_tf.flower`; exits if its extra is not installed."""
  try:
    from bfl_tf import flower as module
  except ModuleNotFoundError as error:
    fail(f"{flag} needs {error.name}, of the extra: pip install '.[flower]'.")
  return module


def on_server(flag: str, path: str | os.PathLike) -> pathlib.Path:
  """Returns a path on the server's machine, which must be absolute."""
  if not os.path.isabs(path):
    fail(
      f"{flag}={path}: with --superlink it is a path on the server's machine: "
      'begin it with /.'
    )
  return pathlib.Path(path)


@contextlib.contextmanager
def watching(connection: str) -> Iterator[None]:
  """Reports on an interrupt that the run on a SuperLink continues."""
  try:
    yield
  except KeyboardInterrupt as stop:
    interrupted(
      stop,
      f'the run continues on the server: "flwr list {connection}" shows its '
      'number, and "flwr stop" ends it',
    )


def interrupted(stop: KeyboardInterrupt, hint: str = '') -> typing.NoReturn:
  """Reports an interrupt and exits with code 130, or 143 if terminated."""
  code = 143 if isinstance(stop, federation.Termination) else 130
  text = str(stop) or 'interrupted'
  text = text if hint in text else f'{text}: {hint}'
  if code == 143:
    _end_with(text)  # A running computation would delay the usual end.
  fail(text, code)


def terminable() -> None:
  """Makes SIGTERM end the program like Ctrl-C, within a few seconds."""
  signal.signal(signal.SIGTERM, _terminate)
  # A compiled computation cannot be interrupted. Checkpoints are complete.
  text = 'terminated: the same command continues from the last checkpoint'
  signal.signal(signal.SIGALRM, lambda *unused: _end_with(text))


def _end_with(text) -> typing.NoReturn:
  print(f'error: {text}', file=sys.stderr)
  for stream in (sys.stdout, sys.stderr):
    stream.flush()
  os._exit(143)


def _terminate(*unused):
  signal.alarm(_GRACE_SECONDS)
  raise federation.Termination('terminated')


def _parse(module, arguments):
  # TensorFlow reports every checkpoint at INFO.
  logging.set_verbosity(logging.WARNING)
  try:
    describe.answer(arguments, module)
    rest = list(arguments)
    # Only binaries with a config have settings of methods.
    if 'pooling' in flags.FLAGS:
      known = catalog.known_settings()
      rest, given = flagfile.split(flags.FLAGS, arguments, known)
      _given.texts, _given.typed = given.texts, given.typed
    return flags.FLAGS(rest)
  except flags.Error as error:
    # Our own hint replaces absl's suggestion.
    text = ' '.join(str(error).partition('. Did you mean')[0].split())
    illegal = re.match(r'flag --(\w+)=(.*): (invalid|could not|\()', text)
    if illegal:
      name, given, why = illegal.groups()
      several = name in config_lib.FIELDS and ',' in given
      hint = ' Several runs: bfl-tf sweep.' if several else ''
      what = 'an integer' if 'int()' in text else 'a number'
      what = 'true or false' if why == '(' else what
      fail(f'--{name}={given} must be {what}.{hint}')
    fail(f'{text.rstrip(".")}.{_near(str(error))}')
  except ValueError as error:
    fail(error)


def _near(message):
  """Returns a hint for an unknown flag."""
  found = re.search(r"flag '(\w+)'", message)
  if not found:
    return ''
  if 'pooling' not in flags.FLAGS:
    return registry.hint(found[1], flags.FLAGS, '--{}')
  if found[1] in ('seeds', 'grid', 'draw'):
    return ' Several runs: bfl-tf sweep.'
  near = catalog.near(found[1])
  return near or registry.hint(found[1], flags.FLAGS, '--{}')
