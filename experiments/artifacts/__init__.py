"""The papers' tables, figures and claims, as data."""

import difflib
from typing import Any

from experiments.artifacts import fedbe, fl_swag, posterior_pooling

_PAPERS = (posterior_pooling, fedbe, fl_swag)

ARTIFACTS: dict[str, Any] = {
  f'{artifact.paper.name}/{artifact.name}': artifact
  for paper in _PAPERS
  for artifact in (*paper.TABLES, *paper.FIGURES)
}
CLAIMS: dict[str, Any] = {
  f'{claim.paper.name}/{claim.name}': claim
  for paper in _PAPERS
  for claim in paper.CLAIMS
}


def find(kind: str, name: str, known: dict[str, Any]) -> Any:
  """Returns `known[name]`.

  Raises:
    ValueError: names the near ones.
  """
  if name in known:
    return known[name]
  near = difflib.get_close_matches(name, known, n=4, cutoff=0.4) or list(known)
  raise ValueError(f'--{kind}={name} is unknown. Near: {", ".join(near)}.')
