"""Several students of one round, to be compared (FedBE, Table 8).

Each is distilled from the same start by the same clients, differing in its
teachers and in how it is trained; the global model stays as it is.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.config.settings import Setting
from bfl_tf.server import ensemble
from bfl_tf.server.distil import Distil, DISTILLATIONS
from bfl_tf.server.stage import Stage


@dataclasses.dataclass(frozen=True, eq=False)
class Students(Stage):
  """Distils and scores students beside the groups A, C, S.

  Attributes:
    make_distil: `Distil`, bound to all but its `teachers` and `optimizer`.
  """

  make_distil: Callable[..., Distil]
  students: Annotated[
    tuple[str, ...],
    Setting(
      'Students to train and score, each as <teachers>:<optimizer>, for '
      'example A+C+S:swa.'
    ),
  ] = ()

  name = 'students'
  uses = {'distil': Distil}
  # Of what it uses, the settings that it gives itself.
  sets = {'distil': ('teachers', 'optimizer')}

  def __post_init__(self):
    if not self.students:
      raise ValueError(
        '--students.students must name at least one student, such as C:sgd.'
      )
    if len(set(self.students)) < len(self.students):
      raise ValueError(
        f'--students.students={",".join(self.students)} repeats one.'
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
      # The same seed for each: the same batches and crops.
      model, more = distil.distilled(
        state.model, mixtures, seeds.child(seed, 2)
      )
      if more['students_refused']:
        # Its scores are NaN, not those of what it started from.
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
      ensemble.groups_of('students.students', teachers, ensemble.GROUPS)
      found[name] = self.make_distil(teachers=teachers, optimizer=distillation)
    return found
