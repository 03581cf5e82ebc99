"""Several students of one round, to be compared (FedBE, Table 8).

Each is distilled from the same start by the same clients, differing in its
teachers and in how it is trained; the global model stays as it is.
"""

import dataclasses
from typing import ClassVar

from bfl_tf import seeds
from bfl_tf.server import distil as distil_lib
from bfl_tf.server import ensemble as ensemble_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Students:
  """Distils and scores students beside the groups A, C, S.

  Attributes:
    distil: what they have in common.
    students: `<teachers>:<distillation>`, as `A+C+S:swa`; also the name that
      each is scored by.
  """

  distil: distil_lib.Distil
  students: tuple[str, ...] = ()

  name: ClassVar[str] = 'students'

  def __post_init__(self):
    if not self.students:
      raise ValueError('--students must name at least one, as C:sgd.')
    self._each()

  @property
  def statistics(self) -> tuple:
    """Those of the ensemble."""
    return self.distil.statistics

  @property
  def predictors(self) -> tuple[str, ...]:
    """The groups that it makes."""
    return (*self.distil.predictors, *self.students)

  def init(self, model) -> dict:
    """Carries nothing from round to round."""
    return {}

  def __call__(self, state, reference, pooled, statistics, seed):
    groups, info = self.distil.teacher_groups.groups(
      pooled, statistics, seeds.child(seed, 0)
    )
    taught = {}
    for name, distil in self._each().items():
      targets = distil.targets(groups, seeds.child(seed, 1))
      # The same seed for each: the same batches and crops.
      model, _ = distil.distilled(state.model, targets, seeds.child(seed, 2))
      taught[name] = (model,)
    return state._replace(predictors={**groups, **taught}), info

  def _each(self):
    found = {}
    for name in self.students:
      teachers, _, distillation = name.partition(':')
      chosen = tuple(teachers.split('+'))
      ensemble_lib.check_groups('students', chosen, ensemble_lib.GROUPS)
      found[name] = dataclasses.replace(
        self.distil, teachers=chosen, distillation=distillation
      )
    return found
