"""A run from its config to its directory: resume, rounds, scores, plots."""

import os
import resource
import time
from typing import Any

import numpy as np

from bfl_tf import metrics, partitions, plots, training, version
from bfl_tf.federation import (
  checkpoints,
  ensembles,
  evaluation,
  loop,
  records,
)
from bfl_tf.federation import config as config_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import progress as progress_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.federation import task as task_lib


def run(
  config: config_lib.Config,
  output_dir: str | os.PathLike,
  show_progress: bool = True,
) -> dict[str, Any]:
  """Runs an experiment, or goes on with it where it was interrupted.

  Args:
    config: what to run.
    output_dir: a new directory, or that of the same run.
    show_progress: print a line a round and a progress bar.

  Returns:
    The summary, as in `summary.json`; `final` holds the last scores.

  Raises:
    ValueError: the config cannot be run; nothing has been written.
    TooFewClientsError: too many updates were bad; the state is saved.
  """
  return Run(config, output_dir, show_progress).play()


class Run:
  """The rounds of one run, recorded.

  Making one finds out all that a user may have got wrong; `play` then writes.
  """

  def __init__(
    self,
    config: config_lib.Config,
    output_dir: str | os.PathLike,
    show_progress: bool = True,
    built: dict[Any, Any] | None = None,
    draw_plots: bool = True,
  ):
    """Arguments as in `run`; `built` and ValueErrors as in `Experiment`."""
    self._draw_plots = draw_plots
    self._config = config
    self._progress = progress_lib.Progress(config.num_rounds, show_progress)
    self._directory = records.RunDirectory(output_dir)
    self._directory.check(config)
    self._finished = self._directory.summary()
    if self._finished is None:
      training.configure(config.num_workers, config.deterministic)
      self._experiment = experiment_lib.Experiment.build(config, built)

  def play(self) -> dict[str, Any]:
    """Plays the rounds that are left; a finished run is not played again."""
    if self._finished is not None:
      self._progress.say(f'{self._directory.path} holds the finished run')
      return self._finished
    state = self._begin()
    with self._progress:
      while state.round < self._config.num_rounds:
        state = self._play_round(state)
    return self._finish(state)

  def _play_round(self, state):
    """Returns the next state alone: the memory of predictors is free again."""
    started = time.perf_counter()
    try:
      played = loop.federated_round(self._experiment, state)
    except loop.TooFewClientsError:
      self._save(state)
      raise
    played.info['train_seconds'] = time.perf_counter() - started
    self._record(played)
    return played.state

  def _begin(self):
    self._directory.start(self._config)
    self._directory.write_task(task_lib.Task.of(self._experiment.dataset))
    state = checkpoints.restore(self._directory.checkpoints)
    if state is not None:
      # A slot without arrays leaves nothing in a checkpoint.
      stages = self._experiment.method.stages
      fresh = state_lib.fresh_slots(stages, state.model)
      state = state._replace(slots={**fresh, **state.slots})
      self._directory.resume(state.round)
      self._progress.say(f'going on after round {state.round}')
      self._progress.begin(state.round)
      return state
    labels = self._experiment.dataset.train.y
    self._directory.write_partition(
      partitions.counts(
        labels, self._experiment.partition, self._experiment.dataset.num_classes
      )
    )
    self._progress.begin(0)
    played = loop.initial_state(self._experiment)
    self._record(played)
    return played.state

  def _record(self, played):
    """Row first, then checkpoint: a row without its checkpoint is replayed."""
    state, info = played.state, played.info
    last = state.round == self._config.num_rounds
    row = {'round': state.round, **info}
    if last or state.round % self._config.eval_every == 0:
      started = time.perf_counter()
      evaluated = evaluation.evaluate(self._experiment, played, last)
      row = {'round': state.round, **evaluated.scores, **info}
      row['evaluate_seconds'] = time.perf_counter() - started
      if last:
        self._keep(evaluated)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row['peak_memory_mib'] = round(kilobytes / 1024, 1)
    self._directory.add(row)
    self._progress.report(row)
    if last or state.round % self._config.checkpoint_every == 0:
      self._save(state)

  def _save(self, state):
    started = time.perf_counter()
    checkpoints.save(state, self._directory.checkpoints)
    seconds = time.perf_counter() - started
    # Written with the next row: a row is on disk before its checkpoint.
    self._directory.rows[-1]['checkpoint_seconds'] = seconds

  def _keep(self, evaluated):
    """Writes what the plots read; of a model that ran away there is nothing."""
    groups, predictive = evaluated.groups, evaluated.predictive
    if groups:
      self._directory.write_arrays(
        'members',
        **{f'confidence_{name}': v for name, v in groups.confidence.items()},
        **{f'classes_{name}': v for name, v in groups.classes.items()},
        **{f'correct_{name}': v for name, v in groups.correct.items()},
      )
    if np.isnan(evaluated.scores['nll']):
      return
    self._directory.write_arrays(
      'predictions',
      labels=self._experiment.dataset.test.y,
      probs=predictive.probs,
      normalized_entropy=metrics.normalized_entropy(predictive.probs),
      aleatoric_uncertainty=predictive.aleatoric,
      epistemic_uncertainty=predictive.epistemic,
    )

  def _finish(self, state):
    rows = self._directory.rows
    scores = (*metrics.SCORES, *ensembles.OF_MEMBERS)
    final = {
      name: float(value)
      for name, value in rows[-1].items()
      if name.removeprefix('validation_').startswith(scores)
    }
    layout = self._experiment.method.layout
    summary = {
      'version': version.__version__,
      'rounds': state.round,
      'final': final,
      'num_trainable': layout.num_trainable(),
      'num_variational': layout.size('loc'),
      'train_seconds': sum(float(row['train_seconds']) for row in rows[1:]),
    }
    self._directory.write_rows()
    predicted = (self._directory.path / 'predictions.npz').exists()
    if predicted and self._draw_plots:
      plots.draw_run(self._directory.path, self._config.num_bins)
    self._directory.finish(summary)
    return summary
