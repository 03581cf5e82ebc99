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
# # Your own data
#
# From a table of several sites to predictions, and to what they are worth, in
# five minutes. The wines are real, three cultivars from one region; the three
# sites are made up. Put your own file in place of it: any CSV with a column for
# the class and one that says whose a row is.

# %%
import os
import pathlib
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import bfl_tf
from bfl_tf.runs import checkpoints
from bfl_tf.analysis import personalized
from bfl_tf.analysis import loading
from bfl_tf.analysis import reports
import pandas as pd

# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {'dpi': 80}

SMOKE = os.environ.get('BFL_TF_SMOKE') == '1'
ROOT = pathlib.Path.cwd()
ROOT = ROOT.parent if ROOT.name == 'notebooks' else ROOT
FOLDER = ROOT / 'configs' / 'wine_sites'

# %%
table = pd.read_csv(FOLDER / 'wine.csv')
table.head(4)

# %% [markdown]
# Who has what. Nobody has a fair sample, and `river` has hardly any barbera:

# %%
pd.crosstab(table.site, table.cultivar)

# %% [markdown]
# ## Train
#
# A site is a client: `partition='natural'`. Each holds out a fifth of its rows to
# test on and a part of the rest to calibrate by. Features are standardised by
# sums that the sites send; no row leaves its site, no text needs a number.

# %%
config = bfl_tf.Config(
  dataset=str(FOLDER / 'wine.csv'),
  label_column='cultivar',
  client_column='site',
  partition='natural',
  num_clients=3,
  calibration_fraction=0.3,
  num_rounds=2 if SMOKE else 20,
  local_epochs=5,
  batch_size=16,
  client_learning_rate=0.003,
  settings={
    'mlp.hidden_units': (32,),
    'flipout.prior_scale': 1,
    'flipout.temperature': 0.003,
  },
)
scratch = tempfile.TemporaryDirectory()
RUN = pathlib.Path(scratch.name) / 'wine'
summary = bfl_tf.run(config, RUN, show_progress=False)
pd.Series(summary['final']).round(4)

# %% [markdown]
# ## For whom does it fail?
#
# The global model on each site's own test rows, and a model that each site trains
# on from it, for itself, with the global posterior as the prior. A dozen rows a
# site are few: one row is a tenth of the accuracy.

# %%
run = loading.load_run(RUN)
state = checkpoints.restore(RUN)
own = personalized.train(run, state, epochs=5)
report = reports.report(run, own)
pd.DataFrame(report.sites).set_index('site').T.round(4)

# %%
pd.DataFrame(report.summary).set_index('over').T.round(4)

# %%
bfl_tf.plots.dots(
  {
    row['class']: {
      'Recall': row['recall'],
      'Coverage of 90 %': row['coverage_0.9'],
    }
    for row in report.classes
  },
  'Fraction of the class',
  'The global model on each cultivar',
  {'Coverage of 90 %': 0.9},
)

# %% [markdown]
# ## Predict
#
# Eighteen wines that no site had. A set holds the cultivar of nine in ten such
# wines; one of a single name is a firm answer, several are a case for a person.

# %%
wines = bfl_tf.data.rows_like(
  FOLDER / 'new.csv', run.trained.task.features
)
said = run.trained.predict(wines)
classes = pd.Index(run.trained.task.classes)
nine_in_ten, _ = report.promise.sets(said.probs)
pd.DataFrame(
  {
    'class': classes[said.probs.argmax(1)],
    'probability': said.probs.max(1),
    'entropy': said.normalized_entropy,
    'epistemic': said.epistemic_uncertainty,
    'set of 90 %': [', '.join(classes[each]) for each in nine_in_ten],
  }
).round(4)

# %% [markdown]
# In a shell the same is `bfl-tf run`, `bfl-tf report` and `bfl-tf predict`:
# [your own data](../docs/your_data.md). Then [when not to trust
# it](07_out_of_distribution.ipynb).
