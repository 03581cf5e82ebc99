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

from collections.abc import Mapping, Sequence
import dataclasses
import math
import time

import numpy as np

from bfl_tf import seeds, training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.methods.swag import Swag
from bfl_tf.parts import Outcome, Server
from bfl_tf.server import ensemble as ensemble_lib
from bfl_tf.server import posteriors
from bfl_tf.server.resources import Resources
from bfl_tf.server.teacher_posteriors import Gaussian

DISTILLATIONS = ('swa', 'sgd')
TARGETS = ('teachers', 'labels')
_MOMENTUM = 0.9


@dataclasses.dataclass(frozen=True)
class Distil(Server):
  """Trains the mean by distillation; the pooled scale stays.

  The batch statistics of a student with averaged weights (`swa`) are estimated
  again on U.
  """

  ensemble: ensemble_lib.Ensemble = ensemble_lib.Ensemble()  # noqa: RUF009
  teachers: str = setting(
    '+'.join(ensemble_lib.GROUPS),
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
  weight_decay: float = setting(
    1e-5, "Weight decay of the student's optimizer.", ge=0
  )
  augment: bool = setting(
    True,
    "Augment the student's inputs if the clients augment theirs (--augment).",
  )

  name = 'distil'

  @property
  def group_names(self) -> tuple[str, ...]:
    return self.ensemble.group_names

  @property
  def _taught_by(self):
    return ensemble_lib.groups_of(
      'distil.teachers', self.teachers, self.group_names
    )

  def check(self, facts):
    self.ensemble.check(facts)
    self._taught_by  # noqa: B018 (a wrong union shows here)
    facts.need_server_examples(labels=self.targets == 'labels')
    is_swa, most = self.optimizer == 'swa', self.learning_rate
    facts.need(
      not is_swa or self.swa_min_learning_rate <= most,
      f'--distil.swa_min_learning_rate={self.swa_min_learning_rate} of at most '
      f'--distil.learning_rate={most}',
    )
    for name in ('swa_start', 'swa_cycle'):
      value = getattr(self, name)
      facts.need(
        value < 1 or value == int(value),
        f'an integer, or a fraction below 1, for --distil.{name}={value}',
      )
    if facts.tools and is_swa:
      steps = self.num_steps(facts.tools)
      facts.need(
        self.averaging(steps).collections(steps),
        f'weights to average, and --distil.optimizer=swa collects none in '
        f'{steps} steps: set --distil.swa_start=0.5 and --distil.swa_cycle='
        '0.05 (fractions of the steps), or more --distil.epochs',
      )

  def num_steps(self, tools: Resources) -> int:
    """Returns the number of steps of a student's training."""
    return self.epochs * math.ceil(len(tools.server_images) / self.batch_size)

  def rates(self, steps: int) -> np.ndarray:
    """Returns the learning rate of each step, `[steps]` float32.

    That of SWA falls linearly in each cycle and then restarts.
    """
    rate = np.float32(self.learning_rate)
    if self.optimizer != 'swa':
      return np.full(steps, rate)
    period = self.averaging(steps).period
    place = np.arange(steps, dtype=np.float32) % period / max(1, period - 1)
    floor = self.swa_min_learning_rate / self.learning_rate
    return rate * (1 - np.float32(1 - floor) * place)

  def averaging(self, steps: int) -> Swag:
    """Returns the part that averages the student's weights.

    A setting below 1 is a fraction of the steps.
    """
    start, cycle = (
      round(value * steps) if value < 1 else int(value)
      for value in (self.swa_start, self.swa_cycle)
    )
    period = max(1, cycle)
    return Swag(start, period, rank=0, fits_scale=False)

  def student(self, tools: Resources) -> training.Worker:
    """Returns the worker that trains students, one after another."""
    worker = tools.workers[0]
    training_config = training.TrainingConfig(
      optimizer=training.SGD(_MOMENTUM),
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
        training_config, parts=(self.averaging(self.num_steps(tools)),)
      )
    # Only the shape matters here.
    labels = np.zeros(len(tools.server_images), worker.labels.dtype)
    targets = tools.likelihood.certain_targets(labels, tools.num_classes)
    return worker.other(training_config, tools.server_images, targets)

  def terms(self, update, weight, broadcast):
    return self.ensemble.terms(update, weight, broadcast)

  def step(self, model, sums, slot, ctx):
    seed, tools = ctx.seed, ctx.tools
    groups, report = self.ensemble.make(sums, ctx, seeds.child(seed, 0))
    started = time.perf_counter()
    taught = {name: groups[name] for name in self._taught_by}
    mixtures, more = self.predicted(tools, taught, seeds.child(seed, 1))
    report |= more
    report['predict_teachers_seconds'] = time.perf_counter() - started
    model, more = self.distilled(tools, model, mixtures, seeds.child(seed, 2))
    return Outcome(model, slot, report | more, groups)

  def predicted(
    self,
    tools: Resources,
    groups: Mapping[str, Sequence[weights.Weights]],
    seed: np.ndarray,
  ) -> tuple[training.Mixtures, dict[str, float]]:
    """Returns the teachers' finite predictions on U, by group."""
    betas = posteriors.betas_of(groups)
    if self.targets == 'labels':
      return training.Mixtures(tools.likelihood, betas), {}
    mixtures, rejected = tools.mixtures(groups, betas, seed)
    return mixtures, {'teachers_rejected': rejected}

  def distilled(
    self,
    tools: Resources,
    start: weights.Weights,
    mixtures: training.Mixtures,
    seed: np.ndarray,
  ) -> tuple[weights.Weights, dict[str, float]]:
    """Trains a student from `start` on the union of its teachers.

    Returns:
      The student and columns of `metrics.csv`. `start` replaces the student if
      it is not finite, or if no teacher is.
    """
    teachers = [name for name in self._taught_by if name in mixtures]
    labels = tools.server_labels if self.targets == 'labels' else None
    if not teachers and labels is None:
      return start, {'students_refused': 1}
    task = training.ClientTask(
      start=start,
      indices=np.arange(len(tools.server_images), dtype=np.int32),
      rates=self.rates(self.num_steps(tools)),
      seed=seeds.child(seed, 0),
    )
    targets = (
      tools.likelihood.targets(mixtures.union(teachers), self.sharpening)
      if labels is None
      else tools.likelihood.certain_targets(labels, tools.num_classes)
    )
    result = self.student(tools).train(task, tools.server_images, targets)
    # The student's scale differs from `start` by rounding in softplus.
    model = weights.Weights(*result.model)._replace(
      scale=start.scale, factor=start.factor
    )
    if self.optimizer == 'swa' or tools.recalibrates:
      model = tools.measured(model, seeds.child(seed, 1))
    if not all(np.all(np.isfinite(vector)) for vector in model):
      return start, {'students_refused': 1}
    loss = float(result.trace.loss)
    return model, {'distillation_loss': loss, 'students_refused': 0}


fedbe = Method(
  (
    # Fractions of the steps fit every number of examples.
    Distil(
      ensemble_lib.Ensemble(
        groups='A+C+S', num_samples=10, posterior=Gaussian()
      ),
      teachers='A+C+S',
      sharpening=2.0,
      optimizer='swa',
      epochs=20,
      batch_size=128,
      learning_rate=1e-3,
      swa_min_learning_rate=4e-4,
      swa_start=0.2,
      swa_cycle=0.02,
    ),
  ),
  tune={'distil.learning_rate': 'log:0.0005:0.01'},
  help='FedBE (Chen & Chao 2021): an ensemble of the average, the clients and '
  'samples of a Gaussian over client models, distilled with SWA. Needs '
  'unlabeled examples on the server, such as --num_server_examples=1000.',
)

beta_predictive_bayes = Method(
  (
    Distil(
      ensemble_lib.Ensemble(groups='C+B', fits_beta=True),
      teachers='B',
      sharpening=1.0,
      optimizer='sgd',
      epochs=50,
      learning_rate=0.01,
    ),
  ),
  needs={'num_rounds': 1},
  help='Beta-Predictive Bayes (Hasan et al. 2024): one round; the server '
  "interpolates between the mixture and the product of the clients' "
  'predictions and distils the result. Needs labeled examples on the server, '
  'such as --num_server_examples=1000.',
)
