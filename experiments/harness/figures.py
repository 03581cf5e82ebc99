"""A figure is panels of runs, drawn by `bfl_tf.plots` from their records."""

from collections.abc import Callable, Mapping
import dataclasses
import pathlib

from experiments.harness import cells as cells_lib


@dataclasses.dataclass(frozen=True)
class Figure:
  """A published figure.

  Attributes:
    paper: whose.
    name: `figure3`.
    title: what it shows.
    panels: by panel, cells by the name that the legend gives them.
    draw: runs by name -> `matplotlib.figure.Figure`.
    seeds: how many, by scale; the first is drawn.
  """

  paper: cells_lib.Paper
  name: str
  title: str
  panels: Mapping[str, Mapping[str, cells_lib.Cell]]
  draw: Callable
  seeds: Mapping[str, int]

  @property
  def cells(self) -> list[cells_lib.Cell]:
    """All of them, once."""
    return list(
      dict.fromkeys(c for panel in self.panels.values() for c in panel.values())
    )


def write(figure: Figure, scale: str, root: pathlib.Path) -> str:
  """Draws the panels whose runs have ended; returns what was written."""
  folder = root / scale / figure.paper.name
  lines = [
    f'{figure.paper.name}/{figure.name} at {scale} scale: {figure.title}.'
  ]
  for panel, named in figure.panels.items():
    tasks = {
      name: cells_lib.Task(cell, scale, 0, root) for name, cell in named.items()
    }
    runs = {n: task.directory for n, task in tasks.items() if task.is_done}
    missing = [name for name in tasks if name not in runs]
    if not runs:
      lines.append(f'- {panel}: nothing ran')
      continue
    path = folder / f'{figure.name}_{panel}.png'
    temporary = path.with_name(f'.{path.name}')
    figure.draw(runs).savefig(temporary, dpi=150, format='png')
    temporary.replace(path)
    without = f' (without {", ".join(missing)})' if missing else ''
    lines.append(f'- {panel}: {path}{without}')
  return '\n'.join(lines)
