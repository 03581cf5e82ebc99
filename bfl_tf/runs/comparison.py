"""Comparison of settings by their scores over seeds, with paired tests.

A seed fixes partition and initial weights. Two settings are therefore compared
by their differences over common seeds. Each score has a two-sided Student's
test of `significance`, with Holm's correction over the settings that have the
same baseline.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import metrics
from bfl_tf.config import catalog
from bfl_tf.plots import recorded
from bfl_tf.runs import groups as groups_lib
from bfl_tf.runs import significance

Groups = Mapping[str, groups_lib.Group]
# Scores of a table if none are selected.
_USUAL = (
  'accuracy', 'auroc', 'rmse', 'nll', 'crps', 'ece', 'personal_accuracy',
  'personal_nll',
)  # fmt: skip


def compare(
  runs: recorded.Runs, baseline: str = '', scores: Sequence[str] = ()
) -> Any:
  """Compares settings over seeds, as `bfl-tf compare` does.

  Returns:
    A `pandas.DataFrame`; `rows` describes its columns.
  """
  import pandas

  groups = {}
  for name, paths in recorded.named(runs).items():
    groups_of_name = groups_lib.grouped(paths)
    if len(groups_of_name) != 1:
      raise ValueError(f'the runs of {name} must differ in the seed only.')
    groups[name] = groups_of_name[0]
  return pandas.DataFrame(rows(groups, scores, baseline))


def named(
  groups: Sequence[groups_lib.Group],
  names: Sequence[str] = (),
  keys: Sequence[str] = (),
) -> dict[str, groups_lib.Group]:
  """Returns groups by name; the default name is the flags that differ.

  Args:
    names: Texts such as `pooling=nwa:NWA`: some flags of one group and its
      name, or a flag of several groups and its new value.
  """
  of_values = labels(groups, names)
  groups = [
    dataclasses.replace(
      group,
      settings={
        key: of_values.get(f'{key}={value}', value)
        for key, value in group.settings.items()
      },
    )
    for group in groups
  ]
  keys = keys or groups_lib.differing(groups)
  group_names = [groups_lib.name(group, keys) for group in groups]
  for text in names:
    flags, _, label = text.rpartition(':')
    if flags in of_values:
      continue
    wanted = dict(word.partition('=')[::2] for word in flags.split())
    places = [
      place
      for place, group in enumerate(groups)
      if wanted and wanted.items() <= group.settings.items()
    ]
    if len(places) != 1 or not label or len(wanted) < len(flags.split()):
      raise ValueError(
        f'--names={text} must be FLAGS:NAME, such as pooling=nwa:Average, with '
        f'flags of exactly one of the settings {"; ".join(group_names)}. '
        'Commas separate several names.'
      )
    group_names[places[0]] = label
  if len({*group_names}) < len(group_names):
    raise ValueError(f'--names={",".join(names)} gives one name twice.')
  return dict(zip(group_names, groups, strict=True))


def labels(
  groups: Sequence[groups_lib.Group], names: Sequence[str]
) -> dict[str, str]:
  """Returns new values by flag, such as `method=fedavg` of several groups."""
  labels_by_flag = {}
  for text in names:
    flag, _, label = text.rpartition(':')
    key, _, value = flag.partition('=')
    having = [each for each in groups if each.settings.get(key) == value]
    if len(having) > 1 and label:
      labels_by_flag[flag] = label
  return labels_by_flag


def rows(
  groups: Groups,
  wanted: Sequence[str] = (),
  baseline: str = '',
  more: Sequence[str] = (),
  margins: Mapping[str, float] | None = None,
) -> list[dict[str, Any]]:
  """Returns one row per setting and score; missing numbers are None.

  Args:
    baseline: Name of the baseline, or some of its flags. With `pooling=nwa`,
      each setting is compared with the one that differs in this flag only,
      or with the only setting that has this flag. A text without `=` is the
      name of a method.
    margins: Largest difference from the baseline without importance, by score.

  Returns:
    Rows with `setting`, one column per flag that differs, `score`, `mean`,
    `standard_deviation`, `standard_error`, the number `n` of finite values,
    the number of `seeds`, and `best`: whether the setting is the best one on
    its task or does not differ significantly from it. A baseline adds the
    `difference` from it, `difference_standard_error`, `p_value` without and
    `significant` with Holm's correction; a margin adds `p_equivalent` and
    `equivalent`, likewise. Groups with failures add `failure`,
    the first reason.
  """
  every = {name: group.scores for name, group in groups.items()}
  keys = list(more) or groups_lib.differing([*groups.values()])
  others = baselines(groups, baseline, keys)
  return [
    row
    for score in _scores(every, wanted)
    for row in _of_score(
      groups, keys, score, every, others, (margins or {}).get(score)
    )
  ]


def _scores(every, wanted):
  scores = [each for runs in every.values() for each in runs.values()]
  known = list(dict.fromkeys(name for each in scores for name in each))
  for name in wanted:
    if name not in known:
      raise ValueError(
        f'--scores: no run has {name}. Choose from {", ".join(known)}.'
      )
  return wanted or [
    name for name in _USUAL if all(name in each for each in scores)
  ]


def _of_score(groups, keys, score, every, others, margin):
  values = {
    name: {seed: each.get(score, np.nan) for seed, each in runs.items()}
    | dict.fromkeys(groups[name].failures, np.nan)
    for name, runs in every.items()
  }
  has_failures = any(group.failures for group in groups.values())
  pairs = {
    name: _differences(values[name], values[other])
    for name, other in others.items()
  }
  # A test of the other seeds would leave out the worst ones.
  tested = {
    name: test
    for name, each in pairs.items()
    if np.isfinite(each).all() and (test := significance.student(each))
  }
  significant = _holm(others, {k: test.p_value for k, test in tested.items()})
  if margin is not None:
    same: dict[str, Any] = {
      name: significance.equivalence(pairs[name], margin) for name in tested
    }
    equivalent = _holm(others, same)
  best = _among_best(groups, keys, score, values)
  for name, group in groups.items():
    row = {'setting': name, **{key: group.settings.get(key) for key in keys}}
    row |= {'score': score, **_moments([*values[name].values()])}
    row['best'] = name in best
    if others:
      moments, test = _moments(pairs.get(name, ())), tested.get(name)
      row['difference'] = moments['mean']
      row['difference_standard_error'] = moments['standard_error']
      row['p_value'] = test and test.p_value
      row['significant'] = significant.get(name)
    if others and margin is not None:
      row['p_equivalent'] = same.get(name)
      row['equivalent'] = equivalent.get(name)
    if has_failures:
      reasons = [*dict.fromkeys(group.failures.values())]
      others_failed = f' (and {len(reasons) - 1} more)' if reasons[1:] else ''
      row['failure'] = reasons[0] + others_failed if reasons else None
    yield row


def _holm(others, p_values) -> dict[str, bool]:
  """Returns which tests are significant among those with one baseline."""
  is_significant: dict[str, bool] = {}
  for base in {*others.values()}:
    own = [name for name in p_values if others[name] == base]
    passed = significance.holm([p_values[name] for name in own])
    is_significant |= dict(zip(own, passed.tolist()))
  return is_significant


def _among_best(groups, keys, score, values) -> set[str]:
  """Returns the best settings of each task, with those that are not worse.

  These do not differ significantly from the best one, after Holm's correction
  over the settings of the task.
  """
  metric = metrics.find(score)
  if metric is None or not metric.best:
    return set()
  sign = 1 if metric.best == 'low' else -1
  task = [key for key in keys if key in catalog.of_task()]
  of_task: dict[tuple, dict[str, float]] = {}
  for name, group in groups.items():
    mean = sign * np.mean([*values[name].values()] or [np.nan])
    if np.isfinite(mean):
      place = tuple(group.settings.get(key) for key in task)
      of_task.setdefault(place, {})[name] = mean
  best = set()
  for means in of_task.values():
    first = min(means, key=means.__getitem__)
    tests = {
      name: significance.student(_differences(values[name], values[first]))
      for name in means
      if name != first
    }
    p_values = [test.p_value if test else 1.0 for test in tests.values()]
    worse = dict(zip(tests, significance.holm(p_values)))
    best |= {name for name in means if not worse.get(name)}
  return best


def _moments(values):
  finite = np.array([value for value in values if np.isfinite(value)])
  several = finite.size > 1
  return {
    'mean': float(finite.mean()) if finite.size else None,
    'standard_deviation': float(finite.std(ddof=1)) if several else None,
    'standard_error': significance.standard_error(finite),
    'n': finite.size,
    'seeds': len(values),
  }


def _differences(ours, theirs):
  """Returns the paired differences over common seeds; NaN after a failure."""
  common = [seed for seed in ours if seed in theirs]
  pairs = ([of[seed] for seed in common] for of in (ours, theirs))
  return significance.difference(*pairs)


def baselines(
  groups: Groups, baseline: str, keys: Sequence[str] = ()
) -> dict[str, str]:
  """Returns the name of the baseline of each other setting, by name.

  A setting is compared with the baseline of the same task: data, partition,
  network, privacy and attack. If several are left, with the one that has the
  same other values of `keys`. A setting without such a baseline is left out.
  """
  if not baseline:
    return {}
  if baseline in groups:
    return {name: baseline for name in groups if name != baseline}
  if '=' not in baseline:
    baseline = f'method={baseline}'
  keys = keys or groups_lib.differing([*groups.values()])
  flags = dict(word.partition('=')[::2] for word in baseline.split())
  matching = [
    name
    for name, group in groups.items()
    if flags.items() <= group.settings.items()
  ]
  if not matching:
    raise ValueError(
      f'--baseline={baseline} is no setting. Choose one of these, or some of '
      f'its flags: {"; ".join(groups)}.'
    )
  of_task = catalog.of_task() - flags.keys()
  others = {*keys} - of_task - flags.keys()
  baseline_of = {}
  for name in groups.keys() - {*matching}:
    near = [b for b in matching if _same(groups, {*keys} & of_task, b, name)]
    if len(near) > 1:
      near = [b for b in near if _same(groups, others, b, name)]
    if len(near) == 1:
      baseline_of[name] = near[0]
  return {name: baseline_of[name] for name in groups if name in baseline_of}


def _same(groups, keys, one, other):
  """Returns whether two groups have equal values; unused flags are ignored."""
  pairs = [
    (groups[one].settings.get(key), groups[other].settings.get(key))
    for key in keys
  ]
  return all(a == b for a, b in pairs if a is not None and b is not None)


def cells(
  lines: Sequence[Mapping[str, Any]], flags: Sequence[str] = ()
) -> list[list[str]]:
  """Returns a table of texts: the heading, then one line per setting."""
  scores = list(dict.fromkeys(line['score'] for line in lines))
  table = [[*(flags or ['setting']), 'seeds', *scores]]
  for setting in dict.fromkeys(line['setting'] for line in lines):
    own = [line for line in lines if line['setting'] == setting]
    names = [own[0][key] or '-' for key in flags] or [setting]
    table.append([*names, str(own[0]['seeds']), *map(_text, own)])
  return table


def _text(line):
  """Returns `0.9123 ± 0.0012*`; `*` is a significant difference, `=` none.

  If some runs have no value, such as a diverged model: `0.9123 (2 of 3)`.
  """
  if line['mean'] is None:
    return '-'
  usual = not line['mean'] or 1e-3 <= abs(line['mean']) < 1e6
  style = '.4f' if usual else '.1e'
  text = f'{line["mean"]:{style}}'
  if line['standard_error'] is not None:
    text += f' ± {line["standard_error"]:{style}}'
  text += '*' if line.get('significant') else ''
  text += '=' if line.get('equivalent') else ''
  if line['n'] < line['seeds']:
    text += f' ({line["n"]} of {line["seeds"]})'
  return text
