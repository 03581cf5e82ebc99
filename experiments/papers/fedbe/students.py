"""Comparison of several students in one round (FedBE, Table 8).

All students have the same initial weights and clients, but other teachers and
optimizers. The global model does not change.
"""

from collections.abc import Callable
import dataclasses
import functools

import numpy as np

from bfl_tf import seeds
from bfl_tf.declare.settings import setting
from bfl_tf.server import ensemble
from bfl_tf.server.distil import Distil, DISTILLATIONS
from bfl_tf.server.stage import Stage


@dataclasses.dataclass(frozen=True, eq=False)
class Students(Stage):
  """Distils students and scores them together with the groups A, C and S.

  Attributes:
    make_distil: Returns a `Distil` for `teachers` and `optimizer`.
  """

  make_distil: Callable[..., Distil]
  students: tuple[str, ...] = setting(
    (),
    'Students to train and score, each as <teachers>:<optimizer>, for '
    'example A+C+S:swa.',
  )

  name = 'students'
  uses = {'distil': Distil}
  # Settings of `distil` that this stage sets itself.
  sets = {'distil': ('teachers', 'optimizer')}

  def __post_init__(self):
    if not 0 < len(set(self.students)) == len(self.students):
      raise ValueError(
        f'--students.students={",".join(self.students)} must name at least one '
        'student, such as C:sgd, and none twice.'
      )
    self._each  # noqa: B018 (what is wrong with it shows here)

  @property
  def statistics(self) -> tuple:
    return self._teacher_groups.statistics

  @property
  def predictors(self) -> tuple[str, ...]:
    return (*self._teacher_groups.predictors, *self.students)

  def __call__(self, state, reference, pooled, statistics, seed):
    groups, info = self._teacher_groups.make(
      pooled, statistics, seeds.child(seed, 0)
    )
    first = next(iter(self._each.values()))
    mixtures, more = first.predicted(groups, seeds.child(seed, 1))
    info |= more
    taught, refused = {}, 0
    for name, distil in self._each.items():
      # With equal seeds, all students see the same batches and crops.
      model, more = distil.distilled(
        state.model, mixtures, seeds.child(seed, 2)
      )
      if more['students_refused']:
        # A failed student has NaN scores, not the scores of its initial model.
        model = model.replace_mean(np.full_like(model.mean, np.nan))
        refused += 1
      taught[name] = (model,)
    info['students_refused'] = refused
    return state, info, {**groups, **taught}

  @property
  def _teacher_groups(self):
    return next(iter(self._each.values())).teacher_groups

  @functools.cached_property
  def _each(self):
    found = {}
    for name in self.students:
      teachers, _, distillation = name.partition(':')
      if distillation not in DISTILLATIONS:
        raise ValueError(
          f'--students.students={name} must be <teachers>:<optimizer>, such as '
          f'A+C+S:swa. Optimizers: {", ".join(DISTILLATIONS)}.'
        )
      ensemble.groups_of('students.students', teachers, ensemble.ALL)
      found[name] = self.make_distil(teachers=teachers, optimizer=distillation)
    return found


students = Students
