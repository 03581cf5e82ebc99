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
# # A tour in ten minutes
#
# This notebook answers three questions:
#
# 1. Why does a client send a posterior over weights, and not only weights?
# 2. What does a pooling rule do to the clients' posteriors?
# 3. What does the pooled model know about its own errors?
#
# Set `BFL_TF_SMOKE=1` to run it with few rounds.

# %%
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from bfl_tf import data
from bfl_tf.data import partitions
from bfl_tf.server import pooling
import ipywidgets
from matplotlib import pyplot as plt
import numpy as np
from tensorflow_probability import distributions as tfd

# %matplotlib inline

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
scratch = tempfile.TemporaryDirectory()
RUNS = pathlib.Path(scratch.name)

# %% [markdown]
# ## 1. Clients whose data differ
#
# Ten clients hold handwritten digits. The partition gives each client its own
# mix of classes. A small `alpha` makes the clients more different. Move the
# slider to see the number of examples of each class (color) at each client
# (bar).

# %%
DIGITS = data.load('digits').train


def draw_partition(alpha=0.5):
  parts = partitions.dirichlet(DIGITS.y, num_clients=10, seed=0, alpha=alpha)
  counts = np.array(
    [np.bincount(DIGITS.y[part], minlength=10) for part in parts]
  )
  figure, axes = plt.subplots(figsize=(7, 2.6))
  for digit in range(10):
    left = counts[:, :digit].sum(axis=1)
    axes.bar(range(10), counts[:, digit], bottom=left, label=str(digit))
  axes.set(xlabel='client', ylabel='examples', title=f'alpha = {alpha}')
  axes.legend(
    title='class', ncols=2, loc='center left', bbox_to_anchor=(1, 0.5)
  )
  plt.show()


draw_partition()
_ = ipywidgets.interact(draw_partition, alpha=[0.1, 0.5, 1.0, 10.0, 100.0])

# %% [markdown]
# A client that has never seen a class cannot know how to recognize it. Its
# weights that matter for this class are uncertain. A posterior, here a
# Gaussian with a mean and a variance for each weight, tells the server which
# weights are uncertain. A plain weight vector does not.
#
# ## 2. Pooling rules
#
# The server combines the clients' posteriors of each weight. The figure shows
# one weight of two clients: the first is certain, the second is not. Choose a
# rule, the distance of the means and the standard deviation of the second
# client.


# %%
def draw_pooling(rule='nwa', distance=2.0, second_scale=1.0):
  clients = [
    tfd.MultivariateNormalDiag([0.0], [0.5]),
    tfd.MultivariateNormalDiag([distance], [second_scale]),
  ]
  pooled = pooling.pool(rule, clients)
  x = np.linspace(-3, 7, 400, dtype=np.float32)[:, None]
  figure, axes = plt.subplots(figsize=(7, 2.6))
  for k, client in enumerate(clients, start=1):
    style = ':' if k == 2 else '--'
    axes.plot(x, client.prob(x), style, color='black', label=f'client {k}')
  mean, scale = float(pooled.mean()[0]), float(pooled.stddev()[0])
  axes.fill_between(x[:, 0], pooled.prob(x), alpha=0.4, label='pooled')
  axes.set(
    xlabel='weight',
    ylabel='density',
    title=f'{rule}: mean {mean:.2f}, standard deviation {scale:.2f}',
  )
  axes.legend()
  plt.show()


draw_pooling('lp')
draw_pooling('conflation')
_ = ipywidgets.interact(
  draw_pooling,
  rule=['nwa', 'ws', 'lp', 'wasserstein', 'llp', 'conflation', 'wc'],
  distance=(0.0, 4.0),
  second_scale=(0.2, 2.0),
)

# %% [markdown]
# - `nwa` averages means and variances. It ignores which client is certain.
# - `lp` also adds the disagreement of the clients to the variance.
# - `conflation` multiplies the densities. The certain client counts more, and
#   the result is narrower than each client.
#
# No rule is best for every purpose: `docs/choosing.md` compares them.
#
# ## 3. What the model knows about its errors
#
# We train FedAvg (deterministic weights) and a variational model with the
# same data, network and rounds. Then both predict test digits, and inputs
# that are not digits: uniform noise.

# %%
QUICKSTART = bfl_tf.Config(
  dataset='digits',
  partition='dirichlet',
  model='mlp',
  client_learning_rate=0.003,
  num_rounds=2 if SMOKE else 20,
  local_epochs=5,
  settings={'dirichlet.alpha': 0.5, 'mlp.hidden_units': (64,)},
)
CONFIGS = {
  'FedAvg': QUICKSTART.replace(variant='deterministic'),
  'Flipout, nwa': QUICKSTART.replace(
    variant='flipout',
    pooling='nwa',
    **{'flipout.temperature': 0.003, 'flipout.prior_scale': 1.0},
  ),
}
test = data.load('digits').test
noise = np.random.default_rng(0).uniform(0, DIGITS.x.max(), test.x.shape)
entropies = {}
for name, config in CONFIGS.items():
  summary = bfl_tf.run(config, RUNS / name, show_progress=False)
  model = bfl_tf.load(RUNS / name)
  entropies[name] = [
    model.predict(x.astype(test.x.dtype)).normalized_entropy
    for x in (test.x, noise)
  ]
  scores = summary['final']
  shown = {k: round(scores[k], 3) for k in ('accuracy', 'nll', 'ece')}
  print(f'{name:12}', shown)

# %%
BINS = np.linspace(0, 1, 24)
figure, panels = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True)
for axes, (name, values) in zip(panels, entropies.items(), strict=True):
  for label, value in zip(('test digits', 'noise'), values, strict=True):
    axes.hist(value, bins=BINS, alpha=0.6, label=label)
  axes.set(xlabel='predictive entropy, as a fraction of log 10', title=name)
panels[0].set_ylabel('inputs')
panels[1].legend()
plt.show()

# %% [markdown]
# A model that knows its limits has low entropy on test digits and high
# entropy on noise. The further apart the two histograms, the better the model
# can refuse inputs that it should not classify.
#
# ## Where to go next
#
# - `01_quickstart`: a run in detail, and how much the prior counts.
# - `02_calibration`: reliability diagrams and proper scores.
# - `06_your_own_data`: your own CSV file with several sites.
# - `docs/methods.md`: every method with its equation.
