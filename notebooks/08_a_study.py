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
# # A study
#
# This notebook compares five pooling rules with three seeds each. It makes a
# table and a figure for a paper, in about five minutes on two cores. On the
# command line `bfl-tf sweep` does the same:
# [which of several runs](../docs/first_study.md#flags-of-compare-and-sweep).

# %%
import contextlib
import io
import logging
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from bfl_tf.plots import comparison

# Each configuration compiles its model; TensorFlow would warn about retracing.
logging.getLogger('tensorflow').setLevel('ERROR')

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
ROOT = pathlib.Path.cwd()
ROOT = ROOT.parent if ROOT.name == 'notebooks' else ROOT
scratch = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(scratch.name)

# %% [markdown]
# ## The runs
#
# Each configuration is a preset with another rule. `sweep` runs what is not
# finished in its folder. If you call it again with more rules or seeds, it adds
# them. A fifth of the training examples is held out as validation data.

# %%
RULES = ('nwa', 'lp', 'ws', 'conflation', 'median')
configs = {
  rule: bfl_tf.Config.from_flagfile(
    ROOT / 'configs' / 'quickstart.flags',
    pooling=rule,
    validation_split=0.2,
    num_rounds=2 if SMOKE else 15,
  )
  for rule in RULES
}
with contextlib.redirect_stdout(io.StringIO()):  # It prints one line per run.
  study = bfl_tf.sweep(configs, FOLDER, seeds=(0, 1) if SMOKE else (0, 1, 2))

# %% [markdown]
# ## A data frame of all runs
#
# One row per run; columns are the flags that differ, and the last scores.

# %%
frame = bfl_tf.read_runs(FOLDER)
frame[['pooling', 'seed', 'validation_nll', 'accuracy', 'nll', 'ece']].head(6)

# %% [markdown]
# Settings are chosen on validation examples. Test examples are for the table.

# %%
frame.groupby('pooling').validation_nll.mean().sort_values().round(4).to_frame()

# %% [markdown]
# ## The table
#
# Mean and standard error over seeds, and a paired t-test against `nwa` for each
# score. A difference is significant if its p-value passes Holm's correction over
# the settings. `bfl-tf compare` prints the same table.

# %%
compared = bfl_tf.compare(study, baseline='nwa')
table = compared.set_index(['score', 'setting'])[
  ['mean', 'standard_error', 'difference', 'p_value', 'significant']
]
table.to_latex(FOLDER / 'table.tex', float_format='%.4f')
table.round(4)

# %% [markdown]
# ## The figure
#
# The bands extend from the lowest to the highest seed.

# %%
figure = comparison.learning_curves(study)
figure.savefig(FOLDER / 'figure.pdf')
figure

# %% [markdown]
# With three seeds, no rule differs clearly from `nwa`. The smallest p-value,
# 0.04 for `lp`, is not significant after a correction for four comparisons.
