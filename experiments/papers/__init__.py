"""Tables, figures and claims of the papers and of our own experiments."""

from typing import Any

from experiments.papers import (
  board,
  distance,
  fedbe,
  fl_swag,
  noniid_techniques,
  outliers,
  personal,
  posterior_pooling,
  priors,
  sets,
  uncertainty,
)

_PAPERS = (
  posterior_pooling,
  fedbe,
  noniid_techniques,
  fl_swag,
  priors,
  outliers,
  personal,
  uncertainty,
  distance,
  board,
  sets,
)

ARTIFACTS: dict[str, Any] = {
  f'{artifact.paper.name}/{artifact.name}': artifact
  for paper in _PAPERS
  for artifact in (*paper.TABLES, *vars(paper).get('FIGURES', ()))
}
CLAIMS: dict[str, Any] = {
  f'{claim.paper.name}/{claim.name}': claim
  for paper in _PAPERS
  for claim in vars(paper).get('CLAIMS', ())
}
