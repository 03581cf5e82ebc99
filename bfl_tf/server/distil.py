"""Distillation of an ensemble into the global model (FedBE, alg. 1).

The targets are the sharpened mean predictions of the ensemble on unlabeled
examples. The student starts from the model so far. It minimizes the cross
entropy on augmented inputs, with SWA or plain SGD. Numeric labels have Gaussian
targets, whose variance is divided by the exponent.

Notation (FedBE, section 4): U the server's examples, p_j the target of x_j.
  p_j[c] <- p_j[c]^2 / sum_c' p_j[c']^2
  loss = -1/J sum_j p_j^T log p(y | x_j; w)

References:
  H. Chen, W. Chao. FedBE: Making Bayesian model ensemble applicable to
  federated learning. ICLR 2021, sections 4 and 5.1, appendix B.1.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import math
import time

import numpy as np

from bfl_tf import clients, seeds, training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.server import ensemble, posteriors
from bfl_tf.server.resources import Resources
from bfl_tf.server.stage import Stage

DISTILLATIONS = ('swa', 'sgd')
TARGETS = ('teachers', 'labels')


@dataclasses.dataclass(frozen=True, eq=False)
class Distil(Stage):
  """Trains the mean by distillation; the pooled scale stays.

  Attributes:
    resources: Resources of the run. The batch statistics of a student with
      averaged weights (`swa`) are re-estimated on U.
    make_ensemble: Returns the `Ensemble` whose groups are the teachers.
  """

  resources: Resources
  make_ensemble: Callable[[], ensemble.Ensemble]
  teachers: str = setting(
    '+'.join(ensemble.GROUPS),
    'Groups of models that teach the student: B, or some of A, C and S '
    'joined by +.',
  )
  targets: str = setting(
    'teachers',
    'Targets of the student: the predictions of the teachers, or the '
    'true labels as an upper bound.',
    choices=TARGETS,
  )
  sharpening: float = setting(
    2.0,
    'Exponent on the predicted probabilities or densities before they are '
    'normalized again; 1 leaves them unchanged.',
    gt=0,
  )
  optimizer: str = setting(
    'swa',
    'Optimizer of the student: SGD with averaged weights (SWA), or SGD.',
    choices=DISTILLATIONS,
  )
  epochs: int = setting(
    20, "Number of epochs over the server's examples.", ge=1
  )
  batch_size: int = setting(128, 'Mini-batch size of the student.', ge=1)
  learning_rate: float = setting(
    1e-3,
    'Learning rate of SGD, and the largest learning rate of an SWA cycle.',
    gt=0,
  )
  swa_min_learning_rate: float = setting(
    4e-4, 'Smallest learning rate of an SWA cycle, reached at its end.', gt=0
  )
  swa_start: float = setting(
    250.0,
    'Number of steps before the first average; a value below 1 is a '
    'fraction of all steps.',
    ge=0,
  )
  swa_cycle: float = setting(
    25.0,
    'Number of steps per SWA cycle; a value below 1 is a fraction of '
    'all steps.',
    gt=0,
  )
  momentum: float = setting(
    0.9, "Momentum of the student's optimizer.", ge=0, lt=1
  )
  weight_decay: float = setting(
    1e-5, "Weight decay of the student's optimizer.", ge=0
  )
  augment: bool = setting(
    True,
    "Augment the student's inputs if the clients augment theirs (--augment).",
  )

  name = 'distil'
  uses = {'ensemble': ensemble.Ensemble}

  def __post_init__(self):
    self.resources.require('distillation')
    self._taught_by  # noqa: B018 (a wrong union shows here)
    if self.targets == 'labels':
      self.resources.require('--distil.targets=labels', labels=True)
    if self.optimizer != 'swa':
      return
    try:
      self.averaging.check(self.num_steps, len(self.resources.server_images))
    except ValueError as error:
      raise ValueError(
        f'--distil.optimizer=swa collects no weights in {self.num_steps} '
        'steps: set --distil.swa_start=0.5 and --distil.swa_cycle=0.05 '
        '(fractions of the steps), or more --distil.epochs.'
      ) from error
    if self.swa_min_learning_rate > self.learning_rate:
      raise ValueError(
        f'--distil.swa_min_learning_rate={self.swa_min_learning_rate} must not '
        f'exceed --distil.learning_rate={self.learning_rate}.'
      )

  @functools.cached_property
  def teacher_groups(self) -> ensemble.Ensemble:
    """Ensemble whose groups are the teachers."""
    return self.make_ensemble()

  @property
  def num_steps(self) -> int:
    """Number of steps of a student's training."""
    batches = math.ceil(len(self.resources.server_images) / self.batch_size)
    return self.epochs * batches

  def _steps(self, name, value):
    """Returns a number of steps; a value below 1 is a fraction of all steps."""
    if value < 1:
      return round(value * self.num_steps)
    if value % 1:
      raise ValueError(
        f'--distil.{name}={value} must be an integer, or a fraction below 1.'
      )
    return int(value)

  @property
  def steps_per_cycle(self) -> int:
    """Number of steps per cycle of the learning rate."""
    return max(1, self._steps('swa_cycle', self.swa_cycle))

  @property
  def averaging(self) -> clients.Swag:
    """Client part that averages the student's weights."""
    return clients.Swag(
      self._steps('swa_start', self.swa_start),
      self.steps_per_cycle,
      rank=0,
      fits_scale=False,
    )

  @functools.cached_property
  def student(self) -> training.Worker:
    """Worker that trains students; a single one, as steps are sequential."""
    have, worker = self.resources, self.resources.workers[0]
    training_config = training.TrainingConfig(
      optimizer=training.SGD(self.momentum),
      batch_size=self.batch_size,
      likelihood=worker.config.likelihood,
      weight_decay=self.weight_decay,
      decay_biases=worker.config.decay_biases,
      augment=worker.config.augment and self.augment,
      augment_padding=worker.config.augment_padding,
      augment_border=worker.config.augment_border,
      trains_scale=False,
      inference=training.Inference(scope=worker.config.inference.scope),
    )
    if self.optimizer == 'swa':
      training_config = dataclasses.replace(
        training_config,
        cycle_length=self.steps_per_cycle,
        cycle_floor=self.swa_min_learning_rate / self.learning_rate,
        parts=(self.averaging,),
      )
    # Only the shape matters here.
    labels = np.zeros(len(have.server_images), worker.labels.dtype)
    targets = have.likelihood.certain_targets(labels, have.num_classes)
    return worker.other(training_config, have.server_images, targets)

  @property
  def statistics(self) -> tuple:
    return self.teacher_groups.statistics

  @property
  def predictors(self) -> tuple[str, ...]:
    return self.teacher_groups.predictors

  def __call__(self, state, reference, pooled, statistics, seed):
    groups, info = self.teacher_groups.make(
      pooled, statistics, seeds.child(seed, 0)
    )
    started = time.perf_counter()
    mixtures, more = self.predicted(
      {name: groups[name] for name in self._taught_by}, seeds.child(seed, 1)
    )
    info |= more
    info['predict_teachers_seconds'] = time.perf_counter() - started
    model, more = self.distilled(state.model, mixtures, seeds.child(seed, 2))
    info |= more
    return state._replace(model=model), info, groups

  @property
  def _taught_by(self):
    known = self.teacher_groups.predictors
    return ensemble.groups_of('distil.teachers', self.teachers, known)

  def predicted(
    self, groups: Mapping[str, Sequence[weights.Weights]], seed: np.ndarray
  ) -> tuple[training.Mixtures, dict[str, float]]:
    """Returns the teachers' finite predictions on U, by group."""
    betas = posteriors.betas_of(groups)
    if self.targets == 'labels':
      return training.Mixtures(self.resources.likelihood, betas), {}
    mixtures, rejected = self.resources.mixtures(groups, betas, seed)
    return mixtures, {'teachers_rejected': rejected}

  def distilled(
    self, start: weights.Weights, mixtures: training.Mixtures, seed: np.ndarray
  ) -> tuple[weights.Weights, dict[str, float]]:
    """Trains a student from `start` on the union of its teachers.

    Returns:
      The student and columns of `metrics.csv`. `start` replaces the student if
      it is not finite, or if no teacher is.
    """
    have = self.resources
    teachers = [name for name in self._taught_by if name in mixtures]
    labels = have.server_labels if self.targets == 'labels' else None
    if not teachers and labels is None:
      return start, {'students_refused': 1}
    task = training.ClientTask(
      start=start,
      indices=np.arange(len(have.server_images), dtype=np.int32),
      epochs=np.int32(self.epochs),
      learning_rate=np.float32(self.learning_rate),
      seed=seeds.child(seed, 0),
    )
    targets = (
      have.likelihood.targets(mixtures.union(teachers), self.sharpening)
      if labels is None
      else have.likelihood.certain_targets(labels, have.num_classes)
    )
    result = self.student.train(task, have.server_images, targets)
    # The student's scale differs from `start` by rounding in softplus.
    model = weights.Weights(*result.model)._replace(
      scale=start.scale, factor=start.factor
    )
    if self.optimizer == 'swa' or have.recalibrates:
      model = have.measured(model, seeds.child(seed, 1))
    if not all(np.all(np.isfinite(vector)) for vector in model):
      return start, {'students_refused': 1}
    loss = float(result.trace.loss)
    return model, {'distillation_loss': loss, 'students_refused': 0}
