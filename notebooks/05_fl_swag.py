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
# # FL-SWAG: one message a client
#
# Each client fits a Gaussian along its path of SGD (SWAG: a mean, a diagonal and
# a few deviations) and sends it once. The server multiplies them, exactly, in
# `O(P R^2)` for `P` weights and `R` deviations in all (Makni 2022). A server that
# keeps what clients sent can multiply any of it again, so that a client joins or
# leaves later without any other's training: at the end you choose who is in.
#
# Set `BFL_TF_SMOKE=1` to run this notebook with small settings.

# %%
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from bfl_tf import metrics
from bfl_tf.server import pooling
from bfl_tf import seeds
from bfl_tf import training
from bfl_tf import weights
from bfl_tf import federation
from bfl_tf.runs import checkpoints
from bfl_tf.analysis import online
from IPython.display import display
import ipywidgets
from matplotlib.figure import Figure
import numpy as np
import pandas as pd

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
ROOT = pathlib.Path.cwd()
ROOT = ROOT.parent if ROOT.name == 'notebooks' else ROOT
scratch = tempfile.TemporaryDirectory()
RUNS = pathlib.Path(scratch.name) if SMOKE else ROOT / 'runs'
NUM_SAMPLES = 3 if SMOKE else 30

# %% [markdown]
# ## One round
#
# Eight clients of unequal sizes, each four times as interested in one digit as
# in the others (Algorithm 4); logistic regression on the digits of scikit-learn.
# `store_updates` leaves every client's message in the run's state. The weights must have
# come to rest before they are collected, hence the epochs and the weight decay:
# of weights still on their way the deviations say the way, not the doubt, and a
# product mistrusts each client where it has learned most. With 20 epochs and no
# decay FL-SWAG's accuracy here is 0.80 in place of what follows.

# %%
CONFIG = bfl_tf.Config(
  dataset='digits',
  partition='interest',
  num_clients=8,
  model='logistic',
  variant='deterministic',
  client_optimizer='sgd',
  client_learning_rate=0.1,
  batch_size=16,
  num_rounds=1,
  local_epochs=5 if SMOKE else 100,
  client_weight_decay=0.01,
  client_parts=('swag',),
  pooling='product',
  refine=('ensemble', 'store_updates'),
  predictor='S',
  num_bins=20,
  settings={
    'interest.min_examples': 60,
    'swag.burn_in': 0.5,
    'swag.period': 1,
    'swag.rank': 2 if SMOKE else 10,
    'swag.min_scale': 0.03,
    'ensemble.groups': 'C+S',
    'ensemble.weighted': True,
    'ensemble.num_samples': NUM_SAMPLES,
  },
)
summary = bfl_tf.run(CONFIG, RUNS / '05_fl_swag', show_progress=False)

# %%
bfl_tf.plots.sizes(RUNS / '05_fl_swag')

# %% [markdown]
# The columns of the run: S is FL-SWAG, samples of the product; C the mean of the
# clients' predictions (BayAvg), wC the same by their sizes (wBayAvg).

# %%
final = summary['final']
pd.DataFrame(
  {
    score: {
      name: final[f'{score}_{group}']
      for name, group in {
        'FL-SWAG': 'S',
        'BayAvg': 'C',
        'wBayAvg': 'wC',
      }.items()
    }
    for score in ('accuracy', 'nll', 'ece')
  }
).round(4)

# %% [markdown]
# ## The messages
#
# What a client sent: a mean, a diagonal and as many rows as its factor has. `store_updates`
# has them all.

# %%
experiment = federation.Experiment.build(CONFIG)
state = checkpoints.restore(RUNS / '05_fl_swag')
updates = online.members(state)
pd.DataFrame(
  {
    client: {
      'examples': update.num_examples,
      'bytes': update.num_bytes,
      'median scale': np.median(update.model.scale),
      'share of the factor': np.square(update.model.factor).sum()
      / update.model.variance().sum(),
    }
    for client, update in updates.items()
  }
).T.astype({'examples': int, 'bytes': int}).round(3)

# %% [markdown]
# ## Who is in
#
# The posterior of some clients is the product of what they sent, in whatever order
# they came.

# %%


def posterior(included):
  """Returns the product of some clients' Gaussians, a tfp distribution."""
  sent = [weights.distribution(updates[client].model) for client in included]
  return pooling.pool('product', sent)


def predict(product):
  """Returns the mean prediction of samples of a posterior on the test set."""
  test, probs = experiment.dataset.test, []
  draws = product.sample(NUM_SAMPLES, seed=seeds.named(0, 'notebook'))
  for values in draws.numpy():
    drawn = state.model.at_a_point().replace_values(values)
    seed = seeds.named(0, 'notebook', 1)
    probs.append(
      training.predict(experiment.workers, drawn, test.x, seed=seed).probs
    )
  return np.mean(probs, 0)


def scores(included):
  """Returns what the test set says of some clients' product."""
  labels = experiment.dataset.test.y
  product = posterior(included)
  probs = predict(product)
  return {
    'accuracy': metrics.accuracy(probs, labels),
    'nll': metrics.negative_log_likelihood(probs, labels),
    'ece': metrics.expected_calibration_error(probs, labels, 20),
    'posterior scale': float(np.sqrt(np.mean(product.variance()))),
  }


everybody = sorted(updates)
pd.DataFrame(
  {f'0 to {last}': scores(everybody[: last + 1]) for last in everybody}
).T.round(4)

# %% [markdown]
# Client 0, the smallest, leaves the run, as by `python -m experiments.online
# --remove=0`: what is left is the product of the others, to the bit.

# %%
left = online.apply(experiment, state, online.Change('remove', 0)).state.model
np.array_equal(left.loc, posterior(everybody[1:]).mean())

# %% [markdown]
# ## Your choice
#
# Choose the clients to include: hold Ctrl or Shift for several. Without a
# notebook front end the figure is that of all of them.

# %%


def draw(included):
  """Returns calibration of some clients' product, and of all clients'."""
  labels = experiment.dataset.test.y
  chosen = list(included) or everybody
  figure = Figure(figsize=(6, 4), dpi=150, layout='constrained')
  axes = figure.add_subplot()
  axes.axhline(0, color='grey', ls='--')
  for name, who in {'all': everybody, 'chosen': chosen}.items():
    probs = predict(posterior(who))
    bins = metrics.reliability(probs, labels, 10)
    accuracy = metrics.accuracy(probs, labels)
    label = f'{name}: {len(who)} clients, accuracy {accuracy:.3f}'
    axes.plot(
      bins.confidence, bins.accuracy - bins.confidence, 'o-', label=label
    )
  axes.set(xlabel='Confidence', ylabel='Accuracy less confidence', xlim=(0, 1))
  axes.legend()
  return figure


control = ipywidgets.SelectMultiple(
  options=everybody, value=everybody, description='Clients'
)
display(control)
picture = display(draw(control.value), display_id=True)
control.observe(lambda _: picture.update(draw(control.value)), names='value')
