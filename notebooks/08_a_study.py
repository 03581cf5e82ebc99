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
# Five rules, three seeds, a table and a figure as a paper takes them, in five
# minutes on two cores. On a command line `bfl-tf sweep` does all this:
# [which of several runs](../docs/your_data.md#which-of-several-runs).

# %%
import contextlib
import io
import logging
import os
import pathlib
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
ROOT = pathlib.Path.cwd()
ROOT = ROOT.parent if ROOT.name == 'notebooks' else ROOT
sys.path.insert(0, str(ROOT))  # For `experiments`.

import bfl_tf
from bfl_tf.plots import comparison
from bfl_tf.runs import groups as groups_lib
from experiments.harness import comparison as comparison_lib
from experiments.harness import tables
import pandas as pd

# A model after another is compiled anew; TensorFlow would warn of it.
logging.getLogger('tensorflow').setLevel('ERROR')

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
scratch = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(scratch.name)

# %% [markdown]
# ## The runs
#
# A preset with another rule is another config. `sweep` plays what is not finished
# in its folder: called again with more rules or seeds it adds them. A fifth of the
# training examples are held back to choose by.

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
with contextlib.redirect_stdout(io.StringIO()):  # It prints a line a run.
  study = bfl_tf.sweep(configs, FOLDER, seeds=(0, 1) if SMOKE else (0, 1, 2))

# %% [markdown]
# ## The frame
#
# A row a run, with a column a flag that differs and its last scores.

# %%
frame = bfl_tf.read_runs(FOLDER)
frame[['pooling', 'seed', 'validation_nll', 'accuracy', 'nll', 'ece']].head(6)

# %% [markdown]
# A setting is chosen on validation examples; the test examples are for the table.

# %%
frame.groupby('pooling').validation_nll.mean().sort_values().round(4).to_frame()

# %% [markdown]
# ## The table
#
# Mean ± standard error; a star marks what differs from `nwa` by Student's paired
# test over the seeds, two-sided at 5 %, by Holm's correction over the rules.

# %%
groups = comparison_lib.named(
  groups_lib.grouped(run for runs in study.values() for run in runs)
)
lines = comparison_lib.rows(groups, ['accuracy', 'nll', 'ece'], 'pooling=nwa')
cells = comparison_lib.cells(lines, ['pooling'])
(FOLDER / 'table.tex').write_text(tables.tex(cells))
header, *body = cells
pd.DataFrame(body, columns=header).set_index('pooling')

# %% [markdown]
# ## The figure
#
# Bands go from the lowest seed to the highest.

# %%
figure = comparison.learning_curves(study)
figure.savefig(FOLDER / 'figure.pdf')
figure

# %% [markdown]
# No rule has a star: by three seeds none differs from `nwa` in accuracy, NLL or
# calibration. Validation NLL would choose `conflation`, by less than one standard
# error of the test NLL of any of them.
