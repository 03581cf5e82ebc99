"""Client parts: what a method adds to the one training loop (`part.Part`)."""

from bfl_tf.clients.gradient_noise import GradientNoise
from bfl_tf.clients.own_start import OwnStart
from bfl_tf.clients.projection import BALLS, Projection
from bfl_tf.clients.proximal import PENALTIES, Proximal
from bfl_tf.clients.swag import Swag

__all__ = [
  'BALLS',
  'PARTS',
  'PENALTIES',
  'GradientNoise',
  'OwnStart',
  'Projection',
  'Proximal',
  'Swag',
]

PARTS = {
  'gradient_noise': GradientNoise,
  'own_start': OwnStart,
  'projection': Projection,
  'proximal': Proximal,
  'swag': Swag,
}
