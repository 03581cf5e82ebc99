"""A single run: resume, rounds, scores and plots."""

import dataclasses
import math
import os
import resource
import secrets
import time
from typing import Any

from absl import logging
import numpy as np

from bfl_tf import data, metrics, plots, run_files, version
from bfl_tf.config.config import Config
from bfl_tf.data import partitions
from bfl_tf.federation import engine as engine_lib
from bfl_tf.federation import evaluation, experiment, loop, run_data, stopping
from bfl_tf.federation import state as state_lib
from bfl_tf.runs import checkpoints, directory, progress, tables, task

# After so many steps per client, a median scale within this fraction of its
# initial value has not been learned.
_MANY_STEPS, _UNCHANGED = 500, 0.05


def run(
  config: Config,
  output_dir: str | os.PathLike,
  show_progress: bool = True,
  overwrite: bool = False,
) -> dict[str, Any]:
  """Runs an experiment, or resumes it after an interruption.

  Args:
    overwrite: Whether to replace another run in `output_dir`. A run that has
      not finished its first round is always replaced.

  Returns:
    The summary, as in `summary.json`; `final` contains the final scores.

  Raises:
    ValueError: The config cannot be run; nothing was written.
    BusyError: Another process uses the directory.
    StoppedError: Too few updates were valid, a part or weighting failed,
      or the disk is full; the state is saved.
    KeyboardInterrupt: The user interrupted the run; the state is saved.
  """
  return Run(config, output_dir, show_progress, overwrite=overwrite).execute()


class Run:
  """One run and its records.

  The constructor validates all inputs; only `execute` writes files.
  """

  def __init__(
    self,
    config: Config,
    output_dir: str | os.PathLike,
    show_progress: bool = True,
    built: dict[Any, Any] | None = None,
    draw_plots: bool = True,
    engine: engine_lib.Engine | None = None,
    dataset: data.Dataset | None = None,
    nodes: str = '',
    overwrite: bool = False,
  ):
    """Creates a run; see `run` and, for `built` and `dataset`, `Experiment`.

    `engine` trains the clients outside of this process. `nodes` is the text of
    the file `run_files.NODES`.
    """
    if engine is None and config.engine != 'local':
      raise ValueError(
        f'--engine={config.engine} needs bfl-tf run, or bfl_tf.flower.simulate '
        'in Python.'
      )
    self._engine = engine or engine_lib.Local()
    self._nodes = nodes
    self._draw_plots = draw_plots
    self._config = config
    self._final_round = config.final_round
    self._progress = progress.Progress(
      self._final_round, show_progress, config.variant == 'flipout'
    )
    self._directory = directory.RunDirectory(output_dir, overwrite)
    self._directory.check(config)
    self._state: state_lib.State | None = None
    self._saved: int | None = None
    self._finished = self._directory.summary(self._final_round)
    if self._finished is None:
      self._experiment = experiment.build(config, built, dataset)
      self._task = task.Task.of(self._experiment.dataset)
      self._directory.check_task(self._task)
      self._directory.check_nodes(nodes)

  def execute(self) -> dict[str, Any]:
    """Runs the remaining rounds and returns the summary."""
    if self._finished is not None:
      self._progress.say(f'{self._directory.path} holds the finished run')
      return self._finished
    with self._directory.locked():
      # Another process may have changed the directory before it was locked.
      self._directory.check(self._config)
      if self._directory.replaces:
        self._progress.say(f'replacing the run in {self._directory.path}')
      self._directory.clear()
      self._finished = self._directory.summary(self._final_round)
      return self._finished or self._execute()

  def _execute(self) -> dict[str, Any]:
    try:
      with self._progress.heartbeat():
        state = self._begin()
        while state.round < self._final_round:
          state = self._execute_round(state)
        return self._finish(state)
    # After any error the run can be resumed.
    except KeyboardInterrupt as stop:
      why = str(stop) or 'interrupted'
      raise type(stop)(f'{why}: {self._save_state()}') from None
    except Exception as error:
      saved = self._save_state()
      if isinstance(error, OSError):
        raise stopping.MachineError(f'{error}: {saved}') from error
      raise

  def _save_state(self) -> str:
    """Saves finished rounds and returns a message on how to continue."""
    try:
      if self._state is not None and self._saved != self._state.round:
        self._state = checkpoints.save(self._state, self._directory.path)
        self._saved = self._state.round
    except OSError as error:
      logging.warning('%s', error)
    if self._saved is None:
      return 'no round is saved; the same command continues with round 1'
    return f'saved after round {self._saved}; the same command continues'

  def _execute_round(self, state):
    """Runs a round; its groups of models are freed when it returns."""
    started = time.perf_counter()
    result = loop.federated_round(self._experiment, state, self._engine)
    result.info['train_seconds'] = time.perf_counter() - started
    return self._record(result)

  def _begin(self):
    self._warn()
    is_private = self._experiment.plan.privacy.is_private
    # Unreadable files must fail before `start` removes any file.
    state = checkpoints.restore(self._directory.path)
    if state is not None:
      spec = self._engine.expected_spec(self._experiment.plan)
      engine_lib.check_memories(state, spec)
      self._directory.rows.resume(state.round)
      if is_private:
        self._directory.private_seed()
    self._directory.start(self._config, state.round if state else 0)
    self._directory.keep(run_files.TASK, self._task.to_json())
    if is_private:
      self._directory.keep(run_files.SECRET, secrets.token_hex(32), 0o600)
      self._experiment = dataclasses.replace(
        self._experiment, private_seed=self._directory.private_seed()
      )
    dataset, dealt = self._experiment.dataset, self._experiment.partition
    if self._nodes:
      self._directory.keep(run_files.NODES, self._nodes)
    counts = partitions.counts(
      dataset.train.strata, dealt, max(1, dataset.num_classes)
    )
    names = run_data.client_names(dataset, dealt)
    self._directory.write_partition(counts, self._task.classes, names)
    if state is not None:
      # A checkpoint does not contain slots without arrays.
      fresh = self._experiment.plan.fresh_slots(state.model)
      state = state._replace(slots={**fresh, **state.slots})
      self._state, self._saved = state, state.round
      self._progress.say(f'going on after round {state.round}')
      return state
    return self._record(loop.initial_state(self._experiment))

  def _warn(self):
    config, dataset = self._config, self._experiment.dataset
    for note in (*self._experiment.plan.privacy.notes(), *dataset.notes):
      self._progress.say(note)
    if config.client_column and config.partition != 'natural':
      self._progress.say(
        'warning: the clients are not the sites of '
        f'--client_column={config.client_column}; for one client per site, add '
        '--partition=natural'
      )
    names = dataset.class_names or range(dataset.num_classes)
    uneven = names and metrics.imbalance(dataset.test.y, names)
    if uneven:
      self._progress.say(
        f'{uneven} to be tested on: see auroc, balanced_accuracy and the '
        'recall of each class beside accuracy'
      )

  def _warn_of_scale(self, rows):
    """Warns of a posterior whose standard deviations did not change."""
    ratio = rows[-1].get('scale_ratio', 0)
    steps = sum(
      row['local_steps'] / max(1, row['clients_pooled']) for row in rows[1:]
    )
    if steps > _MANY_STEPS and abs(ratio - 1) < _UNCHANGED:
      owner = self._experiment.plan.inference.owner
      self._progress.say(
        f'warning: the median standard deviation of the weights is still '
        f'{ratio:.3f} times --{owner}.initial_scale after {steps:.0f} local '
        'steps per client: choose the initial scale on validation examples, '
        'or learn it faster (for IVON, --ivon.beta_2=0.99)'
      )

  def _record(self, result):
    """Writes the metrics row, then the checkpoint.

    A resumed run repeats rows after its checkpoint.
    """
    state, info = result.state, result.info
    last = state.round == self._final_round
    row = {'round': state.round, **info}
    if last or state.round % self._config.eval_every == 0:
      started = time.perf_counter()
      evaluated = evaluation.evaluate(self._experiment, result, last)
      if taken := ', '.join(sorted(evaluated.scores.keys() & info.keys())):
        raise stopping.StoppedError(
          f'round {state.round}: a server part reports the column {taken}, '
          'which is the name of a score: rename it.'
        )
      row = {'round': state.round, **evaluated.scores, **info}
      row['evaluate_seconds'] = time.perf_counter() - started
      if last:
        self._keep(evaluated)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row['peak_memory_mib'] = round(kilobytes / 1024, 1)
    self._directory.add(row)
    self._state = state
    if last or state.round % self._config.checkpoint_every == 0:
      self._state = checkpoints.save(state, self._directory.path)
      self._saved = state.round
    self._progress.report(row)
    return self._state

  def _keep(self, evaluated):
    """Writes the arrays for plots; no predictions if the model diverged."""
    groups, predictive = evaluated.groups, evaluated.predictive
    if evaluated.personal:
      path = self._directory.path / run_files.PERSONAL
      tables.write_csv(path, evaluated.personal)
    if groups:
      self._directory.write_arrays(
        'members',
        **{
          f'{key}_{name}': values
          for name, members in groups.members.items()
          for key, values in members.items()
        },
      )
    if np.isnan(evaluated.scores['nll']):
      return
    likelihood = self._experiment.workers[0].likelihood
    predictive = likelihood.in_label_unit(predictive)
    probs, test = predictive.mean, self._experiment.dataset.test
    if test.is_numeric:
      arrays = {'mean': probs[:, 0]}
    else:
      entropy = metrics.normalized_entropy(probs)
      arrays = {'probs': probs, 'normalized_entropy': entropy}
    self._directory.write_arrays(
      'predictions',
      labels=test.y,
      **arrays,
      aleatoric_uncertainty=predictive.aleatoric,
      epistemic_uncertainty=predictive.epistemic,
    )

  def _finish(self, state):
    rows, own = self._directory.rows, self._config.functions_of_scores
    final = {
      name: float(value)
      for name, value in rows[-1].items()
      if (metrics.find(name) or name.removeprefix('validation_') in own)
      # A class without examples has no recall and no AUROC.
      and not (name.startswith(('recall_class', 'auroc')) and math.isnan(value))
    }
    layout = self._experiment.workers[0].layout
    summary = {
      'version': version.__version__,
      'rounds': state.round,
      'final': final,
      'classes': list(self._task.classes),
      'num_trainable': layout.num_trainable(),
      'num_variational': layout.size('loc'),
      'train_seconds': sum(row['train_seconds'] for row in rows[1:]),
    }
    fitted = ('temperature', 'posterior_factor')
    summary |= {name: rows[-1][name] for name in fitted if name in rows[-1]}
    path = self._directory.path
    if self._draw_plots and (path / run_files.PREDICTIONS).exists():
      plots.draw_run(path, self._config.num_bins)
    self._directory.finish(summary)
    self._warn_of_scale(rows)
    if 'posterior_factor' in rows[-1] and self._config.posterior_factor < 0:
      factor = rows[-1]['posterior_factor']
      effect = '' if factor else ': predictions have no epistemic uncertainty'
      self._progress.say(
        f'--posterior_factor={factor:g} was chosen on held-out examples{effect}'
      )
    losses = [row.get('train_loss', math.nan) for row in rows[1:]]
    if trend := progress.trend(losses):
      self._progress.say(
        f'warning: the training loss still {trend} in the last rounds: raise '
        '--num_rounds, or use --method=pvi'
      )
    guess = math.log(max(1, len(self._task.classes)))
    if final['nll'] > guess > 0:
      self._progress.say(
        f'warning: the final nll is above {guess:.3g}, which equal '
        'probabilities of all classes have: lower --client_learning_rate, or '
        'the damping of a method that has one'
      )
    for client in directory.absent(path):
      self._progress.say(f'warning: no accepted update of {client}')
    if state.round < self._config.num_rounds:
      self._progress.say(
        f'stopped after round {state.round} of {self._config.num_rounds}: the '
        'next round would exceed the privacy budget'
      )
    return summary
