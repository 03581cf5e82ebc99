"""An entry of a table that is the best of several cells.

The choice must be made on validation data: a maximum over test scores is none
of a method that anybody could run.
"""

from collections.abc import Mapping
import dataclasses
import math
import pathlib

from experiments.harness import cells as cells_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Best:
  """Several cells, of which the best is read.

  Attributes:
    candidates: cells by name.
    by: what is largest, in the mean over seeds.
  """

  candidates: Mapping[str, cells_lib.Cell]
  by: cells_lib.Measure

  def choose(
    self, scale: str, seeds: int, root: pathlib.Path
  ) -> tuple[cells_lib.Cell | None, str]:
    """Returns the best cell, or None, and how it was found.

    A cell one of whose seeds has not ended well is none to choose.
    """
    means = {}
    for name, cell in self.candidates.items():
      tasks = [cells_lib.Task(cell, scale, s, root) for s in range(seeds)]
      values = [self.by(task) for task in tasks if task.is_done]
      if len(values) == seeds and all(map(math.isfinite, values)):
        means[name] = sum(values) / seeds
    found = f'of {len(means)} of {len(self.candidates)}'
    if not means:
      return None, f'none {found}'
    name = max(means, key=means.__getitem__)
    return self.candidates[name], f'{name}, the best {found} by {self.by.label}'
