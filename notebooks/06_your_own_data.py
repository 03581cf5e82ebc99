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
# This notebook trains on a table with several sites, evaluates the model for
# each site and predicts new examples, in about five minutes. The wines are
# real, three cultivars from one region; the three sites are artificial. Replace
# the table by your own: a CSV file with one column for the class and one for
# the site.

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
# The number of wines of each cultivar at each site. No site has a
# representative sample, and `river` has hardly any barbera:

# %%
pd.crosstab(table.site, table.cultivar)

# %% [markdown]
# ## Train
#
# Each site is a client: `partition='natural'`. Each site holds out a fifth of
# its rows for testing, and a part of the rest for calibration. Features are
# standardized with sums that the sites send. No row leaves its site, and text
# columns need no encoding.

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
# ## Where does the model fail?
#
# The global model is scored on the test rows of each site. A personalized
# model, which each site trains with the global posterior as the prior, is
# scored on the same rows. Each site has only about ten test rows, so that one
# row is a tenth of the accuracy.

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
# Eighteen wines are new to every site. A prediction set contains the true
# cultivar of nine in ten such wines. A set with one name is a definite answer;
# refer a set with several names to an expert.

# %%
wines = bfl_tf.data.rows_like(
  FOLDER / 'new.csv', run.trained.task.features
)
prediction = run.trained.predict(wines)
classes = pd.Index(run.trained.task.classes)
sets_90, _ = report.sets.classes(prediction.probs)
pd.DataFrame(
  {
    'class': classes[prediction.probs.argmax(1)],
    'probability': prediction.probs.max(1),
    'entropy': prediction.normalized_entropy,
    'epistemic': prediction.epistemic_uncertainty,
    'set of 90 %': [', '.join(classes[each]) for each in sets_90],
  }
).round(4)

# %% [markdown]
# The commands are `bfl-tf run`, `bfl-tf report` and `bfl-tf predict`: [your own
# data](../docs/your_data.md). Next: [out-of-distribution
# detection](07_out_of_distribution.ipynb).
