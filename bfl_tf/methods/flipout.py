"""Flipout clients (Fischer et al. 2024) with each pooling rule of the paper."""

from bfl_tf.methods.method import Method

_RULES = {
  'nwa': 'naive weighted averaging (Eq. 10)',
  'ws': 'the weighted sum (Eq. 11)',
  'lp': 'linear pooling (Eq. 13 and 14)',
  'llp': 'log-linear pooling (Eq. 16 with W in place of the largest weight)',
  'conflation': 'conflation (Eq. 15)',
  'wc': 'weighted conflation (Eq. 16)',
}


def flipout(rule: str) -> Method:
  """Returns the method with a pooling rule."""
  return Method(
    {
      'variant': 'flipout',
      'flipout.prior_scale': 1,
      'flipout.temperature': 0.01,
      'pooling': rule,
    },
    tune={'flipout.temperature': 'log:0.001:1'},
    help=f'Flipout clients (Fischer et al. 2024), pooled by {_RULES[rule]}.',
  )


flipout_nwa = flipout('nwa')
flipout_ws = flipout('ws')
flipout_lp = flipout('lp')
flipout_llp = flipout('llp')
flipout_conflation = flipout('conflation')
flipout_wc = flipout('wc')
