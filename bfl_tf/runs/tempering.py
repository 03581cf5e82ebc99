"""The temperature of the divergence, chosen on validation examples.

The run's own first rounds are played at several temperatures, with the same
draws: at 1, 0.1, ..., 0.0001, then half a decade to either side of the choice.
The choice is the highest temperature, which leaves the posterior the widest,
whose validation NLL is within one standard error of the lowest (Breiman et al.
1984): below some temperature the divergence counts for nothing, and the valley
has no other side. Test examples are not looked at.
"""

from collections.abc import Callable, Iterable
import math
from typing import Any

import numpy as np

from bfl_tf import datasets, files, metrics, training
from bfl_tf.config import config as config_lib
from bfl_tf.federation import engine as engine_lib
from bfl_tf.federation import evaluation, loop
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.runs import directory as directory_lib

_DECADES = (1.0, 0.1, 0.01, 0.001, 0.0001)
_NAME = 'temperature'
_ROUNDS = 'flipout.choose_temperature'


def build(
  config: config_lib.Config,
  built: dict[Any, Any] | None = None,
  dataset: datasets.Dataset | None = None,
) -> experiment_lib.Experiment:
  """Makes what a run begins with; arguments and errors as of `Experiment`."""
  training.configure(
    config.num_workers, config.deterministic, config.mixed_precision
  )
  rounds = config.get(_ROUNDS)
  first = _at(config, _DECADES[-1]) if rounds else config
  experiment = experiment_lib.Experiment.build(first, built, dataset)
  if rounds and len(experiment.dataset.validation.y) < 2:
    raise ValueError(
      f'--{_ROUNDS}={rounds} needs validation examples: set --validation_split.'
    )
  return experiment


def choose(
  config: config_lib.Config,
  engine: engine_lib.Engine,
  build_at: Callable[[config_lib.Config], experiment_lib.Experiment],
  directory: directory_lib.RunDirectory,
  say: Callable[[str], None],
) -> config_lib.Config:
  """Returns the config with the temperature that is chosen.

  Args:
    config: of the run; how many rounds a short run has is a setting of it.
    engine: where clients train.
    build_at: makes the experiment of a short run.
    directory: keeps what short runs said: they are played once.
    say: is told every score, and the choice with its neighbours.
  """
  rounds = config.get(_ROUNDS)
  path, losses = directory.path / f'{_NAME}.npz', {}
  if path.exists():
    losses = {float(t): each for t, each in files.read_npz(path).items()}

  def play(temperatures: Iterable[float]) -> None:
    for each in temperatures:
      if each not in losses:
        losses[each] = _losses(build_at(_at(config, each)), rounds, engine)
        directory.write_arrays(_NAME, **{str(t): losses[t] for t in losses})
      say(f'temperature {each:g}: validation NLL {losses[each].mean():.4f}')

  play(_DECADES)
  middle = highest_near_best({t: losses[t] for t in _DECADES})
  sides = (float(f'{middle * factor:.3g}') for factor in (10**-0.5, 10**0.5))
  play(side for side in sides if side < 1)
  chosen = highest_near_best(losses)
  more = (
    f'{t:g} {np.mean(losses[t] - losses[chosen]):+.4f} ± '
    f'{_error(losses[t] - losses[chosen]):.4f}'
    for t in _neighbours(losses, chosen)
  )
  say(
    f'--flipout.temperature={chosen:g} is chosen, by {rounds} rounds; beside '
    f'it the NLL is other by: {", ".join(more)}'
  )
  return config.replace(settings={'flipout.temperature': chosen})


def highest_near_best(losses: dict[float, np.ndarray]) -> float:
  """Returns the highest temperature within a standard error of the best one.

  Args:
    losses: by temperature, `[num_examples]` in nats, of the same examples.
  """
  best = min(losses, key=lambda t: losses[t].mean())
  worse = {t: losses[t] - losses[best] for t in losses}
  return max(t for t in losses if worse[t].mean() <= _error(worse[t]))


def _error(difference) -> float:
  """The standard error of a mean."""
  return float(np.std(difference, ddof=1) / math.sqrt(difference.size))


def _neighbours(losses, chosen):
  ordered = sorted(losses)
  place = ordered.index(chosen)
  return [*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2]]


def _at(config, temperature):
  settings = {'flipout.temperature': temperature, _ROUNDS: 0}
  return config.replace(settings=settings)


def _losses(experiment, rounds, engine) -> np.ndarray:
  played = loop.initial_state(experiment)
  for _ in range(rounds):
    played = loop.federated_round(experiment, played.state, engine)
  probs = evaluation.predict_validation(experiment, played, last=True).probs
  labels = experiment.dataset.validation.y
  if not np.all(np.isfinite(probs)):  # A model that ran away.
    return np.full(len(labels), -math.log(metrics.MIN_PROBABILITY))
  return metrics.log_losses(probs, labels)
