"""Updates with something wrong in them, through the real round.

None may end the round. What is refused must be named, and the model is then
that of the good clients, bit for bit. What is accepted leaves a finite model,
and moves it no further than its client's weight lets it: by the weight times
what was changed where weights go by size, else to a point between the clients'.
"""

import pathlib
from typing import ClassVar, NamedTuple

import numpy as np
import tensorflow as tf

from bfl_tf import federation
from bfl_tf import weights as weights_lib
from bfl_tf.federation import engine as engine_lib
from experiments.campaigns import books, mutations, presets

# Rules whose means are weighted means of the clients'.
_AVERAGES = ('nwa', 'lp')
_ROUNDING = 1e-6


class Seen:
  """A server stage that keeps what came of pooling, for the case to look at."""

  name, statistics = 'seen', ()
  pooled: ClassVar[list[weights_lib.Weights]] = []

  def __call__(self, state, reference, pooled, statistics, seed):
    """Keeps `pooled` and changes nothing."""
    self.pooled[:] = [pooled]
    return state, {}


class _Round(NamedTuple):
  """A round that can be played again, with other arrivals."""

  experiment: federation.Experiment
  state: federation.State
  arrivals: list[engine_lib.Arrival]

  def play(self, arrivals):
    """Returns the state, its row and what was pooled."""
    played = federation.federated_round(
      self.experiment, self.state, lambda *unused: iter(arrivals)
    )
    return played.state, played.info, Seen.pooled[0]


_PRESETS = (*presets.NAMES, presets.SCAFFOLD)


class Case:
  """Mutated updates, by what of them was mutated."""

  def __init__(self, folder: pathlib.Path, most: int):
    """Needs neither a folder nor a number."""
    self._rounds: dict[str, _Round] = {}
    self._good: dict[tuple[str, int | None], tuple] = {}

  def close(self) -> None:
    """Nothing was started."""

  def trial(self, number: int, rng: np.random.Generator) -> books.Trial:
    """Mutates one client's update and plays the round."""
    name = _PRESETS[number % len(_PRESETS)]
    begun = self._begun(name)
    bad = int(rng.integers(len(begun.arrivals)))
    what, came = mutations.mutated(begun.arrivals[bad], rng)
    others = begun.arrivals[:bad], begun.arrivals[bad + 1 :]
    try:
      played = begun.play([*others[0], *came, *others[1]])
    except Exception as error:
      broken = f'ended the round: {type(error).__name__}: {error!r}'
      return self._trial(what, 'ended', name, number, broken)
    if played[1]['clients_left_out']:
      verdict, broken = 'named', self._refused(name, bad, played)
    else:
      verdict, broken = (
        'within its share',
        self._accepted(name, bad, came, played),
      )
      if _bits(played[0]) == _bits(self._without(name, None)[0]):
        verdict = 'harmless'
    return self._trial(what, verdict, name, number, broken)

  def _trial(self, what, verdict, name, number, broken):
    where = f'{name}, trial {number}, {what}: '
    return books.Trial(what, {verdict: 1}, broken and where + broken)

  def _begun(self, name):
    """A state after a round, and what then comes of all clients."""
    if name not in self._rounds:
      stages = presets.values(name).get('server_step', '')
      first = f'{__name__}:Seen'
      config = presets.config(
        name, server_step=f'{first},{stages}' if stages else first
      )
      experiment = federation.Experiment.build(config)
      state = federation.initial_state(experiment).state
      state = federation.federated_round(experiment, state).state
      clients = range(config.num_clients)
      arrivals = list(engine_lib.local(experiment, state, clients))
      self._rounds[name] = _Round(experiment, state, arrivals)
    return self._rounds[name]

  def _without(self, name, client):
    """The round without a client."""
    if (name, client) not in self._good:
      begun = self._begun(name)
      good = [a for i, a in enumerate(begun.arrivals) if i != client]
      self._good[name, client] = begun.play(good)
    return self._good[name, client]

  def _refused(self, name, bad, played):
    state, row, _ = played
    client = self._begun(name).arrivals[bad].client
    if row['left_out'] != str(client) or len(row['left_out_reasons']) < 6:
      return f'left out {row["left_out"]!r}: {row["left_out_reasons"]!r}'
    same = _bits(state) == _bits(self._without(name, bad)[0])
    return '' if same else 'was refused, and the model is another'

  def _accepted(self, name, bad, came, played):
    state, _, pooled = played
    if not all(np.all(np.isfinite(v)) for v in state.model):
      return 'was accepted, and the model is not finite'
    begun, before = self._begun(name), self._without(name, None)[2]
    if begun.experiment.config.pooling not in _AVERAGES:
      return ''
    good = [arrival.update for arrival in begun.arrivals]
    client = begun.arrivals[bad].client
    sent = next(a.update for a in came if a.client == client)
    all_sent = [*good[:bad], sent, *good[bad + 1 :]]
    if begun.experiment.config.weighting == 'size':
      share = good[bad].num_examples / sum(u.num_examples for u in good)
      most = share * np.abs(_values(sent.model) - _values(good[bad].model))
      beyond = np.abs(_values(pooled) - _values(before)) - most
    else:
      stack = np.stack([_values(update.model) for update in all_sent])
      found = _values(pooled)
      beyond = np.maximum(found - stack.max(0), stack.min(0) - found)
    # What rounding to float32 leaves open, of each coordinate.
    largest = np.max([np.abs(_values(u.model)) for u in all_sent], axis=0)
    if np.any(beyond > _ROUNDING * largest):
      return f'was accepted, and went {beyond.max():.3g} beyond its share'
    return ''


def _values(model):
  return model.values.astype(np.float64)


def _bits(state):
  return [np.asarray(v).tobytes() for v in tf.nest.flatten(state)]
