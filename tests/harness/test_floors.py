"""What validation examples say of a floor under clients' scales."""

from bfl_tf import config as config_lib
from bfl_tf import runs as runs_lib
from experiments.artifacts.fl_swag import floors


def test_a_floor_below_all_scales_is_the_run_itself(tmp_path):
  config = config_lib.Config(
    dataset='toys:blobs', model='logistic', variant='deterministic',
    num_clients=3, num_rounds=1, local_epochs=4, batch_size=25,
    client_parts=('swag',), pooling='product', refine=('keep',),
    validation_split=0.2,
    settings={'swag.rank': 2, 'swag.period': 1, 'swag.min_scale': 1e-3},
  )  # fmt: skip
  run = runs_lib.Run(config, tmp_path / 'run', False, draw_plots=False)
  final = run.play()['final']
  found = floors.sweep(tmp_path / 'run')
  lowest, *_, highest = (found[f'{floor:g}'] for floor in floors.FLOORS)
  assert lowest['held'] == 0 and highest['held'] == 1
  assert lowest['nll'] == final['validation_nll'] != highest['nll']
