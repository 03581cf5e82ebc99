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
# # What pooling does to Gaussians
#
# The server has the clients' posteriors, one Gaussian a weight, and wants one.
# The rules of `bfl_tf.server.pooling` answer different questions. With `m_k`, `v_k`
# the mean and variance of client k, and weights `w_k` that sum to 1:
#
# | rule | mean | variance | it is |
# |---|---|---|---|
# | `nwa` | sum w_k m_k | sum w_k v_k | the average of the parameters |
# | `ws` | sum w_k m_k | sum w_k^2 v_k | the law of the average of independent draws |
# | `lp` | sum w_k m_k | sum w_k v_k + disagreement | the moments of the mixture |
# | `wasserstein` | sum w_k m_k | (sum w_k sqrt(v_k))^2 | the barycenter by Wasserstein-2 distance |
# | `log_variance` | sum w_k m_k | exp(sum w_k log(v_k)) | the average of means and of log variances |
# | `llp` | precision-weighted | 1 / sum (w_k / v_k) | the geometric mean of the densities |
# | `conflation` | precision-weighted | 1 / sum (1 / v_k) | the product of the densities |
# | `wc` | precision-weighted | max w_k / sum (w_k / v_k) | the product, each to the power w_k / max w_k |
# | `dwc` | precision-weighted | 1 / (1/v_0 + sum (1/v_k - 1/v_0)) | the product, with the prior v_0 counted once |
#
# Disagreement is the weighted variance of the means. `product`, which pools whole
# covariances, and the robust rules are in docs/methods.md.

# %%
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

from bfl_tf.server import pooling
from bfl_tf.plots import canvas
from bfl_tf.server.pooling import rules
from matplotlib.figure import Figure
from matplotlib import patches
import numpy as np
import pandas as pd
from tensorflow_probability import distributions as tfd

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
NUM_ROUNDS = 4 if SMOKE else 16
COLORS = dict(
  zip(rules.ELEMENTWISE, (*canvas.PALETTE, '#8B5A2B', '#999933'), strict=True)
)
SMALL = {'color': canvas.GREY, 'lw': 0.9, 'ls': '--'}


# %%
def gaussian(mean, scale):
  return tfd.MultivariateNormalDiag(np.float32(mean), np.float32(scale))


def pool_by_each(clients, weights=None):
  """Pools by the rules above but `dwc`, which needs a prior: see below."""
  pooled = {}
  for name, rule in rules.ELEMENTWISE.items():
    if name != 'dwc':
      own = weights if rule.takes_weights else None
      pooled[name] = pooling.pool(name, clients, own)
  return pooled


def draw_density(axes, x, q, label=None, filled=False, **style):
  density = q.prob(np.float32(x)[:, None])
  axes.plot(x, density, label=label, **style)
  if filled:
    axes.fill_between(x, density, color=style['color'], alpha=0.2)


def new_grid(size, **sharing):
  figure = Figure(figsize=size, dpi=150, layout='constrained')
  return figure, figure.subplots(2, 4, sharex=True, sharey=True, **sharing)


def draw_rules(clients, weights=None):
  """Draws the clients' densities, and each rule's in a panel of its own."""
  x = np.linspace(-4, 4, 401)
  figure, panels = new_grid((14.5, 5.4))
  for axes, (name, q) in zip(
    panels.flat, pool_by_each(clients, weights).items()
  ):
    for client in clients:
      draw_density(axes, x, client, **SMALL)
    draw_density(axes, x, q, filled=True, color=COLORS[name], lw=2)
    mean, scale = float(q.mean()[0]), float(q.stddev()[0])
    title = f'{name}: mean {mean:.2f}, scale {scale:.2f}'
    canvas.finish(axes, title, 'Weight', 'Density')
    axes.label_outer()
  return figure


# %% [markdown]
# ## Two clients
#
# Dashed: the clients, the left one more certain and with three quarters of the
# weight. `nwa`, `ws` and `lp` put the mean at the average, whatever the
# variances; `llp`, `conflation` and `wc` move it to the more certain client
# (`conflation` knows no weights, so less far). The widths range from the
# product's to that of the mixture, which spans both.

# %%
draw_rules([gaussian([-1], [0.5]), gaussian([1], [1])], weights=[3, 1])

# %% [markdown]
# ## Ten clients
#
# Equal weights. `ws`, `wc` and `conflation` are about sqrt(10) narrower than a
# client: they take the ten for independent evidence. `nwa` and `llp` are as
# wide as a client, and `lp` as wide as all of them together.

# %%
generator = np.random.default_rng(2)
ten = [
  gaussian([mean], [scale])
  for mean, scale in zip(
    generator.normal(0, 1, 10), generator.uniform(0.5, 1, 10)
  )
]
draw_rules(ten)

# %% [markdown]
# ## Two weights at once
#
# The posteriors are mean field: every weight is pooled alone. One client knows
# the first weight well, the other the second. A product takes each weight from
# the client that knows it; an average is half sure of both. Ellipses are of 1
# and 2 standard deviations.


# %%
def draw_ellipses(axes, q, label=None, **style):
  for deviations in (1, 2):
    width, height = 2 * deviations * q.stddev().numpy()
    axes.add_patch(patches.Ellipse(q.mean().numpy(), width, height, **style))
  axes.plot(*q.mean().numpy(), 'o', ms=4, color=style['ec'])


pair = [gaussian([-1, 0.5], [0.3, 1.2]), gaussian([1, -0.5], [1.2, 0.3])]
figure, panels = new_grid((12.5, 5.6))
for axes, (name, q) in zip(panels.flat, pool_by_each(pair).items()):
  for client in pair:
    draw_ellipses(axes, client, ec=canvas.GREY, fc='none', ls='--')
  draw_ellipses(axes, q, ec=COLORS[name], fc=COLORS[name] + '33', lw=1.5)
  canvas.finish(axes, name, 'First weight', 'Second weight')
  axes.set(xlim=(-3.6, 3.6), ylim=(-3, 3), aspect='equal')
  axes.label_outer()
figure

# %% [markdown]
# ## The prior, counted once
#
# Each client that does Bayesian inference from a prior has that prior in its
# posterior. The product of K posteriors has it K times; `dwc` (distributed
# weight consolidation) divides it out K - 1 times.
#
# Left: ten clients measure one weight, three noisy measurements each, prior
# N(0, 1). All posteriors are exact here, and so is the posterior given all
# thirty measurements. `dwc` is that posterior; `conflation` is drawn to the
# prior's mean and too narrow.
#
# Right: clients that are *less* certain than the posterior they started from,
# as under a fixed wide prior. Dividing would leave a negative precision. There
# `dwc` keeps the broadcast posterior; in a run `guarded_fraction` counts such
# weights. Hence `--flipout.update_prior`, which makes the broadcast the clients' prior.


# %%
def posterior(measurements, noise=1.0, prior_scale=1.0):
  precision = 1 / prior_scale**2 + len(measurements) / noise**2
  mean = np.sum(measurements) / noise**2 / precision
  return gaussian([mean], [precision**-0.5])


measured = np.random.default_rng(1).normal(1.5, 1.0, [10, 3])
cases = {
  'Exact clients, prior N(0, 1)': (
    gaussian([0], [1]),
    [posterior(row) for row in measured],
  ),
  'Clients less certain than the broadcast': (
    gaussian([0], [0.4]),
    [gaussian([mean], [0.5]) for mean in np.linspace(0.4, 2, 10)],
  ),
}
x = np.linspace(-1.5, 3.5, 501)
axes_of_cases = canvas.new_axes((11, 4.2), columns=2)
for axes, (title, (prior, clients)) in zip(axes_of_cases, cases.items()):
  for client in clients:
    draw_density(axes, x, client, **SMALL)
  axes.lines[-1].set_label('clients')
  for name in ('conflation', 'dwc'):
    q = pooling.pool(name, clients, prior=prior)
    draw_density(axes, x, q, name, filled=True, color=COLORS[name], lw=2)
  draw_density(
    axes, x, prior, 'prior (broadcast)', color=canvas.SKY, ls='--', lw=2.2
  )
  canvas.finish(axes, title, 'Weight', 'Density')
draw_density(
  axes_of_cases[0],
  x,
  posterior(measured.ravel()),
  'all data, exact',
  color=canvas.VERMILION,
  ls=':',
  lw=3,
)
for axes in axes_of_cases:
  canvas.legend(axes)
canvas.figure_of(axes_of_cases[0])

# %% [markdown]
# ## Round after round
#
# The pooled posterior is where the next round's clients start. Here a client's
# training is replaced by a small random shift of each mean: a thousand weights,
# clients that disagree by 0.02, an initial scale of 0.05, equal weights. So
# what is seen is the rule's doing alone.

# %%
SCALE, DRIFT = 0.05, 0.02


def simulate(name, num_clients=10, size=1000):
  """Returns the typical scale after each round, `[NUM_ROUNDS + 1]`."""
  generator = np.random.default_rng(0)
  broadcast = gaussian(np.zeros(size), np.full(size, SCALE))
  scales = [SCALE]
  for _ in range(NUM_ROUNDS):
    start = broadcast
    clients = [
      gaussian(
        start.mean() + DRIFT * generator.normal(size=size), start.stddev()
      )
      for _ in range(num_clients)
    ]
    broadcast = pooling.pool(name, clients, prior=start)
    scales.append(float(np.median(broadcast.stddev())))
  return np.array(scales)


scales = {name: simulate(name) for name in rules.ELEMENTWISE}
by_clients = {k: simulate('ws', k) for k in (2, 5, 10, 20)}
rounds = np.arange(NUM_ROUNDS + 1)


# %%
def finish(axes, title):
  canvas.finish(axes, title, 'Round', 'Scale (standard deviation)')
  axes.xaxis.get_major_locator().set_params(integer=True)


# Each rule has its line; those of a group lie on top of each other.
GROUPS = {
  'lp': ('lp',),
  'nwa, wasserstein, log_variance, llp, dwc': (
    'nwa',
    'wasserstein',
    'log_variance',
    'llp',
    'dwc',
  ),
  'ws, wc, conflation': ('ws', 'wc', 'conflation'),
}
FLOOR = rules.ELEMENTWISE['ws']().run.min_scale

figure = Figure(figsize=(13, 4.4), dpi=150, layout='constrained')
every_rule, number, disagreement = figure.subplots(1, 3)

for label, names in GROUPS.items():
  color = COLORS[names[0]]
  every_rule.plot([], [], color=color, lw=1.8, label=label)
  for name in names:
    every_rule.plot(rounds, scales[name], 'o-', ms=4.5, lw=1.8, color=color)
every_rule.axhline(FLOOR, **SMALL)
every_rule.set_yscale('log')
finish(every_rule, 'Ten clients, nine rules')
canvas.legend_below(every_rule, ncols=1)

for (num_clients, values), color in zip(by_clients.items(), canvas.PALETTE):
  law = np.maximum(SCALE / num_clients ** (rounds / 2), FLOOR)
  number.plot(rounds, law, color=color, lw=1.4)
  number.plot(
    rounds, values, 'o', ms=4.5, color=color, label=f'{num_clients} clients'
  )
number.axhline(FLOOR, label='floor (min_scale)', **SMALL)
number.set_yscale('log')
finish(number, 'ws (dots) and scale / sqrt(K) a round (lines)')
canvas.legend_below(number, ncols=3)

law = np.sqrt(SCALE**2 + rounds * DRIFT**2 * (1 - 1 / 10))
disagreement.plot(rounds, law, color=COLORS['lp'], lw=1.4)
for name, mark in (('lp', 'o'), ('nwa', 's')):
  disagreement.plot(
    rounds, scales[name], mark, ms=4.5, color=COLORS[name], label=name
  )
disagreement.set_ylim(0, None)
finish(disagreement, 'lp grows by disagreement, nwa does not')
canvas.legend_below(disagreement, ncols=2)
figure

# %% [markdown]
# - `ws`, `wc` and `conflation` divide the scale by sqrt(K) in every round, here
#   on top of each other, until the floor `min_scale` holds it: after nine
#   rounds with ten clients, sooner with more. Unequal weights act as fewer
#   clients.
# - `nwa`, `wasserstein`, `log_variance` and `llp` keep the scale. So does `dwc`: clients that learnt nothing
#   about their certainty leave the broadcast's as it was.
# - `lp` adds the variance between the clients' means: its squared scale grows
#   by about DRIFT^2 a round.
#
# One sample of a weight is the mean plus noise of this scale. In units of what
# a round of training moves a weight by:

# %%
shown = rounds[:: max(NUM_ROUNDS // 4, 1)]
noise = pd.DataFrame({name: values / DRIFT for name, values in scales.items()})
noise.loc[shown].rename_axis('round').map('{:.2g}'.format)

# %% [markdown]
# ## Why the paper sees two groups
#
# Fischer et al. (arXiv:2403.15263, section 4) find that WS, WC and conflation
# behave alike, and NWA and LP behave alike. The first group is more accurate,
# better calibrated and fast with a single local epoch a round; the second needs
# five local epochs for the same.
#
# The figure above says why. In the first group a round divides the scale by
# about sqrt(K), local training does not win it back, and the next round starts
# from there. The noise of the sampled weights soon is far below one training
# step, and the mean is that of FedAvg: exactly under `ws`, and under `wc` and
# `conflation` once all clients have the same scale, as on the floor. **After a
# dozen rounds these rules are FedAvg with vanishing noise.** They train as fast
# as FedAvg does, and their calibration is that of a point estimate: the
# epistemic uncertainty is gone. In the second group every round of training
# goes on under the noise of a full posterior, which slows it down, and
# epistemic uncertainty survives.
#
# So a comparison of rules across the groups compares sampled networks with
# point estimates. Compare within a group, in the first rounds, or look at
# `epistemic` and `floored_fraction` in `metrics.csv`, as `01_quickstart` does
# on real clients.
