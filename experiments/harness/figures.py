"""A figure is panels of runs, drawn by `bfl_tf.plots` from their records."""

from collections.abc import Callable, Mapping
import dataclasses
import math
import pathlib

from bfl_tf import plots
from experiments.harness import cells as cells_lib


@dataclasses.dataclass(frozen=True)
class Figure:
  """A published figure.

  Attributes:
    paper: whose.
    name: `figure3`.
    title: what it shows.
    panels: by panel, cells by the name that the legend gives them.
    draw: runs by name -> `matplotlib.figure.Figure`; or one for each panel.
    seeds: how many, by scale; the first is drawn.
  """

  paper: cells_lib.Paper
  name: str
  title: str
  panels: Mapping[str, Mapping[str, cells_lib.Cell]]
  draw: Callable | Mapping[str, Callable]
  seeds: Mapping[str, int]

  @property
  def cells(self) -> list[cells_lib.Cell]:
    """All of them, once."""
    return list(
      dict.fromkeys(c for panel in self.panels.values() for c in panel.values())
    )

  def drawn(self, panel: str, scale: str, root: pathlib.Path):
    """Returns the panel's figure, or None if nothing ran; and what is missing.

    Raises:
      OSError: a run lacks what is drawn.
      ValueError: likewise.
    """
    tasks = {
      name: cells_lib.Task(cell, scale, 0, root)
      for name, cell in self.panels[panel].items()
    }
    runs = {n: task.directory for n, task in tasks.items() if task.is_done}
    draw = self.draw if callable(self.draw) else self.draw[panel]
    missing = [name for name in tasks if name not in runs]
    return (draw(runs) if runs else None), missing


@dataclasses.dataclass(frozen=True)
class Sweep:
  """A published figure of a score against a setting.

  Attributes:
    paper: whose.
    name: `figure2`.
    title: what it shows.
    panels: by panel and by line, cells by the setting's value.
    xlabel: what the setting is, by panel.
    seeds: how many, by scale; all are drawn.
    measure: the score.
  """

  paper: cells_lib.Paper
  name: str
  title: str
  panels: Mapping[str, Mapping[str, Mapping[float, cells_lib.Cell]]]
  xlabel: Mapping[str, str]
  seeds: Mapping[str, int]
  measure: cells_lib.Measure = cells_lib.ACCURACY

  @property
  def cells(self) -> list[cells_lib.Cell]:
    """All of them, once."""
    return list(
      dict.fromkeys(
        cell
        for panel in self.panels.values()
        for line in panel.values()
        for cell in line.values()
      )
    )

  def drawn(self, panel: str, scale: str, root: pathlib.Path):
    """As `Figure.drawn`."""
    lines: dict[str, dict[float, list[float]]] = {}
    missing = []
    for name, line in self.panels[panel].items():
      for x, cell in line.items():
        tasks = [
          cells_lib.Task(cell, scale, seed, root)
          for seed in range(self.seeds[scale])
        ]
        scores = [self.measure(task) for task in tasks if task.is_done]
        # A run that diverged has no score.
        values = [score for score in scores if math.isfinite(score)]
        if values:
          lines.setdefault(name, {})[x] = values
        else:
          missing.append(f'{name} at {x:g}')
    if not lines:
      return None, missing
    return plots.sweep(lines, self.xlabel[panel], self.measure.label), missing


def write(
  figure: Figure | Sweep, scale: str, root: pathlib.Path
) -> tuple[str, int]:
  """Draws the panels whose runs have ended.

  Returns:
    A line a panel, and how many could not be drawn although runs have ended.
  """
  folder = root / scale / figure.paper.name
  lines = [
    f'{figure.paper.name}/{figure.name} at {scale} scale: {figure.title}.'
  ]
  failed = 0
  for panel in figure.panels:
    try:
      drawn, missing = figure.drawn(panel, scale, root)
    except (OSError, ValueError) as error:
      lines.append(f'- {panel}: cannot be drawn: {error}')
      failed += 1
      continue
    if drawn is None:
      lines.append(f'- {panel}: nothing ran')
      continue
    path = folder / f'{figure.name}_{panel}.png'
    temporary = path.with_name(f'.{path.name}')
    drawn.savefig(temporary, dpi=150, format='png')
    temporary.replace(path)
    without = f' (without {", ".join(missing)})' if missing else ''
    lines.append(f'- {panel}: {path}{without}')
  return '\n'.join(lines), failed
