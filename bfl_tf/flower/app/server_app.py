"""The ServerApp, where Flower finds it without importing TensorFlow."""

from bfl_tf.flower import servers

app = servers.app
