"""What a run has for the stages that train, predict or draw."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import tf_keras

from bfl_tf import datasets, training
from bfl_tf import weights as weights_lib


class ServerData(NamedTuple):
  """What the server has: raw examples, and their labels if it knows them.

  Attributes:
    images: U, `[num_examples, ...]`.
    labels: `[num_examples]` int32; None if not known, or of other classes.
  """

  images: np.ndarray
  labels: np.ndarray | None


@dataclasses.dataclass(frozen=True, eq=False)
class Resources:
  """A stage is given all of them by an argument `resources`.

  Attributes:
    layout: of the model.
    build_model: from a `seed` to the network with its initial weights.
    num_classes: length of the logits.
    num_mc_samples: predictions of one model; 1 where no weight is random.
    workers: those that train clients; they predict too.
    server_indices: `[num_server_examples]` int32 into the training data.
    validation: held-out examples, for early stopping.
    recalibrates: whether teachers and students are measured as pooled models
      are, by `measured`.
    student: from a `Distil` to a worker on the server's examples, with targets
      as labels.
    make_server_workers: see `server_workers`.
    load_server_data: see `server_images`.
  """

  layout: weights_lib.Layout
  build_model: Callable[..., tf_keras.Model]
  num_classes: int
  num_mc_samples: int
  workers: Sequence[training.Worker]
  server_indices: np.ndarray
  validation: datasets.Split
  recalibrates: bool
  student: Callable[[Any], training.Worker]
  make_server_workers: Callable[[], list[training.Worker]]
  load_server_data: Callable[[], ServerData]

  @functools.cached_property
  def server_workers(self) -> list[training.Worker]:
    """Without client parts; the first trains, all of them validate."""
    return self.make_server_workers()

  @functools.cached_property
  def _server_data(self) -> ServerData:
    return self.load_server_data()

  @property
  def server_images(self) -> np.ndarray:
    """See `ServerData`."""
    return self._server_data.images

  @property
  def server_labels(self) -> np.ndarray | None:
    """See `ServerData`."""
    return self._server_data.labels

  def measured(
    self, model: weights_lib.Weights, seed: np.ndarray
  ) -> weights_lib.Weights:
    """Returns a model with the buffers that belong to its weights."""
    return training.recalibrate(
      self.workers, model, self.server_images, seed=seed
    )
