"""The model of a finished run: its posterior and its predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import os
import pathlib
from typing import Any, NamedTuple

from absl import logging
import numpy as np

from bfl_tf import data, metrics, parts, run_files, seeds, training
from bfl_tf import weights as weights_lib
from bfl_tf.analysis import risk as risk_lib
from bfl_tf.config.config import Config
from bfl_tf.data import arrays, encoding, preprocessing
from bfl_tf.federation import personal, plan, prediction
from bfl_tf.federation import state as state_lib
from bfl_tf.runs import checkpoints, directory, run_config
from bfl_tf.runs import task as task_lib
from bfl_tf.startup import tf, tf_keras, tfd


def load(run_dir: str | os.PathLike | Sequence[str | os.PathLike]) -> Trained:
  """Returns the model of a finished run; its data are not needed.

  Args:
    run_dir: Directory of a run, a personalized model or an ensemble. Several
      directories of runs make an `Ensemble`, without a temperature.

  Raises:
    ValueError: The directory holds no finished run, its checkpoint cannot be
      read, or runs cannot form an ensemble.
  """
  if not isinstance(run_dir, str | os.PathLike):
    return _together([*map(pathlib.Path, run_dir)])
  run = without_report(run_dir)
  run.risk = risk_lib.read(run_dir)
  return run


def without_report(run_dir: str | os.PathLike) -> Trained:
  """Returns the model of one directory, without the results of its report."""
  path = pathlib.Path(run_dir)
  if not (path / run_files.FLAGS).exists():
    raise ValueError(
      f'{path} is not a run directory: name the --output_dir of a run.'
    )
  sites_own = directory.is_sites_own(path)
  if not (sites_own or run_files.is_finished(path)):
    raise ValueError(
      f'{path} holds an unfinished run: continue it with '
      f'--flagfile={path}/flags.txt --output_dir={path}.'
    )
  if sites_own:
    return _read(path)
  summary, clients = run_files.read_summary(path), directory.read_clients(path)
  temperature = summary.get('temperature')
  if 'factors' not in summary:
    return _read(path, clients, temperature, summary.get('posterior_factor'))
  folder = path / run_files.ENSEMBLE
  runs = [
    _read(folder / str(k), clients, factor=None if factor < 0 else factor)
    for k, factor in enumerate(summary['factors'])
  ]
  return Ensemble(runs, temperature)


def _read(path, clients=(), temperature=None, factor=None) -> Trained:
  """Reads flags, task and checkpoint of a run."""
  config = run_config.read_config(path)
  if config.mixed_precision and not training.has_mixed_precision():
    # The run was trained on another machine.
    config = config.replace(mixed_precision=False)
  task = task_lib.read(path / run_files.TASK)
  training.configure(config.num_workers, config.deterministic)
  state = checkpoints.restore(path)
  if state is None:
    remedy = run_files.remedy(path)
    if directory.is_sites_own(path):
      remedy = 'repeat the bfl-tf report --personalize_epochs that trained it'
    raise ValueError(f'{path} has no {run_files.CHECKPOINT}: {remedy}.')
  # The stored models of the group that the run predicts with.
  servers = config.chain('server_parts', parts.Server)
  members = state_lib.stored(servers, config.predictor, state)
  if config.predictor and not members:
    logging.warning(
      '%s was scored by --predictor=%s, whose models are not stored. '
      'Predictions are those of the global model.',
      path,
      config.predictor,
    )
  return Trained(
    config, task, state.model, temperature, members, state, clients, factor
  )


_DATA = (
  *(field.name for field in dataclasses.fields(data.DatasetConfig)),
  'likelihood', 'partition', 'num_clients', 'num_server_examples',
  'server_fraction',
)  # fmt: skip


def _together(paths) -> Ensemble:
  """Returns the ensemble of runs, which must have the same data."""
  runs = [load(path) for path in paths]
  first, *_ = shared = [_data_of(*each) for each in zip(paths, runs)]
  for number, (path, run, own) in enumerate(zip(paths, runs, shared)):
    differ = [k for k, value in own.items() if value != first[k]]
    if differ:
      raise ValueError(
        f'{path} and {paths[0]} have different {" and ".join(differ)}: an '
        'ensemble needs runs with the same data.'
      )
    for other, before in zip(paths, runs[:number]):
      if {*run_config.differences(run.config, before.config)} <= {'data_seed'}:
        raise ValueError(f'{path} and {other} are the same run: remove one.')
    if run.needs_site and not all(each.has_personal_models for each in runs):
      raise ValueError(
        f'the global model of {path} is not usable, because its clients keep '
        'some layers: leave it out, or combine runs with personal models only.'
      )
  return Ensemble(runs)


def _data_of(path, run) -> dict[str, Any]:
  """Returns the flags of the data, and the numbers of examples of clients."""
  flags = {f'--{name}': getattr(run.config, name) for name in _DATA}
  counts = (path / run_files.PARTITION).read_bytes()
  return {**flags, '--data_seed': run.config.seed_of_data, 'clients': counts}


# Bound of `is_out_of_range`, in standard deviations from the training mean.
_FAR = 10


class Prediction(NamedTuple):
  """Predictions of examples, with the names in `predictions.npz`.

  Attributes:
    probs: `[num_examples, num_classes]` float32, mean over samples.
    normalized_entropy: `[num_examples]` float64 in [0, 1], of `probs`.
  """

  probs: np.ndarray
  normalized_entropy: np.ndarray
  aleatoric_uncertainty: np.ndarray
  epistemic_uncertainty: np.ndarray

  def with_probs(self, probs: np.ndarray) -> Prediction:
    """Returns a copy with other probabilities and their entropy."""
    entropy = metrics.normalized_entropy(probs)
    return self._replace(probs=probs, normalized_entropy=entropy)


class NumericPrediction(NamedTuple):
  """Predictions of numbers, in the unit of the label.

  Attributes:
    mean: `[num_examples]` float32, predictive mean.
    scale: `[num_examples]` float32, predictive standard deviation.
    aleatoric_uncertainty: `[num_examples]` float32, variance of the noise.
    epistemic_uncertainty: `[num_examples]` float32, variance of the mean over
      Monte Carlo samples.
  """

  mean: np.ndarray
  scale: np.ndarray
  aleatoric_uncertainty: np.ndarray
  epistemic_uncertainty: np.ndarray

  def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ends of the central intervals of a level in (0, 1)."""
    half = metrics.half_width(level) * self.scale
    return self.mean - half, self.mean + half

  def evaluation(
    self, labels: np.ndarray, num_bins: int = 15
  ) -> metrics.NumericEvaluation:
    """Returns the predictions with their labels, from which scores follow."""
    return metrics.NumericEvaluation(self.mean, labels, *self[2:], num_bins)


AnyPrediction = Prediction | NumericPrediction


def take(prediction: Any, rows: np.ndarray | slice) -> Any:
  """Returns the predictions of some examples."""
  return type(prediction)(*(values[rows] for values in prediction))


class Trained:
  """The model of a finished run, after its last round.

  A run that is scored by an ensemble (`--predictor=A+C+S`) does not store its
  members, and this class has the global model only. A part such as
  `keep_samples` does store them.

  Attributes:
    temperature: Temperature that was fitted on held-out examples; None if
      there were none.
    members: Models that predict together in place of `weights`; usually empty.
    factor: Factor on the standard deviations of the posterior in predictions;
      None for the default of the run.
  """

  risk: risk_lib.Risk | None = None

  def __init__(
    self,
    config: Config,
    task: task_lib.Task,
    weights: weights_lib.Weights,
    temperature: float | None = None,
    members: Sequence[weights_lib.Weights] = (),
    state: state_lib.State | None = None,
    clients: Sequence[str] = (),
    factor: float | None = None,
  ):
    self.config, self.task, self.weights = config, task, weights
    self.temperature, self.members = temperature, members
    self.state, self.clients = state, clients
    if factor is None and config.posterior_factor >= 0 and weights.loc.size:
      factor = config.posterior_factor
    self.factor = factor

  def replace(self, weights: weights_lib.Weights) -> Trained:
    """Returns a copy with other weights; both share their predictors."""
    other = Trained(self.config, self.task, weights, factor=self.factor)
    other.__dict__['predictors'] = self.predictors
    return other

  def memory(self, client: str) -> Mapping[str, Any] | None:
    """Returns a client's memory by part; None if it was never sampled."""
    if self.state is None or str(client) not in self.clients:
      some = ', '.join(self.clients[:5])
      raise ValueError(
        f'the run has no client {client!r} among its {len(self.clients)}, such '
        f'as {some}.'
      )
    memory = self.state.memories.get(self.clients.index(str(client)))
    if personal.is_on_node(memory):
      raise ValueError(
        'the memories of this run are on the nodes of its clients: use bfl-tf '
        'report --superlink.'
      )
    return memory

  def personal(self, client: str) -> Trained:
    """Returns a client's personal model; arguments and errors as in `memory`.

    A client that was never sampled has that of its initial memory.
    """
    memory = self.memory(client)
    if not self.has_personal_models:
      raise ValueError(
        'the clients of this run have no personal models: use --method=fedbn, '
        'or bfl-tf report with --personalize_epochs, --sets_by=site or '
        '--recalibrate.'
      )
    return self.with_memory(memory)

  def with_memory(self, memory: Mapping[str, Any] | None) -> Trained:
    """Returns the personal model of a client with this memory."""
    if memory is None and self.needs_site:
      raise ValueError(
        'a client was never sampled, so that its personal model is not '
        'trained: continue the run with more --num_rounds.'
      )
    plan = self._plan.with_layout(self.predictors[0].layout)
    own = self.replace(personal.model_of(plan, self.weights, memory))
    own.factor = None  # It was fitted for the global model.
    # A report on personal models has their recalibration.
    own.risk = self.risk if self.needs_site else None
    return own

  @property
  def has_personal_models(self) -> bool:
    """Whether the clients of the run have personal models."""
    return personal.makes_models(self._plan)

  @property
  def needs_site(self) -> bool:
    """Whether only personal models are usable, as with `--method=fedper`."""
    return not all(part.trains_global_model for part in self._plan.locals)

  def check_usable(self) -> None:
    """Raises a ValueError for a global model with untrained weights."""
    if self.needs_site and self.clients:
      raise ValueError(
        'the global model of this run is not usable, because its clients keep '
        'some layers: name a client, with --site of bfl-tf predict or '
        'personal(NAME) in Python.'
      )

  @functools.cached_property
  def likelihood(self) -> training.Likelihood:
    """Distribution of the labels."""
    return self._plan.likelihood(self.task.label_moments)

  @functools.cached_property
  def model(self) -> tf_keras.Model:
    """Keras model with the trained weights, from `normalize(x)` to logits.

    A stochastic model draws new weights at each call. To fix the seed, call it
    in a `bfl_tf.models.scope`; pass the rhos to it to repeat the draws of
    `predict`.
    """
    model = self._build()
    variables = weights_lib.Variables.of(model, self.inference.scope)
    weights_lib.write(variables, self.weights)
    return model

  @property
  def inference(self) -> training.Inference:
    """Owner of the posterior, and whether samples of it predict."""
    return self._plan.inference

  @property
  def posterior(self) -> tfd.Distribution:
    """Posterior over the random weights; a point mass if there are none."""
    return weights_lib.distribution(self.weights)

  def sample(self, num_models: int, seed: int | None = None) -> list[Trained]:
    """Returns models whose weights are drawn from the posterior."""
    run_seed = self.config.seed if seed is None else seed
    name = seeds.named(run_seed, 'posterior_sample')
    drawn = prediction.sample(self.predictors, self.weights, name, num_models)
    models = [self.replace(weights) for weights in drawn]
    for each in models:
      each.factor = None  # A draw has no standard deviations.
    return models

  def normalize(self, x: np.ndarray) -> tf.Tensor:
    """Returns the normalized inputs of `model` for raw examples."""
    inputs = self.task.inputs
    return preprocessing.normalize(self._raw(x), inputs.mean, inputs.std)

  def predict(
    self, x: np.ndarray, num_samples: int | None = None, seed: int | None = None
  ) -> Any:
    """Predicts as in the run's last evaluation.

    For the run's test examples, the result equals `predictions.npz`, bit for
    bit on the same type of CPU. Runs that are scored by an ensemble differ.

    `--predict_with` chooses samples of the posterior or its mean. With a
    posterior over all weights (`--client_parts=swag`, or
    `--client_optimizer=ivon` or `laplace`), one sample is the mean. The
    standard deviations have the attribute `factor` as a factor.

    Args:
      x: `[num_examples, *task.input_shape]` raw examples of `task.dtype`.
      num_samples: Number of Monte Carlo samples; by default
        `--final_num_mc_samples`, or 1 for a deterministic model and the mean.
      seed: Random seed; by default that of the run's last evaluation.

    Returns:
      A `Prediction`, or a `NumericPrediction` if labels are numbers.

    Raises:
      ValueError: The shape or type of the examples is wrong, or the model is
        not usable, for example because it diverged.
    """
    self.check_usable()
    return self.of_moments(self.predictive(x, num_samples, seed))

  def of_moments(self, predictive: training.Predictive) -> AnyPrediction:
    """Returns the predictions with the moments of `predictive`."""
    probs, *variances = self.likelihood.in_label_unit(predictive)[:3]
    if self.task.is_numeric:
      return NumericPrediction(probs[:, 0], np.sqrt(sum(variances)), *variances)
    return Prediction(probs, metrics.normalized_entropy(probs), *variances)

  def predictive(
    self, x: np.ndarray, num_samples: int | None = None, seed: int | None = None
  ) -> training.Predictive:
    """Returns the moments of the predictions; arguments as in `predict`."""
    of: Any = prediction.mixture if self.members else prediction.predict
    return self._predicted(of, x, num_samples, seed)

  def samples(
    self, x: np.ndarray, num_samples: int | None = None, seed: int | None = None
  ) -> Iterator[training.Predictive]:
    """Yields the predictions of each sample of `predict`, or of each member."""
    of: Any = prediction.members_of if self.members else prediction.samples
    yield from self._predicted(of, x, num_samples, seed)

  def _predicted(self, of, x, num_samples, seed):
    return of(
      self.predictors,
      self.members or prediction.scaled(self.weights, self.factor),
      self._raw(x),
      seed=self.draws(seed),
      num_samples=self.num_samples(num_samples),
    )

  def quantiles(
    self,
    x: np.ndarray,
    levels: Sequence[float] = (0.05, 0.95),
    num_samples: int | None = None,
    calibrated: bool = False,
    site: str = '',
  ) -> np.ndarray:
    """Returns quantiles of the probabilities over samples of the posterior.

    The result is `[num_levels, num_examples, num_classes]`.
    """
    predictions: Any = map(self.of_moments, self.samples(x, num_samples))
    if calibrated:
      predictions = (self.calibrated(each, site) for each in predictions)
    return np.quantile([each.probs for each in predictions], levels, axis=0)

  def calibrated(
    self, prediction: AnyPrediction, site: str = ''
  ) -> AnyPrediction:
    """Returns predictions with the recalibration, or the fitted temperature.

    The recalibration is that of the last `bfl-tf report --recalibrate`, for all
    sites or for one. Otherwise, probabilities p become proportional to
    p^(1 / temperature); their two uncertainties stay. For numbers, the
    temperature is a factor on the standard deviations.
    """
    if isinstance(prediction, Prediction) and self.has_recalibration:
      risk: Any = self.risk
      probs = risk.apply(prediction.probs, self.task.classes, site)
      return prediction.with_probs(probs)
    if self.temperature is None or self.needs_site:
      raise ValueError(
        'this model has no fitted temperature: only the global model of a run '
        'with --calibration_fraction has one, without files of nodes.'
      )
    if isinstance(prediction, NumericPrediction):
      mean, scale, *variances = prediction
      variances = [self.temperature**2 * each for each in variances]
      return NumericPrediction(mean, self.temperature * scale, *variances)
    probs = metrics.tempered(prediction.probs, self.temperature)
    return prediction.with_probs(probs.astype(np.float32))

  @property
  def has_recalibration(self) -> bool:
    """Whether a report has fitted a recalibration of the risk."""
    return bool(self.risk and self.risk.recalibrate)

  def named(self, label: str) -> str:
    """Returns a class with the column of a table: `died = yes`."""
    column = self.config.label_column
    return f'{column} = {label}' if self.task.features else label

  def is_out_of_range(self, x: np.ndarray) -> np.ndarray:
    """Returns for each example whether it is far outside the training data.

    Such an example has a number more than 10 standard deviations from the
    training mean. Categories and uint8 images are ignored.
    """
    x, inputs = self._raw(x), self.task.inputs
    counts = [f.value is None for f in self.task.features] or x.dtype != 'uint8'
    far = np.abs(x - inputs.mean.astype(np.float64)) > _FAR * inputs.std
    return (far & counts).reshape(len(x), -1).any(-1)

  def num_samples(self, wanted: int | None = None) -> int:
    """Returns the number of samples of `predict`; None for the default."""
    if wanted is not None:
      return wanted
    default = self.config.final_num_mc_samples
    return prediction.num_samples(self.inference, default, self.factor)

  def draws(self, seed: int | None = None) -> np.ndarray:
    """Returns the `[2]` int32 seed of `predict`."""
    if seed is not None:
      return seeds.named(seed, 'prediction')
    return seeds.named(self.config.seed, 'evaluation', self.config.final_round)

  def predictor(self, strategy: tf.distribute.Strategy) -> training.Predictor:
    """Returns a new predictor on a device; weights are not loaded."""
    inputs, how = self.task.inputs, (self.inference, self.likelihood)
    return training.Predictor(strategy, self._build, inputs, *how)

  @functools.cached_property
  def predictors(self) -> list[training.Predictor]:
    """Compiled predictors, one per device."""
    strategies = training.strategies(self.config.num_workers)
    return [self.predictor(strategy) for strategy in strategies]

  @functools.cached_property
  def _plan(self):
    return plan.Plan.of(self.config)

  def _build(self):
    return self._plan.network(self.task.input_shape, self.task.num_classes)()

  def _raw(self, x):
    x, task = np.asarray(x), self.task
    is_like = x.shape[1:] == task.input_shape
    # An array of another shape is rejected for its shape.
    may_miss = encoding.has_gaps(task.features) if is_like else True
    x = arrays.inputs('x', x, may_miss)
    if x.shape[1:] != task.input_shape or x.dtype != task.dtype:
      raise ValueError(
        f'x must be raw examples of shape {task.input_shape} of {task.dtype}, '
        f'as in training; got {x.shape[1:]} of {x.dtype}.'
      )
    return x


class Ensemble(Trained):
  """Runs that predict together, with equal weights.

  The prediction is the mixture of their predictions (Lakshminarayanan et al.
  2017). Its epistemic variance includes the variance between runs. Its flags
  and its `factor` are the first of the runs, which predict with their own ones.
  """

  def __init__(self, runs: Sequence[Trained], temperature: float | None = None):
    self.runs, self.temperature, self.members = runs, temperature, ()
    factors = [run.factor for run in runs if run.factor is not None]
    self.factor = factors[0] if factors else None
    first = runs[0]
    self.task, self.clients = first.task, first.clients
    same = {run.config.method for run in runs} == {first.config.method}
    label = f'{first.config.method} runs' if same else 'runs'
    label = f'ensemble of {len(runs)} {label.strip()}'
    self.config = first.config.labelled(label)
    for run in runs[1:]:
      differ = run_config.differences(run.config, first.config)
      # Runs that differ in their seeds share compiled functions.
      if {*differ} <= {'seed', 'data_seed'}:
        run.__dict__['predictors'] = first.predictors

  def __getattr__(self, name: str) -> Any:
    if name in ('weights', 'state'):
      raise ValueError(
        'an ensemble has no weights of its own: name one of its runs.'
      )
    raise AttributeError(name)

  def personal(self, client):
    own = Ensemble([run.personal(client) for run in self.runs])
    own.risk = self.risk if self.needs_site else None
    return own

  @property
  def has_personal_models(self):
    return all(run.has_personal_models for run in self.runs)

  @property
  def needs_site(self):
    return any(run.needs_site for run in self.runs)

  def samples(self, x, num_samples=None, seed=None):
    for run in self.runs:
      yield from run.samples(x, num_samples, seed)

  def predictive(self, x, num_samples=None, seed=None):
    mixtures = training.Mixtures(self.likelihood)
    for run in self.runs:
      predictive = run.predictive(x, num_samples, seed)
      if not mixtures.add('runs', predictive):
        return predictive  # It is not finite.
    return mixtures.union(['runs'])

  def num_samples(self, wanted=None):
    return sum(run.num_samples(wanted) for run in self.runs)
