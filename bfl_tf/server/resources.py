"""Workers and data for stages that train, predict or draw."""

from collections.abc import Callable, Sequence
import dataclasses
import functools

import numpy as np

from bfl_tf import data, training, weights


@dataclasses.dataclass(frozen=True, eq=False)
class Resources:
  """A stage is given all of them by an argument `resources`.

  Attributes:
    workers: Workers that train clients; they also predict, and make workers for
      other trainings (`Worker.other`).
    num_classes: length of the logits.
    num_mc_samples: predictions of one model; 1 where no weight is random.
    server_indices: `[num_server_examples]` int32 into the training data.
    validation: held-out examples, for early stopping.
    objective: The prior and the weight of the KL term.
    recalibrates: whether teachers and students are measured as pooled models
      are, by `measured`.
    load_server_data: Function that loads `server_images` and `server_labels`.
  """

  workers: Sequence[training.Worker]
  num_classes: int
  num_mc_samples: int
  server_indices: np.ndarray
  validation: data.Split
  objective: training.Objective
  recalibrates: bool
  load_server_data: Callable[[], tuple[np.ndarray, np.ndarray | None]]

  @property
  def layout(self) -> weights.Layout:
    """Layout of the model."""
    return self.workers[0].layout

  @functools.cached_property
  def _server_data(self) -> tuple[np.ndarray, np.ndarray | None]:
    return self.load_server_data()

  @property
  def server_images(self) -> np.ndarray:
    """U, `[num_examples, ...]` raw examples."""
    return self._server_data[0]

  @property
  def server_labels(self) -> np.ndarray | None:
    """`[num_examples]` int32; None if not known, or of other classes."""
    return self._server_data[1]

  def require_server_images(self, flag: str) -> None:
    """Raises a ValueError if the server has no examples."""
    if not len(self.server_images):
      raise ValueError(
        f'{flag} needs examples on the server: set --num_server_examples or '
        '--server_dataset.'
      )

  def measured(
    self, model: weights.Weights, seed: np.ndarray
  ) -> weights.Weights:
    """Returns a model with the buffers that belong to its weights."""
    return training.recalibrate(
      self.workers, model, self.server_images, seed=seed
    )
