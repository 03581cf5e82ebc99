"""What the remedies should do, each with a test fixed beforehand."""

from experiments.artifacts.priors import grids
from experiments.artifacts.priors import tables as scores
from experiments.harness import claims


def _better(rules, prior):
  """A prior's NLL is below that of the whole prior on own examples."""
  return tuple(
    claims.Comparison(
      f'{rule}, KL / N_k over {prior}, {column}',
      grids.SCORES[f'{rule}, KL / N_k', column],
      grids.SCORES[f'{rule}, {prior}', column],
      scores.NLL,
    )
    for rule in rules
    for column in grids.PARTITIONS
  )


CLAIMS = (
  claims.Claim(
    grids.PAPER,
    'averages_stand_for_everybody',
    'Averages of posteriors (NWA, LP) predict better where each client weighs '
    'the prior against the examples of all.',
    _better(('NWA', 'LP'), 'KL / N'),
    grids.SEEDS,
  ),
  claims.Claim(
    grids.PAPER,
    'products_count_the_prior_once',
    'Products of posteriors (WC, conflation) predict better where each of K '
    'clients has the prior to the power of 1 / K.',
    _better(('WC', 'Conflation'), 's sqrt(K)'),
    grids.SEEDS,
  ),
)
