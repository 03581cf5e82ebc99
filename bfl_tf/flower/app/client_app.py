"""The ClientApp, where Flower finds it without importing TensorFlow."""

from bfl_tf.flower import clients

app = clients.app
