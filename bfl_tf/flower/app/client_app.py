"""The ClientApp, in a folder that Flower loads as its app."""

from bfl_tf.flower import client_side

app = client_side.app
