"""The ClientApp, where Flower finds it without importing TensorFlow."""

from bfl_tf.flower import client_side

app = client_side.app
