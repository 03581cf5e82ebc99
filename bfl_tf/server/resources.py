"""Workers and data for server parts that train, predict or draw samples."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools

import numpy as np

from bfl_tf import data, seeds, training, weights
from bfl_tf.server import posteriors


@dataclasses.dataclass(frozen=True, eq=False)
class Resources:
  """Workers and data: `parts.ServerContext.tools`.

  Attributes:
    workers: Workers that train clients and predict; `Worker.other` creates
      workers for other trainings.
    num_classes: Number of classes; 0 for numeric labels.
    num_mc_samples: Number of Monte Carlo samples per model; 1 if no weight is
      random.
    server_indices: `[num_server_examples]` int32, indices into training data.
    objective: Objective with the prior and the weight of the KL term.
    recalibrates: Whether `measured` re-estimates the buffers of teachers and
      students, like those of pooled models.
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
  def likelihood(self) -> training.Likelihood:
    """Distribution of the labels, given the outputs of the network."""
    return self.workers[0].likelihood

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
    """`[num_examples]`; None if unknown, or of other classes."""
    return self._server_data[1]

  def mixtures(
    self,
    groups: Mapping[str, Sequence[weights.Weights]],
    betas: Mapping[str, float],
    seed: np.ndarray,
  ) -> tuple[training.Mixtures, int]:
    """Returns the finite predictions on U, and the number of other models."""
    mixtures, rejected = training.Mixtures(self.likelihood, betas), 0
    for name, member in training.predict_members(
      self.workers,
      groups,
      self.server_images,
      seed=seed,
      num_samples=self.num_mc_samples,
    ):
      rejected += not mixtures.add(name, member)
    return mixtures, rejected

  def measured(
    self, model: weights.Weights, seed: np.ndarray
  ) -> weights.Weights:
    """Returns a model with buffers re-estimated on the server's examples."""
    return training.recalibrate(
      self.workers, model, self.server_images, seed=seed
    )

  def recalibrated(
    self, group: Sequence[weights.Weights], seed: np.ndarray
  ) -> Sequence[weights.Weights]:
    """Returns a group with re-estimated buffers if `recalibrates` is set."""
    if not self.recalibrates:
      return group
    # Not when a model is read, because the workers are predicting then.
    buffers = [
      self.measured(model, seeds.child(seed, index)).buffers
      for index, model in enumerate(group)
    ]
    return posteriors.Models(
      len(group),
      lambda index: group[index]._replace(buffers=buffers[index]),
      posteriors.shares_of(group),
    )
