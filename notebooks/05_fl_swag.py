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
# # FL-SWAG: one message per client
#
# Each client fits a Gaussian to the weights along its SGD training (SWAG: a
# mean, a diagonal and a few deviations) and sends it once. The server computes
# the exact product of these Gaussians in `O(P R^2)` for `P` weights and `R`
# deviations in total (Makni 2022). A server that stores the messages can
# compute the product of any subset. So clients can join or leave later without
# new training. At the end of this notebook you choose the subset.
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
# Eight clients of unequal sizes train logistic regression on scikit-learn's
# digits. Each has one digit four times as often as the others (Algorithm 4).
# `store_updates` stores the message of each client in the state of the run. The
# training must converge before weights are collected, hence the number of
# epochs and the weight decay. Otherwise the deviations measure the path of the
# training and not the uncertainty. With 20 epochs and no weight decay,
# FL-SWAG's accuracy is 0.80 here, lower than the value below.

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
  server_parts=('ensemble', 'store_updates'),
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
# The columns of the run: S is FL-SWAG, with samples of the product. C is the
# mean of the clients' predictions (BayAvg), and wC is this mean weighted by
# client sizes (wBayAvg).

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
# A client sends a mean, a diagonal, and a factor with one row per deviation.
# `store_updates` contains all messages.

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
# ## Subsets of clients
#
# The posterior of a subset is the product of its messages, in any order.

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
      training.predict(experiment.workers, drawn, test.x, seed=seed).mean
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
# Client 0, the smallest, leaves the run, as with `python -m experiments.online
# --remove=0`. The result is bit-for-bit identical to the product of the other
# clients.

# %%
left = online.apply(experiment, state, online.Change('remove', 0)).state.model
np.array_equal(left.loc, posterior(everybody[1:]).mean())

# %% [markdown]
# ## Your choice
#
# Choose the clients to include: hold Ctrl or Shift to select several. Without a
# notebook front end, the figure shows all clients.

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
