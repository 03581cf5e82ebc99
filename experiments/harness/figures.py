"""Figures of papers, drawn by `bfl_tf.plots` from finished runs."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
import textwrap

from bfl_tf import files, plots
from experiments.harness import cells as cells_lib

BAND = 'mean, and a band from the lowest to the highest'
_ACCURACY = cells_lib.final('accuracy')


@dataclasses.dataclass(frozen=True)
class Figure:
  """A published figure.

  Attributes:
    panels: Cells by panel and by name in the legend.
    draw: Function from lists of runs by name to a `matplotlib.figure.Figure`;
      or one such function for each panel.
  """

  paper: cells_lib.Paper
  name: str
  title: str
  panels: Mapping[str, Mapping[str, cells_lib.Cell]]
  draw: Callable | Mapping[str, Callable]
  seeds: Mapping[str, Sequence[int]] = dataclasses.field(
    default_factory=cells_lib.SEEDS.copy
  )
  of_seeds: str = BAND

  @property
  def cells(self) -> list[cells_lib.Cell]:
    """All cells, each once."""
    return list(
      dict.fromkeys(c for panel in self.panels.values() for c in panel.values())
    )

  def drawn(self, panel: str, scale: str, root: pathlib.Path):
    """Returns the figure, or None without finished runs; and missing runs."""
    done, missing = {}, []
    for name, cell in self.panels[panel].items():
      tasks = cell.tasks(scale, self.seeds[scale], root)
      ended = [task for task in tasks if task.is_done]
      if ended:
        done[name] = ended
        seeds = [f'{task.seed}' for task in tasks if task not in ended]
        missing += [f'{name} seed {seed}' for seed in seeds]
      else:
        missing.append(name)
    if not done:
      return None, missing
    runs = {n: [task.directory for task in ended] for n, ended in done.items()}
    draw = self.draw if callable(self.draw) else self.draw[panel]
    drawn = draw(runs)
    tasks = [task for ended in done.values() for task in ended]
    _add_caption(drawn, self, tasks, self.of_seeds)
    return drawn, missing

  def write(self, scale: str, root: pathlib.Path) -> tuple[str, int]:
    """Draws the panels whose runs have ended; returns text and failures."""
    folder = root / scale / self.paper.name
    lines = [f'{self.paper.name}/{self.name} at {scale} scale: {self.title}.']
    failed = 0
    for panel in self.panels:
      try:
        drawn, missing = self.drawn(panel, scale, root)
      except (OSError, ValueError) as error:
        lines.append(f'- {panel}: cannot be drawn: {error}')
        failed += 1
        continue
      if drawn is None:
        lines.append(f'- {panel}: no finished run')
        continue
      path = folder / f'{self.name}_{panel}.png'
      with files.replacing(path) as new:
        drawn.savefig(new, dpi=150, format='png')
      without = f' (without {", ".join(missing)})' if missing else ''
      lines.append(f'- {panel}: {path}{without}')
    return '\n'.join(lines), failed


def sweep(
  paper: cells_lib.Paper,
  name: str,
  title: str,
  panels: Mapping[str, Mapping[str, Mapping[float, cells_lib.Cell]]],
  xlabel: Mapping[str, str],
  seeds: Mapping[str, Sequence[int]] = cells_lib.SEEDS,
) -> Figure:
  """Returns a figure of accuracy against a setting.

  Args:
    panels: Cells by panel, by line and by value of the setting.
    xlabel: Label of the setting, by panel.
  """
  points = {
    panel: {
      f'{line} at {x:g}': cell
      for line, values in lines.items()
      for x, cell in values.items()
    }
    for panel, lines in panels.items()
  }
  draw = {p: functools.partial(_swept, text) for p, text in xlabel.items()}
  return Figure(paper, name, title, points, draw, seeds)


def _swept(xlabel, runs):
  lines = {}
  for point, directories in runs.items():
    line, _, x = point.rpartition(' at ')
    scores = [100 * _ACCURACY(directory) for directory in directories]
    # A run that diverged has no score.
    if scores := [score for score in scores if math.isfinite(score)]:
      lines.setdefault(line, {})[float(x)] = scores
  return plots.sweep(lines, xlabel, cells_lib.ACCURACY.label)


def _add_caption(drawn, figure, tasks, of_seeds=BAND):
  """Adds a caption, because a figure is often seen without its folder."""
  seeds = sorted({task.seed for task in tasks})
  data = dict.fromkeys(task.config.dataset for task in tasks)
  lines = [
    f'{figure.paper.citation or "ours"}, {figure.name}: {figure.title}',
    f'{" or ".join(data)}; {tasks[0].scale} scale; '
    f'seeds {", ".join(map(str, seeds))}{f": {of_seeds}" if seeds[1:] else ""}',
  ]
  if tasks[0].scale == 'smoke':
    lines.append(cells_lib.SMOKE)
  # About 15 characters of this size fit in an inch.
  width = int(15 * drawn.get_figwidth())
  wrapped = ['\n'.join(textwrap.wrap(line, width)) for line in lines]
  drawn.suptitle('\n'.join(wrapped), fontsize=9)
