# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Out-of-distribution detection
#
# Clients learn the digits 0 to 4. Then the model predicts inputs that it has
# never seen: the digits 5 to 9 (*near*), and digits with shuffled pixels
# (*far*). Is its uncertainty higher for them?

# %%
import logging
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from bfl_tf.analysis import uncertainty
from bfl_tf.analysis import loading
import numpy as np
import pandas as pd
from sklearn import datasets

# A model after another is compiled anew; TensorFlow would warn of it.
logging.getLogger('tensorflow').setLevel('ERROR')

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'

# %% [markdown]
# Scikit-learn's digits have values up to 16. Scaled to 255, they are images to
# which corruptions can be applied.

# %%
digits = datasets.load_digits()
images = (digits.images * 15.9).astype(np.uint8)[..., None]
known = digits.target < 5
rng = np.random.default_rng(0)
shuffled = images[known].reshape(-1, 64)[:, rng.permutation(64)]
OTHERS = [
  uncertainty.OutOfDistribution('near', '5 to 9', images[~known]),
  uncertainty.OutOfDistribution('far', 'shuffled', shuffled.reshape(-1, 8, 8, 1)),
]
scratch = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(scratch.name)
np.savez(FOLDER / 'low.npz', x=images[known], y=digits.target[known])

# %% [markdown]
# ## Three models
#
# A deterministic model, MC dropout, and a variational posterior, each pooled
# over the same five non-IID clients and trained with three seeds.

# %%
VARIANTS = ('deterministic', 'mc_dropout', 'flipout')
SEEDS = (0,) if SMOKE else (0, 1, 2)


def train(variant, seed):
  """Trains and opens a run of one variant."""
  settings = {'mlp.hidden_units': (64,), 'dirichlet.alpha': 0.5}
  if variant == 'flipout':
    settings |= {'flipout.prior_scale': 1, 'flipout.temperature': 0.003}
  config = bfl_tf.Config(
    dataset=str(FOLDER / 'low.npz'),
    partition='dirichlet',
    num_clients=5,
    calibration_fraction=0.25,
    variant=variant,
    num_rounds=2 if SMOKE else 12,
    local_epochs=5,
    client_learning_rate=0.003,
    seed=seed,
    settings=settings,
  )
  path = FOLDER / f'{variant}{seed}'
  bfl_tf.run(config, path, show_progress=False)
  return loading.load_run(path)


runs = {v: [train(v, seed) for seed in SEEDS] for v in VARIANTS}


def shown(table):
  """Mean ± standard error over seeds."""
  mean, error = table.mean().round(3), table.sem().round(3)
  return mean.astype(str) + ' ± ' + error.astype(str)


# %% [markdown]
# ## Out-of-distribution detection
#
# AUROC is the probability that an unknown image is more uncertain than a known
# one; 0.5 is chance. A deterministic model has no epistemic uncertainty,
# because it makes one prediction only.

# %%
rows = []
for variant, of_seeds in runs.items():
  for run in of_seeds:
    inside = run.trained.predict(run.test.x)
    for other in OTHERS:
      outside = run.trained.predict(other.x)
      for row in uncertainty.detection(inside, outside, other):
        rows.append({'variant': variant, **row})
detected = pd.DataFrame(rows).groupby(['distance', 'measure', 'variant'])
shown(detected.auroc).unstack()[list(VARIANTS)]

# %% [markdown]
# ## Selective prediction
#
# The error rate among the answered examples if the most uncertain ones are not
# answered.

# %%
bfl_tf.plots.retention(
  {v: [FOLDER / f'{v}{seed}' for seed in SEEDS] for v in VARIANTS}
)

# %% [markdown]
# ## Calibration
#
# Is a temperature, fitted on held-out examples, as good as a posterior? The
# column `overconfidence` is the mean confidence minus the accuracy. Fitted on
# 180 examples, the temperature of the deterministic model is 1.5, and it gains
# 0.003 nats, less than the standard error. Dropout and Flipout are already less
# confident and keep a temperature of about 1.

# %%
rows = []
for variant, of_seeds in runs.items():
  for run in of_seeds:
    _, held = uncertainty.temperature_data(run)
    found = run.trained.predict(run.test.x)
    fitted = uncertainty.fitted_temperature(run.trained, held)
    for temperature in (1.0, fitted):
      row = uncertainty.calibration(found, run.test.y, temperature)
      rows.append({'variant': variant, 'fitted': temperature != 1, **row})
calibrated = pd.DataFrame(rows).groupby(['variant', 'fitted'])
pd.DataFrame({name: shown(calibrated[name]) for name in [*rows[0]][2:]})

# %% [markdown]
# ## Corrupted images

# %%
run = runs['flipout'][0]
bfl_tf.plots.corruption(
  list(uncertainty.corrupted(run.trained, run.test, 10, seed=0))
)

# %% [markdown]
# ## Conclusion
#
# On these digits entropy detects the digits 5 to 9 about equally well for all
# three models:
#
# | | AUROC by entropy | calibration error |
# |---|---|---|
# | deterministic | 0.900 ± 0.014 | 0.018 ± 0.003 |
# | MC dropout | 0.914 ± 0.010 | |
# | Flipout | 0.900 ± 0.007 | 0.027 ± 0.003 |
#
# Epistemic uncertainty alone is not better than entropy. The posterior's
# advantage is a temperature of about 1 without fitting; its calibration error
# is not lower.
#
# `bfl-tf uncertainty --run=DIR --near=... --far=...` does all this for any
# finished run: [your own data](../docs/your_data.md#evaluate-uncertainty-and-out-of-distribution-detection).
