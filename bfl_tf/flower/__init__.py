"""Run experiments with Flower, in a simulation or on several machines.

Needs the extra `flower`: pip install '.[flower]'. What clients and server
do is `federation`'s; this room carries it over Flower's messages.
"""

from bfl_tf.flower.simulation import simulate
from bfl_tf.flower.strategy import BayesianStrategy
from bfl_tf.flower.superlink import ask_sites, FlowerError, play
