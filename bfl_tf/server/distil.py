"""The server distils an ensemble of models into the global one (FedBE, alg. 1).

Targets are the ensemble's mean probabilities on unlabeled examples, sharpened;
the student starts from the model so far, sees augmented inputs and is trained
by cross entropy, with SWA or plain SGD.

Notation (FedBE, section 4): U the server's examples, p_j the target of x_j.
  p_j[c] <- p_j[c]^2 / sum_c' p_j[c']^2
  loss = -1/J sum_j p_j^T log p(y | x_j; w)

References:
  H. Chen, W. Chao. FedBE: Making Bayesian model ensemble applicable to
  federated learning. ICLR 2021, sections 4 and 5.1, appendix B.1.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
import time
from typing import ClassVar

import numpy as np

from bfl_tf import clients, seeds, training
from bfl_tf import weights as weights_lib
from bfl_tf.server import ensemble as ensemble_lib

DISTILLATIONS = ('swa', 'sgd')
TARGETS = ('teachers', 'labels')


@dataclasses.dataclass(frozen=True, eq=False)
class Distil:
  """Trains the mean; the pooled scale stays.

  Attributes:
    make_student: from one of `DISTILLATIONS` to a `training.Worker` on the
      server's examples, with targets as its labels.
    workers: `training.Worker`s that predict.
    server_images: U, `[num_examples, ...]` raw examples.
    server_labels: `[num_examples]` int32, or None if they are not known or of
      other classes.
    num_classes: length of a target.
    teacher_groups: the `Ensemble` that makes teachers.
    num_mc_samples: predictions of a stochastic teacher.
    teachers: the groups whose union is distilled.
    distillation_targets: `teachers`, or `labels` for the upper bound that knows
      the ground truth.
    sharpening: the exponent; 1 leaves targets as they are.
    distillation: `swa` or `sgd`.
    distillation_epochs: over the server's examples.
    distillation_batch_size: examples a step.
    distillation_learning_rate: constant, or under `swa` where a cycle begins.
    swa_start: steps before the first average.
    swa_cycle: steps of a cycle.
  """

  make_student: Callable[[str], training.Worker]
  workers: list[training.Worker]
  server_images: np.ndarray
  server_labels: np.ndarray | None
  num_classes: int
  teacher_groups: ensemble_lib.Ensemble
  num_mc_samples: int = 1
  teachers: tuple[str, ...] = ensemble_lib.GROUPS
  distillation_targets: str = 'teachers'
  sharpening: float = 2.0
  distillation: str = 'swa'
  distillation_epochs: int = 20
  distillation_batch_size: int = 128
  distillation_learning_rate: float = 1e-3
  swa_start: int = clients.Swa.swa_start
  swa_cycle: int = clients.Swa.swa_cycle

  name: ClassVar[str] = 'distil'

  def __post_init__(self):
    if not len(self.server_images):
      raise ValueError(
        'distil trains on server data: set --num_server_examples or '
        '--server_dataset.'
      )
    ensemble_lib.check_groups(
      'teachers', self.teachers, self.teacher_groups.ensemble
    )
    ensemble_lib.check_choice(
      'distillation_targets', self.distillation_targets, TARGETS
    )
    ensemble_lib.check_choice('distillation', self.distillation, DISTILLATIONS)
    if self.distillation_targets == 'labels' and self.server_labels is None:
      raise ValueError(
        '--distillation_targets=labels needs labelled examples of the same '
        'classes: leave --server_dataset out.'
      )
    steps = self.distillation_epochs * math.ceil(
      len(self.server_images) / self.distillation_batch_size
    )
    swa = clients.Swa(self.swa_start, self.swa_cycle)
    if self.distillation == 'swa' and not swa.collections(steps):
      raise ValueError(
        f'--distillation=swa averages nothing: {steps} steps end no cycle of '
        f'--swa_cycle={self.swa_cycle} after --swa_start={self.swa_start}.'
      )

  @property
  def statistics(self) -> tuple:
    """Those of the ensemble."""
    return self.teacher_groups.statistics

  @property
  def predictors(self) -> tuple[str, ...]:
    """The groups that it makes."""
    return self.teacher_groups.ensemble

  def init(self, model) -> dict:
    """Carries nothing from round to round."""
    return {}

  def __call__(self, state, reference, pooled, statistics, seed):
    groups, info = self.teacher_groups.groups(
      pooled, statistics, seeds.child(seed, 0)
    )
    started = time.perf_counter()
    targets = self.targets(groups, seeds.child(seed, 1))
    info['predict_teachers_seconds'] = time.perf_counter() - started
    model, info['distillation_loss'] = self.distilled(
      state.model, targets, seeds.child(seed, 2)
    )
    return state._replace(model=model, predictors=groups), info

  def targets(
    self, groups: Mapping[str, Sequence[weights_lib.Weights]], seed: np.ndarray
  ) -> np.ndarray:
    """Returns what the student is to say, `[num_examples, num_classes]`."""
    if self.distillation_targets == 'labels':
      return np.eye(self.num_classes, dtype=np.float32)[self.server_labels]
    chosen = {name: groups[name] for name in self.teachers}
    mixtures = training.Mixtures()
    for name, member in training.predict_members(
      self.workers,
      chosen,
      self.server_images,
      seed=seed,
      num_samples=self.num_mc_samples,
    ):
      mixtures.add(name, member)
    union = mixtures.union(self.teachers)
    return sharpen(union.probs, self.sharpening)

  def distilled(
    self, start: weights_lib.Weights, targets: np.ndarray, seed: np.ndarray
  ) -> tuple[weights_lib.Weights, float]:
    """Trains a student from `start`; returns it and its mean loss in nats."""
    job = training.Job(
      start=start,
      indices=np.arange(len(self.server_images), dtype=np.int32),
      epochs=np.int32(self.distillation_epochs),
      learning_rate=np.float32(self.distillation_learning_rate),
      seed=seeds.child(seed, 0),
    )
    result = self.make_student(self.distillation).train(job, targets)
    # Through softplus and back a scale is not the same to the last bit.
    model = weights_lib.Weights(*result.model)._replace(scale=start.scale)
    model = training.recalibrate(
      self.workers, model, self.server_images, seed=seeds.child(seed, 1)
    )
    return model, float(result.trace.loss)


def sharpen(probs: np.ndarray, exponent: float) -> np.ndarray:
  """Returns probs^exponent, normalised: `[num_examples, num_classes]`."""
  # Relative to the largest, so that no row underflows to zeros.
  powers = (probs / probs.max(-1, keepdims=True)) ** exponent
  return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
