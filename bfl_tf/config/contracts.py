"""What a thing in a role must have: checked once, when it is made."""

from typing import Any

from bfl_tf import pooling

_STAGE = ('name', 'statistics', '__call__')
# By role; of `a|b` one is enough.
_NEEDED = {
  'client_parts': ('name', 'needs'),
  'attack': ('name', 'fraction', 'labels|send'),
  'server_step': _STAGE,
  'refine': _STAGE,
  'start': _STAGE,
  'pooling': ('accumulate', 'finalize', 'takes_weights', 'needs_prior'),
  'weighting': ('one|all',),
  'client_optimizer': ('slots', 'apply'),
  'learning_rate_schedule': ('__call__',),
  'posterior': ('statistic', 'distribution'),
}


def check(what: str, role: str, thing: Any) -> None:
  """Raises a ValueError if something is missing; all of it is named.

  Args:
    what: the flag that named it.
    role: that it is to play.
    thing: anybody's.
  """
  missing = [
    ' or '.join(names.split('|'))
    for names in _NEEDED.get(role, ())
    if not any(hasattr(thing, name) for name in names.split('|'))
  ]
  if role == 'pooling':
    missing += _abstract(thing)
  if missing:
    raise ValueError(
      f'{what} lacks {", ".join(missing)}: see docs/your_own.md.'
    )
  name = getattr(thing, 'name', '')
  if 'name' in _NEEDED.get(role, ()) and not isinstance(name, str):
    raise ValueError(f'{what}: its name must be a text, got {name!r}.')


def _abstract(rule):
  """What a `pooling.Rule` that sums terms leaves to be written."""
  kind = type(rule)
  if not isinstance(rule, pooling.Rule):
    return []
  unwritten = {'accumulate': 'terms', 'finalize': 'moments'}
  return [
    name
    for user, name in unwritten.items()
    if getattr(kind, user) is getattr(pooling.Rule, user)
    and getattr(kind, name) is getattr(pooling.Rule, name)
  ]
