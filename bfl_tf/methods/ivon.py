"""IVON clients (Shen et al. 2024), averaged."""

from bfl_tf import training
from bfl_tf.methods.method import Method

ivon = Method(
  optimizer=training.IVON(
    initial_scale=0.02, prior_scale=1.0, temperature=0.01
  ),
  learning_rate=0.003,
  tune={
    'ivon.temperature': 'log:0.001:1',
    'ivon.initial_scale': 'log:0.003:0.05',
  },
  help=__doc__,
)
