"""The round loop, its engines, and the client and server side of a method."""

from bfl_tf.federation.client import Broadcast, client_task, train_client
from bfl_tf.federation.engine import Engine, OtherSideError
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.loop import federated_round, initial_state
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import Round, State
from bfl_tf.federation.stopping import (
  ComponentError,
  MachineError,
  StoppedError,
  Termination,
  TooFewClientsError,
)
