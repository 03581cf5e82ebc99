"""Execution with Flower, in a simulation or on several machines.

Needs the extra `flower`: pip install '.[flower]'. `federation` implements
client and server; this package sends their data in Flower's messages.
"""

from bfl_tf.flower.simulation import simulate
from bfl_tf.flower.strategy import BayesianStrategy
from bfl_tf.flower.superlink import evaluate_on_sites, execute, FlowerError
