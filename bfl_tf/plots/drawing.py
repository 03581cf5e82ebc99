"""All figures of one run."""

import pathlib

from bfl_tf import files, run_files
from bfl_tf.plots import (
  calibration,
  canvas,
  clients,
  curves,
  recorded,
)


def draw_run(
  run_dir: recorded.RunDir, num_bins: int = 15
) -> list[pathlib.Path]:
  """Writes every figure of a run as a PNG file under `run_dir/plots`.

  All figures are drawn before the first is written, and writes are atomic.
  """
  figures = {
    name: curves.learning_curve(run_dir, name)
    for name in curves.scores_of(run_dir)
  }
  if recorded.is_numeric(run_dir):
    figures |= {
      'predicted': calibration.predicted_numbers(run_dir),
      'pit': calibration.pit_histogram(run_dir, num_bins),
    }
  else:
    figures |= {
      'reliability': calibration.reliability_diagram(run_dir, num_bins),
      'confidence': calibration.confidence_histogram(run_dir, num_bins),
      'retention': curves.retention(run_dir),
    }
  figures['partition'] = clients.partition(run_dir)
  folder = pathlib.Path(run_dir) / run_files.PLOTS
  folder.mkdir(exist_ok=True)
  paths = [folder / f'{name}.png' for name in figures]
  for path, figure in zip(paths, figures.values()):
    with files.replacing(path) as new:
      figure.savefig(new, format='png', dpi=canvas.DPI)
  return paths
