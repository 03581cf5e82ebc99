"""Client parts: additions to the local training of a client."""

from bfl_tf.clients.ditto import Ditto
from bfl_tf.clients.fedpa import FedPA
from bfl_tf.clients.keep_local import KeepLocal
from bfl_tf.clients.local_layers import LocalLayers
from bfl_tf.clients.pfedbayes import PFedBayes
from bfl_tf.clients.projection import Projection
from bfl_tf.clients.proximal import Proximal
from bfl_tf.clients.swag import Swag
