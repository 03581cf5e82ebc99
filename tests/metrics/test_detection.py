"""Detection by hand, and against scikit-learn with ties."""

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from bfl_tf import metrics


def test_by_hand():
  found = metrics.detection([0.1, 0.2, 0.6], [0.5, 0.9])
  # Of six pairs one is the wrong way round.
  assert found.auroc == pytest.approx(5 / 6)
  # From the top: out, in, out.
  assert found.aupr_out == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
  # All of out are above 0.5, and with them one of three.
  assert found.fpr_at_95 == pytest.approx(1 / 3)


@pytest.mark.parametrize('decimals', [1, 8])
def test_as_scikit_learn_has_it(decimals):
  rng = np.random.default_rng(0)
  inside = rng.normal(0, 1, 400).round(decimals)
  outside = rng.normal(1, 2, 300).round(decimals)
  values, is_out = np.concatenate([inside, outside]), np.arange(700) >= 400
  found = metrics.detection(inside, outside)
  auroc = sklearn_metrics.roc_auc_score(is_out, values)
  aupr_out = sklearn_metrics.average_precision_score(is_out, values)
  aupr_in = sklearn_metrics.average_precision_score(~is_out, -values)
  rates = sklearn_metrics.roc_curve(is_out, values, drop_intermediate=False)
  fpr = rates[0][np.argmax(rates[1] >= 0.95)]
  assert found == pytest.approx((auroc, aupr_out, aupr_in, fpr), rel=1e-12)
