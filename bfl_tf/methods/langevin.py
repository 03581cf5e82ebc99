"""Methods with Langevin dynamics: samples of a chain of global models."""

from bfl_tf.methods.method import Method

_FLAGS = {
  'variant': 'deterministic',
  'client_parts': 'langevin',
  'langevin.prior_scale': 1,
  'langevin.temperature': 1,
  'client_optimizer': 'sgd',
  'client_learning_rate': 0.1,
  'pooling': 'nwa',
  'refine': 'keep_samples',
  'keep_samples.number': 10,
  'keep_samples.burn_in': 0.5,
  'predictor': 'chain',
}

fa_ld = Method(
  _FLAGS,
  tune={
    'langevin.temperature': 'log:0.001:1',
    'keep_samples.number': 'uniform:2:5',
  },
  help='FA-LD (Deng et al. 2021): the clients train by Langevin dynamics, and '
  'the run predicts with the global models of its last rounds. No noise is '
  'shared.',
)

dsgld = Method(
  {**_FLAGS, 'weighting': 'equal'},
  tune={'langevin.temperature': 'log:0.001:1'},
  needs={'clients_per_round': 1},
  help='DSGLD (Ahn et al. 2014): one chain of Langevin dynamics, which moves '
  'to another client in each round. The run predicts with the samples of its '
  'last rounds.',
)
