"""Examples of a run: data set, partition over clients, and server examples."""

from collections.abc import Iterable, Sequence
import dataclasses
import inspect
from typing import Any

import numpy as np

from bfl_tf import data, seeds
from bfl_tf.config.config import Config
from bfl_tf.data import columns, partitions
from bfl_tf.declare import user_code


def load(config: Config, built: dict[Any, Any] | None = None) -> data.Dataset:
  """Loads the data set of a run, or returns it from the cache `built`."""
  built = {} if built is None else built
  fields = dataclasses.fields(data.DatasetConfig)
  reading = {field.name: config.get(field.name) for field in fields}
  seed = config.seed_of_data if config.validation_split else 0
  key = ('dataset', seed, config.is_numeric, *reading.values())
  if key not in built:
    built[key] = data.load(**reading, seed=seed, is_numeric=config.is_numeric)
  return built[key]


def partition_dataset(
  config: Config, dataset: data.Dataset
) -> tuple[list[np.ndarray], np.ndarray]:
  """Returns the indices of each client, and those held out for the server."""
  # A single site may have one class or number only, but a run needs two.
  if dataset.is_constant:
    name = str((*dataset.class_names, 0)[0])
    if dataset.train.is_numeric:
      raise ValueError(
        f'--dataset={dataset.name}: all labels are equal to '
        f'{dataset.label_moments[0]:g} in float32: subtract a constant from '
        'labels that differ by less.'
      )
    raise ValueError(
      f'--dataset={dataset.name} has only the label {name!r}: a run needs at '
      'least two.'
    )
  labels = dataset.train.y
  num_held = config.num_server_examples or round(
    config.server_fraction * labels.size
  )
  groups, strata = dataset.train.groups, dataset.train.strata

  def hold_out(first):
    some = strata[first]
    number = round(num_held * some.size / labels.size)
    return partitions.hold_out(
      some, num_examples=number, seed=config.seed_of_data
    )

  server_indices, rest = columns.whole_groups(groups, hold_out)
  parts = columns.whole_groups(
    None if groups is None else groups[rest],
    lambda first: _partition(config, dataset, rest[first]),
  )
  return [rest[part].astype(np.int32) for part in parts], server_indices


def _partition(config, dataset, rest):
  """Returns for each client the places of its examples in `rest`."""
  if config.num_clients > len(rest):
    what = 'training examples' if dataset.train.groups is None else 'groups'
    raise ValueError(
      f'--num_clients={config.num_clients} exceeds the {len(rest)} {what} of '
      f'all clients.{_held_out(config)}'
    )
  what = f'--partition={config.partition}'
  method = config.selection.of('partition')
  context = dataclasses.replace(
    config.context(),
    seed=config.seed_of_data,
    num_classes=dataset.num_classes,
    rows=dataset.row_numbers[rest],
  )
  if 'client_ids' in inspect.signature(method.factory).parameters:
    ids = _client_ids(config, dataset, rest)
    context = dataclasses.replace(context, client_ids=ids)
  split = method.bind(context)
  try:
    parts = user_code.call(what, split, dataset.train.y[rest])
  except user_code.RaisedError:
    raise
  except ValueError as error:
    raise ValueError(f'{what}: {error}{_held_out(config)}') from error
  overlap = vars(method.factory).get('overlap', False)
  try:
    return partitions.checked(parts, len(rest), config.num_clients, overlap)
  except (TypeError, ValueError) as error:
    raise ValueError(f'{what} {error}') from error


def _held_out(config) -> str:
  """Returns a hint that names the shares that clients do not train on."""
  shares = (
    'validation_split', 'calibration_fraction', 'server_fraction',
    'num_server_examples',
  )  # fmt: skip
  used = [f'--{name}={config.get(name)}' for name in shares if config.get(name)]
  if not used:
    return ''
  return f' Other examples are held out by {", ".join(used)}.'


def _client_ids(config, dataset, rest):
  """Returns the site of each example; every site must have examples."""
  if dataset.train.ids is None:
    raise ValueError(
      f'--partition={config.partition} needs client_ids, which '
      f'--dataset={config.dataset} lacks: name the column of a .csv with '
      '--client_column, or add client_ids to an .npz.'
    )
  ids = dataset.train.ids[rest]
  splits = (dataset.train, dataset.validation)
  known = [split.ids for split in splits if split.ids is not None]
  gone = np.setdiff1d(np.concatenate(known), ids)
  if gone.size:
    took = [
      f'--{flag}={config.get(flag)}'
      for flag in ('validation_split', 'num_server_examples', 'server_fraction')
      if config.get(flag)
    ]
    raise ValueError(
      f'--partition={config.partition}: site {str(gone[0])!r} has no training '
      f'example left, because {" and ".join(took)} took all: lower them, or '
      'remove its rows.'
    )
  return ids


def client_names(
  dataset: data.Dataset, partition: Sequence[np.ndarray]
) -> Sequence[str]:
  """Returns the sites' names if each client is a site, otherwise ()."""
  if dataset.train.ids is None:
    return ()
  ids = np.asarray(dataset.train.ids)
  sites = [np.unique(ids[part]) for part in partition]
  names = tuple(str(site[0]) for site in sites if site.size == 1)
  return names if len(set(names)) == len(partition) else ()


def personal_rows(
  dataset: data.Dataset,
  split: str,
  partition: Sequence[np.ndarray],
  clients: Iterable[int],
  seed: int,
) -> dict[int, np.ndarray]:
  """Returns indices of the examples that score each client's personal model.

  They are the examples of the client's site. Without sites, they are a random
  part of the split with the class shares of the client's training examples; an
  example may then serve several clients. For numeric labels without sites, they
  are the whole split.
  """
  names, scored = client_names(dataset, partition), dataset.splits[split]
  of_sites: dict[str, np.ndarray] = dict(scored.sites)
  rows_by_client = {}
  for client in clients:
    if names and of_sites:
      rows = of_sites.get(names[client], np.zeros(0, int))
    elif scored.is_numeric:
      rows = np.arange(len(scored.y))
    else:
      generator = seeds.generator(seed, f'personal_{split}', client)
      rows = _alike(dataset.train.y[partition[client]], scored.y, generator)
    if len(rows):
      rows_by_client[client] = rows
    elif split == 'test':
      raise ValueError(
        f'client {names[client] if names else client} has no test example for '
        'its personal model: raise --test_fraction, or leave the site out with '
        '--min_site_examples.'
      )
  return rows_by_client


def _alike(train, scored, generator) -> np.ndarray:
  """Returns as many rows as possible with the class shares of `train`."""
  classes, counts = np.unique(train, return_counts=True)
  shares = counts / counts.sum()
  there = np.array([np.sum(scored == each) for each in classes])
  size = np.min(there / shares)
  rows = []
  for each, share in zip(classes, shares):
    of_class = generator.permutation(np.flatnonzero(scored == each))
    rows.append(of_class[: round(size * share)])
  return np.sort(np.concatenate(rows))


def of_server(
  config: Config, dataset: data.Dataset, rows: np.ndarray, built: dict[Any, Any]
) -> tuple[np.ndarray, np.ndarray | None]:
  """Returns the server's inputs and labels.

  The inputs are held-out training examples, or come from `--server_dataset`. In
  the second case the labels are None.
  """
  if config.server_dataset:
    key = (
      'server', dataset, config.server_dataset, config.server_split,
      config.resize,
    )  # fmt: skip
    if key not in built:
      built[key] = data.load_unlabeled(
        config.server_dataset,
        split=config.server_split,
        like=dataset,
        resize=config.resize,
      )
    images, labels = built[key], None
  else:
    images, labels = dataset.train.x[rows], dataset.train.y[rows]
  wanted = config.num_unlabeled_examples
  if wanted > len(images):
    raise ValueError(
      f'--num_unlabeled_examples={wanted} exceeds the {len(images)} examples '
      'of the server.'
    )
  if not wanted:
    return images, labels
  rng = seeds.generator(config.seed_of_data, 'unlabeled')
  chosen = np.sort(rng.permutation(len(images))[:wanted])
  return images[chosen], None if labels is None else labels[chosen]
