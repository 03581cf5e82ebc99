"""Partitions of the training examples over clients.

A partition is a pure function of `labels` (integer classes `[num_examples]`),
`num_clients` and `seed` (an integer from 0). It returns one sorted int32 index
array per client. Each example belongs to exactly one client, and no client is
empty. A partition raises a ValueError if its constraints cannot be satisfied.
The bounds of settings, and `num_clients`, are checked before the call.
"""

from bfl_tf.data.partitions.dirichlet import dirichlet
from bfl_tf.data.partitions.preferences import interest, label_quantity
from bfl_tf.data.partitions.simple import class_split, iid, natural
from bfl_tf.data.partitions.splitting import checked, counts, hold_out
from bfl_tf.data.partitions.step import shards, step

PARTITIONS = {
  'class_split': class_split,
  'dirichlet': dirichlet,
  'iid': iid,
  'interest': interest,
  'label_quantity': label_quantity,
  'natural': natural,
  'shards': shards,
  'step': step,
}
# Partitions that do not use the classes of the examples.
FOR_NUMBERS = (iid, natural)
