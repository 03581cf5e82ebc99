"""A small run that carries everything, and how to stop it anywhere."""

import pytest

from bfl_tf import config as config_lib
from bfl_tf import runs as runs_lib
from experiments import outcomes

CONFIG = config_lib.Config(
  dataset='toys:blobs',
  model='logistic',
  num_clients=5,
  clients_per_round=3,
  client_parts=('toys:Counter',),  # Has a memory.
  server_step=('momentum',),  # Has a slot.
  num_rounds=4,
  num_mc_samples=2,
  final_num_mc_samples=3,
  num_workers=1,
)
BUILT = {}
outcome = outcomes.of


class Killed(BaseException):
  """As good as a signal: nothing handles it."""


def play(path, config=CONFIG):
  return runs_lib.Run(config, path, False, BUILT).play()


def stop(monkeypatch, owner, name, call, after=False):
  """Stops a run at a call of a function, before or after its work is done."""
  original, calls = getattr(owner, name), []

  def stopping(*args, **kwargs):
    calls.append(name)
    if len(calls) == call and not after:
      raise Killed
    result = original(*args, **kwargs)
    if len(calls) == call:
      raise Killed
    return result

  monkeypatch.setattr(owner, name, stopping)


def stopped(path, *where, config=CONFIG, **how):
  with pytest.MonkeyPatch.context() as patch:
    stop(patch, *where, **how)
    with pytest.raises(Killed):
      play(path, config)
