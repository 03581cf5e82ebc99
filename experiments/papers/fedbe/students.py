"""Comparison of several students in one round (FedBE, Table 8).

All students have the same initial weights and clients, but other teachers and
optimizers. The global model does not change.
"""

import dataclasses
import functools

import numpy as np

from bfl_tf import seeds
from bfl_tf.declare.settings import setting
from bfl_tf.methods.fedbe import Distil, DISTILLATIONS
from bfl_tf.parts import Outcome, Server
from bfl_tf.server import ensemble


@dataclasses.dataclass(frozen=True)
class Students(Server):
  """Distils students and scores them together with the groups A, C and S.

  Attributes:
    distil: Settings of all students; `students` has their teachers and their
      optimizers.
  """

  distil: Distil = Distil()  # noqa: RUF009
  students: tuple[str, ...] = setting(
    (),
    'Students to train and score, each as <teachers>:<optimizer>, for '
    'example A+C+S:swa.',
  )

  name = 'students'

  def check(self, facts):
    facts.need(
      0 < len(set(self.students)) == len(self.students),
      'at least one student in --students.students, such as C:sgd, and none '
      'twice',
    )
    for distil in self._each.values():
      distil.check(facts)

  @property
  def group_names(self) -> tuple[str, ...]:
    return (*self.distil.group_names, *self.students)

  def terms(self, update, weight, broadcast):
    return self.distil.terms(update, weight, broadcast)

  def step(self, model, sums, slot, ctx):
    seed, tools, start = ctx.seed, ctx.tools, model
    groups, report = self.distil.ensemble.make(sums, ctx, seeds.child(seed, 0))
    first = next(iter(self._each.values()))
    mixtures, more = first.predicted(tools, groups, seeds.child(seed, 1))
    report |= more
    taught, refused = {}, 0
    for name, distil in self._each.items():
      # With equal seeds, all students see the same batches and crops.
      model, more = distil.distilled(
        tools, start, mixtures, seeds.child(seed, 2)
      )
      if more['students_refused']:
        # A failed student has NaN scores, not the scores of its initial model.
        model = model.replace_mean(np.full_like(model.mean, np.nan))
        refused += 1
      taught[name] = (model,)
    report['students_refused'] = refused
    return Outcome(start, slot, report, {**groups, **taught})

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
      found[name] = dataclasses.replace(
        self.distil, teachers=teachers, optimizer=distillation
      )
    return found


students = Students
