"""Devices, compiled training loop, optimizers, schedules and prediction."""

from bfl_tf.training.chain import Chain
from bfl_tf.training.devices import (
  bounded,
  configure,
  DISTRIBUTIONS,
  has_mixed_precision,
  in_parallel,
  strategies,
)
from bfl_tf.training.first_order import Adam, SGD
from bfl_tf.training.hooks import trace, TraceResult
from bfl_tf.training.inference import Inference, OptimizerInference, resolve
from bfl_tf.training.ivon import IVON
from bfl_tf.training.langevin import PSGLD, SGLD
from bfl_tf.training.laplace import Laplace, MOST_WEIGHTS
from bfl_tf.training.likelihoods import (
  Categorical,
  Gaussian,
  Likelihood,
  LIKELIHOODS,
)
from bfl_tf.training.objectives import (
  Flipout,
  LayerObjective,
  Objective,
  Prior,
  VARIANTS,
)
from bfl_tf.training.optimizer import Optimizer
from bfl_tf.training.optimizers import OPTIMIZERS
from bfl_tf.training.prediction import (
  Mixtures,
  predict,
  predict_linearized,
  predict_members,
  recalibrate,
)
from bfl_tf.training.predictive import Predictive
from bfl_tf.training.predictor import Inputs, Predictor
from bfl_tf.training.schedules import Schedule, SCHEDULES, Steps
from bfl_tf.training.tasks import (
  any_rows,
  ClientTask,
  Data,
  mismatch,
  Result,
  Step,
  Trace,
  TrainingConfig,
)
from bfl_tf.training.worker import Worker
