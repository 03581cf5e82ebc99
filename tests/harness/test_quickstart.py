"""The README's picture."""

import numpy as np

from experiments.artifacts import quickstart


def record(path, errors):
  """Writes what the picture reads; of four examples the least sure is wrong."""
  path.mkdir()
  rows = [f'{r},{error}' for r, error in enumerate(errors)]
  (path / 'metrics.csv').write_text('\n'.join(['round,ece', *rows, '']))
  unsure = np.array([0.1, 0.2, 0.3, 0.9])
  measures = ('normalized_entropy', 'aleatoric_uncertainty',
              'epistemic_uncertainty')  # fmt: skip
  np.savez(
    path / 'predictions.npz',
    labels=np.array([0, 0, 0, 1]),
    probs=np.array([[0.9, 0.1]] * 4),
    **dict.fromkeys(measures, unsure),
  )
  return path


def test_four_rules_in_two_panels(tmp_path):
  runs = {
    name: record(tmp_path / rule, (0.3, 0.1))
    for name, rule in quickstart.RULES.items()
  }
  figure = quickstart.draw(runs)
  left, right = figure.axes
  for line in left.lines:
    retained, accuracy = line.get_data()
    assert (retained[-1], accuracy[-1]) == (1, 0.75)
    np.testing.assert_array_equal(accuracy[retained <= 0.75], 1)
  for line in right.lines:
    np.testing.assert_array_equal(line.get_ydata(), (0.3, 0.1))
  assert len(left.lines) == len(right.lines) == 4
  assert right.get_ylim()[0] == 0
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.texts] == [*quickstart.RULES]
