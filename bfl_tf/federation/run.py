"""A run from its config to its directory: resume, rounds, scores, plots."""

import math
import os
import resource
import time
from typing import Any

import numpy as np

from bfl_tf import metrics, partitions, plots, seeds, training, version
from bfl_tf.federation import checkpoints, ensembles, loop, records
from bfl_tf.federation import config as config_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import progress as progress_lib
from bfl_tf.federation import task as task_lib

# Of each union of a round's models; the scored predictor has all.
_OF_UNIONS = ('accuracy', 'nll', 'ece')


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
        started = time.perf_counter()
        try:
          # Its predictors have been scored: their memory is free.
          state = state._replace(predictors={})
          state, info = loop.federated_round(self._experiment, state)
        except loop.TooFewClientsError:
          self._save(state)
          raise
        info['train_seconds'] = time.perf_counter() - started
        self._record(state, info)
    return self._finish(state)

  def _begin(self):
    self._directory.start(self._config)
    self._directory.write_task(task_lib.Task.of(self._experiment.dataset))
    state = checkpoints.restore(self._directory.checkpoints)
    if state is not None:
      # A slot without arrays leaves nothing in a checkpoint.
      fresh = loop.fresh_slots(self._experiment.stages, state.model)
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
    state, info = loop.initial_state(self._experiment)
    self._record(state, info)
    return state

  def _record(self, state, info):
    """Row first, then checkpoint: a row without its checkpoint is replayed."""
    last = state.round == self._config.num_rounds
    row = {'round': state.round, **info}
    if last or state.round % self._config.eval_every == 0:
      started = time.perf_counter()
      scores, predictive = self._evaluate(state, last)
      row = {'round': state.round, **scores, **info}
      row['evaluate_seconds'] = time.perf_counter() - started
      if last and not np.isnan(scores['nll']):
        self._keep(predictive)
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

  def _evaluate(self, state, last):
    test = self._experiment.dataset.test
    if not last and 0 < self._config.num_eval_examples < len(test.y):
      generator = seeds.generator(self._config.seed, 'eval_examples')
      chosen = np.sort(
        generator.permutation(len(test.y))[: self._config.num_eval_examples]
      )
      test = test._replace(x=test.x[chosen], y=test.y[chosen])
    predictive, groups = self._predict(test, state, last, 'evaluation')
    scores = self._score(predictive, test.y)
    if groups:
      scores |= self._score_groups(groups, test.y)
    if groups and last:
      self._keep_members(groups)
    validation = self._experiment.dataset.validation
    if len(validation.y):
      held, _ = self._predict(validation, state, last, 'validation')
      for name, value in self._score(held, validation.y).items():
        scores[f'validation_{name}'] = value
    return scores, predictive

  def _predict(self, split, state, last, purpose):
    """Predicts with what is scored, and with the round's groups of models."""
    config, workers = self._config, self._experiment.workers
    samples = config.final_num_mc_samples if last else config.num_mc_samples
    options: dict[str, Any] = {
      'seed': seeds.named(config.seed, purpose, state.round),
      'num_samples': 1 if config.variant == 'deterministic' else samples,
    }
    groups = None
    wanted = config.predictor or purpose == 'evaluation'
    if state.predictors and wanted:
      groups = ensembles.predict(workers, state.predictors, *split, **options)
    if groups and config.predictor:
      return groups.of(config.predictor), groups
    return training.predict(workers, state.model, split.x, **options), groups

  def _score_groups(self, groups, labels):
    scores = groups.members(self._config.num_bins)
    for name, union in groups.unions.items():
      of_union = self._score(union, labels)
      scores |= {f'{key}_{name}': of_union[key] for key in _OF_UNIONS}
    return scores

  def _keep_members(self, groups):
    self._directory.write_arrays(
      'members',
      **{f'confidence_{name}': v for name, v in groups.confidence.items()},
      **{f'correct_{name}': v for name, v in groups.correct.items()},
    )

  def _score(self, predictive, labels):
    if not np.all(np.isfinite(predictive.probs)):
      # The weights have run away; the run says so and goes on to its end.
      return dict.fromkeys(metrics.SCORES, math.nan)
    return metrics.summarize(
      predictive.probs,
      labels,
      aleatoric=predictive.aleatoric,
      epistemic=predictive.epistemic,
      num_bins=self._config.num_bins,
    )

  def _keep(self, predictive):
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
    layout = self._experiment.workers[0].layout
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
