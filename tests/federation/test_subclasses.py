"""Tests that a subclass of a component fits wherever its base class fits.

Facts about components are attributes of classes, not names, so that a derived
class without changes gives the bits of its base class.
"""

import dataclasses

import pytest
from test_every_field import CONFIGS
import toys

from bfl_tf import methods, training
from bfl_tf.methods import scaffold
from bfl_tf.server import pooling, STAGES

TABLES = {
  'client_parts': methods.PARTS,
  'pooling': pooling.RULES,
  'client_optimizer': training.OPTIMIZERS,
  'server_step': {k: STAGES[k] for k in ('momentum', 'adaptive')},
}


def derived(role, name):
  """Returns the `module:name` of a subclass without changes."""
  own = f'{role}_{name}'
  base = TABLES[role][name]
  globals()[own] = type(own, (base,), {'__module__': __name__})
  return f'{__name__}:{own}'


FLIPOUT = {'variant': 'flipout'}
CASES = [
  *(('client_parts', name, CONFIGS[name]) for name in methods.PARTS),
  *(('server_step', name, {}) for name in TABLES['server_step']),
  # Rules and optimizers that a part or a setting requires.
  ('pooling', 'dwc', {**FLIPOUT, 'flipout.update_prior': True}),
  ('pooling', 'lp', {**FLIPOUT, 'client_parts': ('feddyn',)}),
  ('pooling', 'dwc', {**FLIPOUT, 'client_parts': ('pvi',)}),
  ('client_optimizer', 'sgd',
   {'client_parts': ('fednova',), 'sgd.momentum': 0.5}),
  ('client_optimizer', 'sgd', {'client_parts': ('scaffold',)}),
  ('client_optimizer', 'ivon',
   {**CONFIGS['bayes_admm'], 'client_parts': ('bayes_admm',)}),
]  # fmt: skip


@pytest.mark.parametrize(('role', 'name', 'changes'), CASES)
def test_a_derived_class_gives_the_bits_of_its_base(role, name, changes):
  own, many = derived(role, name), role in ('client_parts', 'server_step')
  changed = {
    key.replace(f'{name}.', f'{own.partition(":")[2]}.'): value
    for key, value in changes.items()
  }
  states = [
    toys.execute(toys.experiment(**more | {role: (of,) if many else of}))[0]
    for of, more in ((name, changes), (own, changed))
  ]
  assert toys.same(states[0].model, states[1].model)


@dataclasses.dataclass(frozen=True)
class Damped(scaffold.Stage):
  """A server stage in the place of the one that `scaffold` needs."""


def test_a_stage_that_a_part_needs_may_be_replaced_by_a_subclass():
  scaffolds = {'client_parts': ('scaffold',)}
  own = {'server_step': (f'{__name__}:Damped',)}
  first, second = (
    toys.execute(toys.experiment(**scaffolds, **more))[0] for more in ({}, own)
  )
  assert toys.same(first.model, second.model)
