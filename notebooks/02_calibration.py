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
# # Calibration
#
# Are the probabilities of a model reliable? This notebook reads finished runs.
# If it finds none, it trains two very small ones.

# %%
import json
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from IPython.display import display
import ipywidgets
from matplotlib.figure import Figure
import pandas as pd

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
ROOT = pathlib.Path.cwd()
ROOT = ROOT.parent if ROOT.name == 'notebooks' else ROOT

# %% [markdown]
# ## Which runs
#
# A folder and a glob pattern below it. `01_quickstart` creates two runs that
# match. Change both to your own, for example `'cifar10_*'` or `'**/seed_0'`.

# %%
RUNS, GLOB = ROOT / 'runs', 'quickstart_*'

# %%
NUM_BINS = 15


def find(folder, pattern):
  """Returns the finished runs by their path below the folder."""
  files = sorted(folder.glob(f'{pattern}/summary.json'))
  return {
    file.parent.relative_to(folder).as_posix(): file.parent for file in files
  }


def make_two(folder):
  """Trains two tiny runs: a few seconds each."""
  for rule in ('nwa', 'wc'):
    config = bfl_tf.Config(
      partition='dirichlet',
      num_clients=4,
      num_rounds=2,
      local_epochs=5,
      client_learning_rate=0.003,
      pooling=rule,
      settings={'flipout.prior_scale': 1},
    )
    bfl_tf.run(config, folder / f'tiny_{rule}', show_progress=False)


runs = {} if SMOKE else find(RUNS, GLOB)
if not runs:
  scratch = tempfile.TemporaryDirectory()
  make_two(pathlib.Path(scratch.name))
  runs = find(pathlib.Path(scratch.name), '*')

finals = {
  name: json.loads((run / 'summary.json').read_text('utf-8'))['final']
  for name, run in runs.items()
}
pd.DataFrame(finals).map('{:.3g}'.format)

# %% [markdown]
# ## Reliability diagram
#
# Predictions are binned by their confidence, the probability of the predicted
# class. On the diagonal, confidence equals accuracy. A bar above the diagonal
# means underconfidence, a bar below it overconfidence. The mean gap, weighted
# by the number of examples, is the expected calibration error (ECE).


# %%
def side_by_side(draw, width, height):
  """Draws `draw(run, NUM_BINS, axes)` of every run in a figure of its own."""
  size = (width * len(runs), height)
  figure = Figure(figsize=size, dpi=150, layout='constrained')
  panels = figure.subplots(1, len(runs), squeeze=False, sharey=True)[0]
  for axes, (name, run) in zip(panels, runs.items()):
    draw(run, NUM_BINS, axes)
    axes.set_title(f'{name}\n{axes.get_title()}', fontsize=11)
    axes.label_outer()
  return figure


side_by_side(bfl_tf.plots.reliability_diagram, 4.6, 5.2)

# %% [markdown]
# The runs of `01_quickstart` are near the diagonal in the last bin, which
# contains nearly all of their predictions. Bins with few predictions are noisy;
# the histogram below shows which.
#
# ## Confidence
#
# The histogram shows the number of correct and wrong predictions at each
# confidence. Where the two vertical lines coincide, the model is calibrated on
# average.

# %%
side_by_side(bfl_tf.plots.confidence_histogram, 5.2, 4.4)

# %% [markdown]
# ## Retention
#
# Sort the test examples by a measure of uncertainty, keep the least uncertain
# fraction, and score only these. If the measure ranks errors well, the line
# falls to the right. If it carries no information, the line is flat. The legend
# shows the area under the line. Predictive entropy is the total uncertainty.
# The variance of a prediction is the sum of aleatoric uncertainty (within a
# sample of the weights) and epistemic uncertainty (between samples).

# %%
bfl_tf.plots.retention(runs)

# %% [markdown]
# Retention depends only on the order of the examples. In `01_quickstart`, the
# epistemic uncertainty of the run with `wc` is about 1e-12, but it still ranks
# well: its samples differ very little, and most near the decision boundary. The
# table above shows its size; read both.
#
# ## One run at a time
#
# Choose a run, a measure of uncertainty and the number of bins. Without a
# notebook front end, the figure shows the default choice.

# %%
MEASURES = ('entropy', 'aleatoric', 'epistemic')


def draw(run, measure, num_bins):
  """Returns reliability, confidence and retention of one run."""
  figure = Figure(figsize=(13, 4.6), dpi=150, layout='constrained')
  bfl_tf.plots.reliability_diagram(
    runs[run], num_bins, figure.add_subplot(1, 3, 1)
  )
  bfl_tf.plots.confidence_histogram(
    runs[run], num_bins, figure.add_subplot(1, 3, 2)
  )
  # `retention` draws all measures: three axes in one place, one of them shown.
  panels = [figure.add_subplot(1, 3, 3) for _ in MEASURES]
  bfl_tf.plots.retention({run: runs[run]}, panels)
  for panel, name in zip(panels, MEASURES):
    panel.set_visible(name == measure)
  return figure


controls = {
  'run': ipywidgets.Dropdown(options=list(runs), description='Run'),
  'measure': ipywidgets.Dropdown(options=MEASURES, description='Measure'),
  'num_bins': ipywidgets.IntSlider(
    NUM_BINS, min=2, max=30, description='Bins', continuous_update=False
  ),
}


def chosen():
  return {name: control.value for name, control in controls.items()}


display(ipywidgets.HBox(list(controls.values())))
picture = display(draw(**chosen()), display_id=True)
for control in controls.values():
  control.observe(lambda _: picture.update(draw(**chosen())), names='value')
