"""What a run is made from: its fields, its methods and their settings."""

from bfl_tf.config.config import Config, FIELDS, read_flagfile, ROLES
