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
# Ten clients hold handwritten digits (8x8 pixels, from scikit-learn), each
# with its own mix of classes. In each round, every client trains a variational
# network on its digits, starting from the global posterior. The server pools
# the ten Gaussian posteriors into the next global posterior. No client sends
# data.
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
# A run has a `Config` and a directory. This config equals
# `configs/quickstart.flags`. Every field is also a flag of `bfl-tf run`.

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
# A finished run is read and not trained again. An interrupted run continues
# where it stopped. To start again, delete the directory.
#
# ## The clients' data
#
# The area of a box is the number of examples. With a Dirichlet partition of
# `dirichlet.alpha = 0.5`, most clients lack some classes and have many
# examples of a few others. Client sizes differ too.

# %%
bfl_tf.plots.partition(runs['nwa'])

# %% [markdown]
# ## Scores by round
#
# `metrics.csv` has one row per round; round 0 is before training. All scores
# use the mean prediction over samples of the weights: accuracy, expected
# calibration error (ECE), Brier score, and negative log likelihood (NLL) in
# nats. Epistemic uncertainty is the disagreement of the samples. Aleatoric
# uncertainty is the mean uncertainty of a single sample.

# %%
COLUMNS = ['accuracy', 'nll', 'ece', 'brier', 'epistemic', 'aleatoric']
metrics = pd.read_csv(runs['nwa'] / 'metrics.csv', index_col='round')
metrics[COLUMNS].round(4)

# %%
bfl_tf.plots.learning_curve(runs['nwa'], 'accuracy')

# %% [markdown]
# The last evaluation uses more samples (`final_num_mc_samples`). `run` returns
# its scores and stores them in `summary.json`:

# %%
pd.Series(summary['final']).round(4).to_frame('final')

# %% [markdown]
# ## How much the prior counts
#
# In the paper's objective each client weighs the whole prior against its own
# examples, here a tenth of all examples. So the prior has too much weight in
# the average of ten posteriors. The quickstart multiplies the KL term by a
# temperature, which was chosen on validation data. This is the same run
# without the temperature:

# %%
whole = config.replace(**{'flipout.temperature': 1.0})
bfl_tf.run(whole, RUNS / 'whole_prior', show_progress=False)
priors = {'temperature 0.003': runs['nwa'], 'papers': RUNS / 'whole_prior'}
bfl_tf.plots.learning_curve(priors, 'ece')

# %% [markdown]
# The data determine many weights only weakly. With the full KL term these
# weights move towards N(0, 1) in each round. The samples disagree more and
# more, and the predictions become underconfident: the calibration error rises
# while the accuracy stays. `docs/prior.md` explains which prior each rule
# needs.
#
# ## Two pooling rules
#
# `nwa` (naive weighted averaging) averages the clients' means and variances.
# `wc` (weighted conflation) multiplies the posteriors, each to the power of
# its weight divided by the largest weight. Both runs have the same partition
# and the same initial weights.

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
# Both rules are equally accurate. `nwa` keeps the scales of its clients, so
# that its samples still disagree. Here this gives the better likelihood and
# calibration. The epistemic uncertainty of `wc` decreases geometrically. From
# round 14 on the scale of every weight is at its lower bound (`--min_scale`),
# and all samples are the same network. The run is then FedAvg of deterministic
# models, and its uncertainty is only aleatoric.
#
# `03_pooling_geometry` explains why. `02_calibration` compares the calibration
# of both runs.
