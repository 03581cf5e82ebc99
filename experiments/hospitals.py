"""Write the table of three simulated hospitals, whose true risks are known.

  python -m experiments.hospitals --output=hospitals
  python -m experiments.hospitals --compare=hospitals/predictions.csv
  python -m experiments.hospitals --pooled=hospitals

The folder gets visits.csv, with the outcome of 930 visits, and new.csv, with
2000 more visits per hospital and their true risks. A patient may have several
visits. Hospitals differ in their patients, their baseline risk and their codes
of missing values. --compare prints how far the predictions of bfl-tf predict
for new.csv are from the true risks. --pooled prints the same for a logistic
regression on the visits of all hospitals together.
"""

import pathlib

from absl import flags
import numpy as np
import pandas as pd
from scipy import special

from bfl_tf import seeds
from bfl_tf.analysis import risk
from experiments import command_line

_OUTPUT = flags.DEFINE_string('output', '', 'Folder of the two tables.')
_SEED = flags.DEFINE_integer('seed', 0, 'Random seed of the visits.')
_COMPARE = flags.DEFINE_string(
  'compare',
  '',
  'Output of bfl-tf predict for new.csv, with '
  '--keep_columns=site,died,true_risk.',
)

_POOLED = flags.DEFINE_string(
  'pooled', '', 'Folder of the two tables, for a pooled logistic regression.'
)

# Number of visits, mean age, fraction of emergencies, shift of the log odds and
# code of missing values.
_SITES = {
  'Aachen': (600, 68, 0.55, 0.0, '-999'),
  'Bonn': (250, 60, 0.35, 0.5, 'NA'),
  'Celle': (80, 76, 0.75, -0.6, 'n.d.'),
}
# Change of the log odds per unit, and the value that it is relative to.
_EFFECTS = {
  'age': (0.045, 65), 'crp': (0.006, 30), 'creatinine': (0.45, 1.1),
  'lactate': (0.35, 1.6), 'sbp': (-0.012, 128), 'haemoglobin': (-0.10, 12.5),
}  # fmt: skip
_MISSING = {'bmi': 0.12, 'crp': 0.08, 'lactate': 0.15, 'haemoglobin': 0.04}


def visits(site: str, number: int, seed: int, purpose: str) -> pd.DataFrame:
  """Returns visits of a hospital, with the column `true_risk`."""
  _, age, emergencies, shift, code = _SITES[site]
  rng = seeds.generator(seed, purpose, list(_SITES).index(site))
  total = max(1, int(number / 1.4))
  person = np.append(np.arange(total), rng.integers(0, total, number - total))
  emergency = rng.random(number) < emergencies
  planned = np.where(rng.random(number) < 0.8, 'elective', 'transfer')
  date = pd.Timestamp('2023-01-01') + pd.to_timedelta(
    rng.integers(0, 900, number), 'D'
  )
  creatinine = np.exp(rng.normal(0.05, 0.45, total))[person]
  found = pd.DataFrame(
    {
      'patient': [f'{site[0]}{each:05d}' for each in person],
      'site': site,
      'date': date.strftime('%Y-%m-%d'),
      'age': np.clip(rng.normal(age, 13, total), 18, 99).round()[person],
      'sex': np.where(rng.random(total) < 0.54, 'm', 'f')[person],
      'admission': np.where(emergency, 'emergency', planned),
      'bmi': rng.normal(26.5, 4.5, number).round(1),
      'creatinine': creatinine * np.exp(rng.normal(0, 0.15, number)),
      'crp': np.exp(rng.normal(3.0, 1.1, number)).round(1).clip(0.3, 400),
      'haemoglobin': rng.normal(12.5, 1.8, total)[person]
      + rng.normal(0, 0.5, number),
      'lactate': np.exp(rng.normal(0.4, 0.45, number)).round(1),
      'sbp': rng.normal(128, 21, number).round(),
    }
  ).round({'creatinine': 2, 'haemoglobin': 1})
  odds = -3.0 + shift + 0.7 * emergency + 0.25 * (found.sex == 'm')
  odds += sum(
    slope * (found[name] - zero) for name, (slope, zero) in _EFFECTS.items()
  )
  found['true_risk'] = special.expit(odds)
  died = rng.random(number) < found.true_risk
  found['died'] = np.where(died, 'yes', 'no')
  found = found.astype({'age': int, 'sbp': int})
  for name, fraction in _MISSING.items():
    gaps = rng.random(number) < fraction
    found[name] = found[name].astype(str).where(~gaps, code)
  return found


def compare(table: pd.DataFrame) -> pd.DataFrame:
  """Returns the distance of predictions from the true risks, by hospital."""
  rows = {}
  parts = [('all', table), *table.groupby('site')]
  for name, part in parts:
    p = part.probability_yes.to_numpy()
    both = np.stack([1 - p, p], 1)
    # The true log odds are regressed on the predicted ones.
    slope, intercept = np.polyfit(
      risk.log_odds(both, 1), special.logit(part.true_risk), 1
    )
    rows[name] = {
      'visits': len(part),
      'true_risk': part.true_risk.mean(),
      'risk': p.mean(),
      'slope': slope,
      'intercept': intercept,
    }
    if 'probability_yes_q05' in part:
      low, high = part.probability_yes_q05, part.probability_yes_q95
      inside = (low <= part.true_risk) & (part.true_risk <= high)
      rows[name]['in_interval'] = inside.mean()
    for label in ('yes', 'no') if 'set_0.9' in part else ():
      own = part[part.died == label]['set_0.9']
      rows[name][f'{label}_in_set'] = own.str.split('|').map(
        lambda each, label=label: label in each
      ).mean()  # fmt: skip
  return pd.DataFrame(rows).T


def pooled(folder: pathlib.Path) -> pd.DataFrame:
  """Returns `compare` of logistic regression with scikit-learn on all rows."""
  from sklearn import (
    compose,
    impute,
    linear_model,
    pipeline,
    preprocessing,
  )

  codes = [code for *_, code in _SITES.values()]
  known, new = (
    pd.read_csv(folder / f'{name}.csv', na_values=codes)
    for name in ('visits', 'new')
  )
  numbers = [*_EFFECTS, 'bmi']
  model = pipeline.make_pipeline(
    compose.make_column_transformer(
      (impute.SimpleImputer(add_indicator=True), numbers),
      (preprocessing.OneHotEncoder(drop='first'), ['sex', 'admission']),
    ),
    preprocessing.StandardScaler(),
    linear_model.LogisticRegression(),
  ).fit(known, known.died)
  return compare(new.assign(probability_yes=model.predict_proba(new)[:, 1]))


def main() -> None:
  """Writes the tables, or compares predictions with the true risks."""
  if _COMPARE.value:
    try:
      table = pd.read_csv(_COMPARE.value)
      print(compare(table).round(3).to_string())
    except (OSError, AttributeError, KeyError) as error:
      raise ValueError(
        f'--compare={_COMPARE.value}: name the output of bfl-tf predict with '
        f'--keep_columns=site,died,true_risk ({error}).'
      ) from error
    return
  if _POOLED.value:
    print(pooled(pathlib.Path(_POOLED.value)).round(3).to_string())
    return
  if not _OUTPUT.value:
    command_line.fail('--output is missing: name a folder.')
  folder = pathlib.Path(_OUTPUT.value)
  folder.mkdir(parents=True, exist_ok=True)
  for file, purpose in (('visits', 'hospital_visits'), ('new', 'new_visits')):
    parts = [
      visits(site, row[0] if file == 'visits' else 2000, _SEED.value, purpose)
      for site, row in _SITES.items()
    ]
    table = pd.concat(parts)
    if file == 'visits':
      table = table.drop(columns='true_risk')
    table.to_csv(folder / f'{file}.csv', index=False)
  print(f'visits.csv and new.csv in {folder}')


if __name__ == '__main__':
  command_line.main(main)
