"""Score scikit-learn's BayesianRidge on the data of docs/regression.md.

  python -m experiments.bayesian_ridge

The file grunfeld.csv must be in the current directory.
"""

import numpy as np
from sklearn.linear_model import BayesianRidge

from bfl_tf import data, metrics
from experiments import command_line

_FIRMS = {
  'label_column': 'invest',
  'client_column': 'firm',
  'ignore_columns': ('year',),
}


def main() -> None:
  """Prints the scores of each data set."""
  for name, columns in (('diabetes', {}), ('grunfeld.csv', _FIRMS)):
    found = data.load(name, is_numeric=True, **columns)
    train, test = found.train, found.test
    ridge = BayesianRidge().fit((train.x - found.mean) / found.std, train.y)
    mean, scale = ridge.predict(
      (test.x - found.mean) / found.std, return_std=True
    )
    noise = np.full(len(mean), 1 / ridge.alpha_)
    result = metrics.NumericEvaluation(mean, test.y, noise, scale**2 - noise)
    print(name, metrics.summarize(result))


if __name__ == '__main__':
  command_line.main(main)
