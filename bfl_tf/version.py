"""The version of the package, and the format of run directories."""

__version__ = '0.5.0'

# A release that reads and continues runs of the last one keeps this number.
# Format 2: `memories.bin` begins with a header. Format 3: --server_parts.
# Format 4: --min_scale. Format 5: --schedule.
FORMAT = 5
