"""The ServerApp, in a folder that Flower loads as its app."""

from bfl_tf.flower import servers

app = servers.app
