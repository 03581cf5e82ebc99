"""Settings of the cells of Ozdayi et al. 2020.

At laptop scale, the network is a LeNet-5 on the first 5 000 images of CIFAR-10;
it has no normalization either. At overnight scale, it is a Fixup ResNet-8 on
the paper's images.
"""

from collections.abc import Mapping
import functools
from typing import Any

from experiments.harness import cells

PAPER = cells.Paper(
  'noniid_techniques',
  citation='Ozdayi et al. 2020',
  scales={
    'overnight': {'model': 'fixup_resnet8', 'num_rounds': 40},
    'laptop': {
      'train_split': 'train[:5000]',
      'test_split': 'test[:5000]',
      'augment': False,
      'model': 'lenet5',
      'batch_size': 64,
      'client_learning_rate': 0.02,
      'fine_tune.learning_rate': 0.02,
      'num_rounds': 20,
      'eval_every': 4,
      'num_eval_examples': 1000,
      'num_mc_samples': 4,
      'final_num_mc_samples': 20,
    },
    'smoke': cells.SMALLEST,
  },
  notes={
    'paper': 'The settings of the paper, and our own where the paper gives '
    'none (docs/results/noniid_techniques.md). A tenth of the images is for '
    'validation.',
    'overnight': "Fixup ResNet-8 on the paper's images, 40 rounds.",
    'laptop': 'LeNet-5 on the first 5 000 images of CIFAR-10, batch size 64, '
    'learning rate 0.02, 20 rounds. Radius of the projection: 2, or 20 around '
    'zero. Pooled posteriors: 10 rounds.',
  },
)

# Radii at laptop scale, by validation data; a LeNet-5 starts at norm 22.
_RADIUS = {'update': 2.0, 'model': 20.0}
# Settings of variational agents at laptop scale.
_SHORT = {'num_rounds': 10, 'eval_every': 10, 'final_num_mc_samples': 10}
_SIGN = 'adjustable rate'
_PLACE = 'experiments.papers.noniid_techniques'
_BALL_PART = f'{_PLACE}.projection:projection'
_NOISE_PART = f'{_PLACE}.gradient_noise:gradient_noise'
_SIGN_STAGE = f'{_PLACE}.sign_threshold:sign_threshold'
NAMES = str.maketrans(' +%.', '____')


@functools.cache
def cell(
  server_data: bool = False,
  momentum: float = 0.0,
  sign: bool = False,
  ball: str = '',
  noise: float = 0.0,
  rule: str = '',
) -> cells.Cell:
  """Returns the cell of some techniques on NIID(5), from a cache.

  Args:
    server_data: Whether the server fine-tunes on 5 % of the images.
    momentum: Momentum of the server.
    sign: Whether there is a sign threshold, of 2.
    ball: Ball of the projection, one of `projection.BALLS`; no projection if
      empty.
    noise: Standard deviation of the noise on the agents' gradients.
    rule: Pooling rule of variational agents; deterministic agents if empty.
  """
  overrides: dict[str, Any] = {
    'client_parts': _chain({_BALL_PART: ball, _NOISE_PART: noise}),
    **({'projection.ball': ball} if ball else {}),
    **({'gradient_noise.scale': noise} if noise else {}),
    'momentum.decay': momentum,
  }
  if server_data:
    overrides |= PAPER.flags('server_data')
  servers = {'momentum': momentum, _SIGN_STAGE: sign, 'fine_tune': server_data}
  overrides['server_parts'] = _chain({**servers, 'ensemble': True})
  if rule:
    overrides |= PAPER.flags('flipout') | {'pooling': rule}
  name = label(server_data, momentum, sign, ball, noise)
  place = f'{rule or "niid5"}/{name.translate(NAMES).lower()}'
  laptop: dict[str, Any] = {}
  if ball:
    laptop['projection.radius'] = _RADIUS[ball]
  if rule:
    laptop |= _SHORT | {'server_parts': _chain(servers)}
  return cells.Cell(PAPER, place, overrides, {'laptop': laptop})


def _chain(members):
  return tuple(name for name, is_there in members.items() if is_there)


def label(server_data, momentum, sign, ball, noise) -> str:
  """Returns the name of techniques; if published, that of the row."""
  bound = 'L2 bound 3' if ball != 'model' else 'L2 bound 3 around zero'
  parts = (
    'server data 5%' * server_data,
    f'momentum {momentum:g}' if momentum else '',
    _SIGN * sign,
    bound * bool(ball)
    + f' noise {noise:.0e}'.replace('e-0', 'e-') * bool(noise),
  )
  return ' + '.join(part.strip() for part in parts if part) or 'none'


def other(
  name: str, overrides: Mapping[str, Any], **by_scale: Mapping[str, Any]
) -> cells.Cell:
  """Returns a cell that is no combination of techniques."""
  return cells.Cell(PAPER, name, overrides, by_scale)
