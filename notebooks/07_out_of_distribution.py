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
# # Out of distribution
#
# Clients learn the digits 0 to 4. Then the model is shown what it never saw: the
# digits 5 to 9, which are *near*, and digits whose pixels are shuffled, which are
# *far*. Does it know that it does not know?

# %%
import logging
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from bfl_tf.trained import doubts
from bfl_tf.trained import reopened
import numpy as np
import pandas as pd
from sklearn import datasets

# A model after another is compiled anew; TensorFlow would warn of it.
logging.getLogger('tensorflow').setLevel('ERROR')

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'

# %% [markdown]
# Scikit-learn's digits have values up to 16; stretched to 255 they are images as
# any other, which corruptions are made for.

# %%
digits = datasets.load_digits()
images = (digits.images * 15.9).astype(np.uint8)[..., None]
known = digits.target < 5
rng = np.random.default_rng(0)
shuffled = images[known].reshape(-1, 64)[:, rng.permutation(64)]
OTHERS = [
  doubts.Other('near', '5 to 9', images[~known]),
  doubts.Other('far', 'shuffled', shuffled.reshape(-1, 8, 8, 1)),
]
scratch = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(scratch.name)
np.savez(FOLDER / 'low.npz', x=images[known], y=digits.target[known])

# %% [markdown]
# ## Three ways to be uncertain
#
# A point, dropout that stays on, and a variational posterior, pooled over the
# same five non-IID clients.

# %%
VARIANTS = ('deterministic', 'mc_dropout', 'flipout')


def train(variant):
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
    settings=settings,
  )
  bfl_tf.run(config, FOLDER / variant, show_progress=False)
  return reopened.reopen(FOLDER / variant)


runs = {variant: train(variant) for variant in VARIANTS}

# %% [markdown]
# ## Telling others
#
# AUROC: the chance that an unknown image is more uncertain than a known one; 0.5
# is no knowledge. A point has no epistemic uncertainty: there is one answer only.

# %%
rows = []
for variant, run in runs.items():
  inside = run.trained.predict(run.test.x)
  for other in OTHERS:
    outside = run.trained.predict(other.x)
    for row in doubts.detection(inside, outside, other):
      rows.append({'variant': variant, **row})
detected = pd.DataFrame(rows)
detected.pivot_table(
  index=['distance', 'measure'], columns='variant', values='auroc'
)[list(VARIANTS)].round(3)

# %% [markdown]
# ## Staying silent
#
# Errors among the answers, when the most uncertain are left unanswered.

# %%
bfl_tf.plots.retention({name: FOLDER / name for name in VARIANTS})

# %% [markdown]
# ## Are probabilities frequencies?
#
# And would one number, a temperature fitted on held-out examples, do as well? The
# gap is confidence less accuracy: above 0 a model is overconfident. Here one number
# is little: fitted on 180 examples it makes the test examples likelier for the point,
# and the other two, which hold back already, worse by every error.

# %%
rows = []
for variant, run in runs.items():
  _, held = doubts.temperature_data(run)
  test = run.test
  probs = run.trained.predict(test.x).probs
  fitted = doubts.fitted_temperature(run.trained, held)
  for temperature in (1.0, fitted):
    row = doubts.calibration(probs, test.y, temperature)
    rows.append({'variant': variant, **row})
pd.DataFrame(rows).round(4)

# %% [markdown]
# ## Images as a bad camera has them

# %%
run = runs['flipout']
bfl_tf.plots.corruption(
  list(doubts.corrupted(run.trained, run.test, 10, seed=0))
)

# %% [markdown]
# Of any finished run `bfl-tf doubt --run=DIR --near=... --far=...` does all this:
# [your own data](../docs/your_data.md#when-not-to-trust-it).
