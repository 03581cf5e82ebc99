"""Attacks by clients, and the projection of their models."""

from bfl_tf.clients.projection import Projection
