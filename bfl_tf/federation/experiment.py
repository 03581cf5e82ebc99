"""The plan, the data and the workers of a run, built from its config."""

import dataclasses
import functools
import secrets
from typing import Any

import numpy as np

from bfl_tf import data, server, training, weights
from bfl_tf.config.config import Config
from bfl_tf.declare import user_code
from bfl_tf.federation import client, facts, run_data
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State


@dataclasses.dataclass(frozen=True)
class Experiment:
  """A plan with its data and its workers.

  Attributes:
    private_seed: Seed of the noise and of the samples of clients under privacy;
      by default, from entropy of the operating system.
  """

  plan: Plan
  dataset: data.Dataset
  partition: list[np.ndarray]
  server_indices: np.ndarray
  workers: list[training.Worker]
  tools: server.Resources
  private_seed: int = dataclasses.field(
    default_factory=lambda: int.from_bytes(secrets.token_bytes(32), 'big')
  )

  @property
  def config(self) -> Config:
    """Config of the run."""
    return self.plan.config

  def broadcast(self, state: State) -> client.Broadcast:
    """Returns the broadcast of the round after `state`."""
    # Under privacy, the exact number of all examples would be a message.
    is_private = self.plan.privacy.is_private
    return client.Broadcast(
      state.round,
      state.model,
      self.plan.shared(state.slots),
      0 if is_private else sum(map(len, self.partition)),
    )

  def build_model(self) -> Any:
    """Returns the network with its initial weights, a `tf_keras.Model`."""
    shape = self.workers[0].inputs.shape
    return self.plan.network(shape, self.dataset.num_classes)()

  def initial_weights(self) -> weights.Weights:
    """Returns the weights before the first round; the seed determines them."""
    inference = self.plan.inference
    variables = weights.Variables.of(self.build_model(), inference.scope)
    start = weights.Weights(*map(np.asarray, weights.read(variables)))
    return inference.initial(start)

  def personal_rows(self, split: str = 'test') -> dict[int, np.ndarray]:
    """Returns the rows of a split that score each honest client's model."""
    honest = [
      client
      for client in range(len(self.partition))
      if not self.plan.attacks_of(client)
    ]
    return run_data.personal_rows(
      self.dataset, split, self.partition, honest, self.config.seed_of_data
    )

  @classmethod
  def build(
    cls,
    config: Config,
    built: dict[Any, Any] | None = None,
    dataset: data.Dataset | None = None,
    plan: Plan | None = None,
  ) -> 'Experiment':
    """Builds the experiment."""
    built = {} if built is None else built
    plan = plan or Plan.of(config)
    dataset = dataset or run_data.load(config, built)
    partition, server_indices = run_data.partition_dataset(config, dataset)
    workers = plan.workers(dataset, built)
    plan = plan.with_layout(workers[0].layout)
    tools = server.Resources(
      workers=workers,
      num_classes=dataset.num_classes,
      num_mc_samples=plan.inference.num_layer_samples(config.num_mc_samples),
      server_indices=server_indices,
      validation=dataset.validation,
      objective=plan.objective,
      recalibrates=config.batch_norm == 'recalibrate',
      load_server_data=functools.partial(
        run_data.of_server, config, dataset, server_indices, built
      ),
    )
    # Traces the hooks of client parts, so that they fail before any round.
    flag = f'--client_parts={",".join(config.client_parts)}'
    traced = user_code.call(flag, lambda: plan.traced).result
    facts.check(
      facts.Facts(
        plan,
        trainings=plan.trainings(partition),
        tools=tools,
        model=traced.model,
        extras=tuple(traced.extras),
      )
    )
    experiment = cls(plan, dataset, partition, server_indices, workers, tools)
    if config.engine == 'local' and (
      config.personal_scores or any(p.has('personal') for p in plan.locals)
    ):
      experiment.personal_rows()  # A client without test examples is an error.
    return experiment


def build(
  config: Config,
  built: dict[Any, Any] | None = None,
  dataset: data.Dataset | None = None,
) -> Experiment:
  """Configures the devices of this process, then builds an `Experiment`."""
  training.configure(
    config.num_workers, config.deterministic, config.clients_per_device
  )
  return Experiment.build(config, built, dataset)
