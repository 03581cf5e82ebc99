"""Which clients are bad."""

from bfl_tf import seeds


def bad_clients(
  run_seed: int, num_clients: int, fraction: float
) -> frozenset[int]:
  """Returns the numbers of the bad clients, rounded to a whole number of them.

  Whoever is bad at a fraction is so at a larger one, whatever the attack: the
  same clients, done other things to.

  Args:
    run_seed: the run's `--seed`.
    num_clients: of the run.
    fraction: of them that are bad.
  """
  order = seeds.generator(run_seed, 'bad_clients').permutation(num_clients)
  return frozenset(order[: round(fraction * num_clients)].tolist())
