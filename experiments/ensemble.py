"""Average the predictions of finished runs.

  bfl-tf ensemble --runs=runs/a,runs/b,runs/c --output_dir=runs/ensemble

The output is the directory of a finished run, which predict, report,
uncertainty, export and compare accept. The runs must have the same data,
including --data_seed; method, rounds and rates may differ. Exit code 2: a flag
or a run is wrong, and nothing was written.
"""

from absl import flags

from bfl_tf import runs
from bfl_tf.analysis import ensembles
from experiments import command_line

_RUNS = flags.DEFINE_list(
  'runs', [], 'Directories of finished runs, separated by commas.'
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', None, 'Directory of the ensemble, which must not exist.'
)


def main() -> None:
  """Writes the ensemble and prints its final scores."""
  if not _OUTPUT_DIR.value:
    command_line.fail('--output_dir is missing: name a new folder.')
  summary = ensembles.write(_RUNS.value, _OUTPUT_DIR.value)
  print(
    f'ensemble of {len(_RUNS.value)} runs\n{runs.table(summary)}\n\n'
    f'results in {_OUTPUT_DIR.value}'
  )


if __name__ == '__main__':
  command_line.main(main)
