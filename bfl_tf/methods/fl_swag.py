"""Methods with SWAG posteriors of the clients."""

from bfl_tf.methods.method import Method

swag = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'swag',
    'swag.burn_in': 0.5,
    'swag.period': 1,
    'swag.rank': 5,
    'pooling': 'nwa',
  },
  help='SWAG (Maddox et al. 2019) on each client in every round, averaged.',
)

fl_swag = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'swag',
    'swag.burn_in': 0.5,
    'swag.period': 2,
    'swag.rank': 10,
    'swag.min_scale': 0.003,
    'pooling': 'product',
  },
  needs={'num_rounds': 1},
  help="FL-SWAG (Makni 2022): one round; the product of the clients' SWAG "
  'posteriors is sampled for predictions.',
)
