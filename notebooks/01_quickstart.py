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
# # Quickstart
#
# Ten clients hold handwritten digits (8x8 pixels, they ship with scikit-learn),
# each with its own mix of classes. In every round each client trains a
# variational network on its own digits, starting from the global posterior; the
# server pools the ten Gaussian posteriors into the next global one. No client
# ever sends data.
#
# Set `BFL_TF_SMOKE=1` to run this notebook with few rounds.

# %%
import dataclasses
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from matplotlib.figure import Figure
import pandas as pd

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
ROOT = pathlib.Path.cwd()
ROOT = ROOT.parent if ROOT.name == 'notebooks' else ROOT
scratch = tempfile.TemporaryDirectory()
RUNS = pathlib.Path(scratch.name) if SMOKE else ROOT / 'runs'

# %% [markdown]
# ## A run
#
# A run is a `Config` and a directory. This is `configs/quickstart.flags` in
# Python; every field is also a flag of `python -m experiments.run`.

# %%
QUICKSTART = bfl_tf.Config(
  dataset='digits',
  partition='dirichlet',
  num_clients=10,
  model='mlp',
  variant='flipout',
  pooling='nwa',
  num_rounds=20,
  local_epochs=5,
  batch_size=32,
  client_optimizer='adam',
  client_learning_rate=0.003,
  settings={
    'dirichlet.alpha': 0.5,
    'mlp.hidden_units': (64,),
    'flipout.prior_scale': 1,
    'flipout.temperature': 0.003,
  },
)

# %%
config = QUICKSTART.replace(num_rounds=2) if SMOKE else QUICKSTART
runs = {'nwa': RUNS / 'quickstart_nwa'}
summary = bfl_tf.run(config, runs['nwa'], show_progress=False)

# %% [markdown]
# A run that is finished is read, not trained again; an interrupted one goes on
# where it stopped. To start anew, delete its directory.
#
# ## The clients' data
#
# The area of a box is the number of examples. With a Dirichlet split of
# `dirichlet.alpha = 0.5` most clients miss some classes and hold many of a few others;
# sizes differ too.

# %%
bfl_tf.plots.partition(runs['nwa'])

# %% [markdown]
# ## Scores by round
#
# `metrics.csv` has a row a round; round 0 is before training. Accuracy,
# expected calibration error (ECE) and Brier score are of the mean prediction
# over samples of the weights, the negative log likelihood (NLL) is in nats.
# Epistemic uncertainty is how much the samples disagree, aleatoric what each of
# them leaves open.

# %%
COLUMNS = ['accuracy', 'nll', 'ece', 'brier', 'epistemic', 'aleatoric']
metrics = pd.read_csv(runs['nwa'] / 'metrics.csv', index_col='round')
metrics[COLUMNS].round(4)

# %%
bfl_tf.plots.learning_curve(runs['nwa'], 'accuracy')

# %% [markdown]
# The last evaluation takes more samples (`final_num_mc_samples`). Its scores
# are what `run` returns, and `summary.json` keeps:

# %%
pd.Series(summary['final']).round(4).to_frame('final')

# %% [markdown]
# ## How much the prior counts
#
# By the paper's objective each client weighs the whole prior against its own
# examples, here a tenth of all. The server averages ten posteriors, of which
# each has seen too little for such a prior. The quickstart multiplies that
# divergence by a temperature instead, chosen on validation data. The same run
# without it:

# %%
whole = config.replace(**{'flipout.temperature': 1.0})
bfl_tf.run(whole, RUNS / 'whole_prior', show_progress=False)
priors = {'temperature 0.003': runs['nwa'], 'papers': RUNS / 'whole_prior'}
bfl_tf.plots.learning_curve(priors, 'ece')

# %% [markdown]
# The data say little about many weights. Under the whole prior these drift to
# N(0, 1) round by round, the samples disagree more and more, and the
# predictions become underconfident: the calibration error rises while the
# accuracy stays. Which rule wants which prior: `docs/prior.md`.
#
# ## Two pooling rules
#
# The same run with one setting changed: `wc` (weighted conflation) multiplies
# the clients' posteriors, each to the power of its weight over the largest,
# where `nwa` (naive weighted averaging) averages their means and variances.
# Both runs have the same partition and the same initial weights.

# %%
runs['wc'] = RUNS / 'quickstart_wc'
product = dataclasses.replace(config, pooling='wc')
summaries = {
  'nwa': summary,
  'wc': bfl_tf.run(product, runs['wc'], show_progress=False),
}

# %%
figure = Figure(figsize=(12, 3.8), dpi=150, layout='constrained')
panels = figure.subplots(1, 3)
for axes, metric in zip(panels, ('accuracy', 'ece', 'epistemic')):
  bfl_tf.plots.learning_curve(runs, metric, axes=axes)
panels[2].set_yscale('log')
panels[2].set_ylabel('Variance, summed over classes')
figure

# %%
scores = pd.DataFrame(
  {rule: summary['final'] for rule, summary in summaries.items()}
)
scores.map('{:.3g}'.format)

# %% [markdown]
# Both are as accurate. `nwa` keeps the scales of its clients, and its samples go
# on to disagree; here that gives it the better likelihood and calibration. The
# epistemic uncertainty of `wc` falls geometrically, and from round 14 on the
# scale of every weight is at the floor (`min_scale`): all samples of the weights
# are the same network. From there on the run is FedAvg of point estimates, and
# what uncertainty it has is aleatoric.
#
# Why the rules do this: `03_pooling_geometry`. How well either run knows what
# it does not know: `02_calibration`.
