"""Flipout clients (Fischer et al. 2024) with each pooling rule of the paper."""

from bfl_tf import parts, training
from bfl_tf.methods.method import Method
from bfl_tf.server import pooling


def flipout(rule: parts.Pool) -> Method:
  """Returns the method with a pooling rule."""
  return Method(
    (rule,),
    training.Flipout(prior_scale=1.0, temperature=0.01),
    tune={'flipout.temperature': 'log:0.001:1'},
    help='Flipout clients (Fischer et al. 2024), pooled by the rule '
    f'{type(rule).__name__}: {(type(rule).__doc__ or "").splitlines()[0]}',
  )


flipout_nwa = flipout(pooling.NaiveWeightedAverage())
flipout_ws = flipout(pooling.WeightedSum())
flipout_lp = flipout(pooling.LinearPooling())
flipout_llp = flipout(pooling.LogLinearPooling())
flipout_conflation = flipout(pooling.Conflation())
flipout_wc = flipout(pooling.WeightedConflation())
