"""The experiment on bad clients changes nothing but what its names say."""

from bfl_tf import attacks
from experiments.artifacts import outliers
from experiments.harness import cells

PLAIN = cells.Cell(outliers.PAPER, 'x', {}).config('laptop', 0)


def test_a_cell_is_the_preset_but_for_its_row_and_column():
  (table,) = outliers.TABLES
  assert len(table.grid) == 9 * 10
  for cell in table.grid.values():
    config = cell.config('laptop', 0)
    same = config.replace(attack=(), pooling='nwa', weighting='size')
    assert same.replace(settings={}) == PLAIN


def test_the_bad_clients_are_the_same_under_every_rule():
  grid = outliers.TABLES[0].grid
  for title, kind in (
    ('flipped labels', 'label_flip'), ('scaled by -5', 'scaled_update'),
    ('random model', 'random_model'),
  ):  # fmt: skip
    for fraction, many in ((0.1, 2), (0.2, 4), (0.4, 8)):
      config = grid['Median', f'{title}, {fraction:.0%}'].config('laptop', 0)
      assert config.get(f'{kind}.fraction') == fraction
      assert len(attacks.bad_clients(config.seed, 20, fraction)) == many
