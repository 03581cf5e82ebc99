"""The cells of Figure 5: FedBE by the size of its unlabeled data."""

from experiments.papers.fedbe import grids, settings


def _sizes(sizes, kept, source='cifar10', split='train'):
  """Returns FedBE by number of unlabeled images; the server holds `kept`.

  The last size is all of `source`. At laptop scale, sizes are a fifth, at most
  `_AT_HAND` images of `split`. So are they for other sources at overnight
  scale.
  """
  other = {} if source == 'cifar10' else {'server_dataset': source}
  return {
    size: settings.cell(
      f'unlabeled_{source}', 'step', f'{size}',
      {
        **other, 'resize': bool(other), 'num_server_examples': kept,
        'num_unlabeled_examples': size if size < sizes[-1] else 0,
        # With few images, 20 epochs end before the usual start of SWA.
        **({'distil.swa_start': 50} if size < 1700 else {}),
      },
      laptop={
        'num_server_examples': kept // 5, 'server_split': split,
        'num_unlabeled_examples': min(size // 5, _AT_HAND),
        'distil.swa_start': 10, 'distil.swa_cycle': 10,
      },
      overnight=_of_what_is_here(size // 5, split) if other else {},
      smoke={
        'num_server_examples': 200, 'num_unlabeled_examples': 100,
        **({'server_dataset': 'digits'} if other else {}),
      },
    )
    for size in sizes
  }  # fmt: skip


def _of_what_is_here(size, split):
  return {
    'server_split': f'{split}[:{_AT_HAND}]',
    'num_unlabeled_examples': size if size < _AT_HAND else 0,
    'distil.swa_start': 50 if size < 1700 else 250,
  }


# Number of images in the splits of other data sets below paper scale.
_AT_HAND = 10000
_KEPT = 25000
SIZES = {
  'cifar10': _sizes((1000, 5000, 10000, _KEPT), _KEPT),
  'cifar100': _sizes((2000, 5000, 10000, 50000), 10000, 'cifar100', 'test'),
  'tiny_imagenet': _sizes(
    (2000, 5000, 10000, 100000), 10000, 'tiny_imagenet', 'validation'
  ),
}
WITHOUT = {
  'FedAvg': dict.fromkeys(SIZES, grids.MAIN['FedAvg', 'step ConvNet'])
  | {
    'cifar10': settings.cell(
      'unlabeled_cifar10', 'step', 'fedavg',
      {**settings.PAPER.flags('fedavg'), 'num_server_examples': _KEPT},
      laptop={'num_server_examples': _KEPT // 5},
    )
  },
  'FedAvg, all images': dict.fromkeys(
    SIZES,
    settings.cell(
      'all_images', 'step ConvNet', 'fedavg',
      settings.PAPER.flags('fedavg_all_data'),
      laptop={'num_server_examples': 0},
    ),
  ),
}  # fmt: skip
