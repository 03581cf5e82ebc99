"""What a run has for the stages that train, predict or draw."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import tf_keras

from bfl_tf import datasets, training
from bfl_tf import weights as weights_lib


class Resources(Protocol):
  """Each of these is made when a stage first reads it, and kept.

  A stage asks for all of them by an argument `resources`.
  """

  @property
  def layout(self) -> weights_lib.Layout:
    """Of the model."""

  @property
  def build_model(self) -> Callable[..., tf_keras.Model]:
    """From a `seed` to the network with its initial weights."""

  @property
  def num_classes(self) -> int:
    """Length of the logits."""

  @property
  def num_mc_samples(self) -> int:
    """Predictions of one model; 1 where no weight is random."""

  @property
  def workers(self) -> Sequence[training.Worker]:
    """Those that train clients; they predict too."""

  @property
  def server_workers(self) -> list[training.Worker]:
    """Without client parts; the first trains, all of them validate."""

  @property
  def server_indices(self) -> np.ndarray:
    """`[num_server_examples]` int32 into the training data."""

  @property
  def validation(self) -> datasets.Split:
    """Held-out examples, for early stopping."""

  @property
  def server_images(self) -> np.ndarray:
    """U, `[num_examples, ...]` raw examples."""

  @property
  def server_labels(self) -> np.ndarray | None:
    """`[num_examples]` int32; None if not known, or of other classes."""

  @property
  def recalibrated(self) -> Callable | None:
    """(model, seed) -> model with batch normalization's statistics measured.

    None leaves them as they were averaged, sampled or trained.
    """

  def student(self, distil: Any) -> training.Worker:
    """Returns a worker on the server's examples, with targets as labels."""
