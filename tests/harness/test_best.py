"""A table's entry that is the best of several cells, by validation data."""

from harness import made_runs

from experiments.harness import best, cells, tables

VALIDATION = cells.Measure('Validation (%)', cells.final('validation_accuracy'))
CELLS = {name: made_runs.cell(name, num_rounds=n) for n, name in
         enumerate('abc', start=1)}  # fmt: skip


def finish(root, name, seed, test, validation):
  task = cells.Task(CELLS[name], 'smoke', seed, root)
  made_runs.finish(task, test, validation_accuracy=validation)


def table(seeds=2):
  grid = {('best', 'iid'): best.Best(CELLS, VALIDATION)}
  return tables.Table(
    made_runs.PAPER, 'table2', 'a title', grid, (cells.ACCURACY,),
    {'smoke': seeds}, {'smoke': 'A note.'},
  )  # fmt: skip


def test_is_chosen_by_validation_and_not_by_test_scores(tmp_path):
  for name, test, validation in (
    ('a', 0.9, 0.5), ('b', 0.6, 0.7), ('c', 0.8, 0.6),
  ):  # fmt: skip
    for seed in range(2):
      finish(tmp_path, name, seed, test, validation)
  (entry,) = table().entries('smoke', tmp_path)
  assert entry.mean == 60 and entry.seeds == 2
  assert entry.picked == 'b, the best of 3 of 3 by Validation (%)'
  assert entry.picked in tables.write(table(), 'smoke', tmp_path)


def test_a_cell_that_lacks_a_seed_or_diverged_is_none_to_choose(tmp_path):
  finish(tmp_path, 'a', 0, 0.9, 0.9)
  for seed, validation in enumerate((float('nan'), 0.9)):
    finish(tmp_path, 'b', seed, 0.9, validation)
  (entry,) = table().entries('smoke', tmp_path)
  assert (entry.mean, entry.picked) == (None, 'none of 0 of 3')
  for seed in range(2):
    finish(tmp_path, 'c', seed, 0.4, 0.3)
  (entry,) = table().entries('smoke', tmp_path)
  assert entry.mean == 40
