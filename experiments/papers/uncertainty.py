"""Uncertainty evaluation of Fischer's models: our own experiment.

The models are those of Table 2 on IID data, weighted by size: three variants,
and five rules with KL / N. Half of the test examples fits a temperature and
prediction sets; the other half is scored. Each run is evaluated once; the
scores are stored in its directory.
"""

from bfl_tf.analysis import loading, reports, uncertainty
from experiments.harness import cells, tables
from experiments.papers.posterior_pooling import grids

_EXAMPLES, _SAMPLES = 2000, 20
PAPER = cells.Paper(
  'uncertainty',
  notes=dict.fromkeys(
    cells.SCALES,
    f'{_EXAMPLES} test examples and {_EXAMPLES} of each other set, {_SAMPLES} '
    'Monte Carlo samples.',
  ),
)
# In the folder `uncertainty`, which is deleted when a run is extended.
_FILE = 'uncertainty/answers.json'
# Similar (near) and dissimilar (far) data sets, by the data set of a run.
_OTHERS = {
  'cifar10': {'near': ('cifar100', 'tiny_imagenet@validation'),
              'far': ('mnist',)},
  'fashion_mnist': {'far': ('mnist',)},
  'digits': {'far': ('digits',)},
  'experiments.papers.board.data:cifar10': {'near': ('cifar100',),
                                               'far': ('mnist',)},
}  # fmt: skip


def evaluate(directory):
  """Returns scores of a finished run, with names of `experiments.compare`."""
  run = loading.load_run(directory, calibrate_on_test=0.5)
  others = [
    uncertainty.other(distance, text, run.dataset, _EXAMPLES)
    for distance, texts in _OTHERS[run.trained.config.dataset].items()
    for text in texts
  ]
  evaluated = uncertainty.evaluate(run, others, _SAMPLES, _EXAMPLES)
  return {
    **uncertainty.scores_by_name(evaluated.tables),
    **reports.scores_by_name(reports.report(run)),
  }


def measure(
  label: str, name: str, factor: float = 1.0, digits: int = 3
) -> cells.Measure:
  """Returns the measure of a score of `evaluate`."""

  def read(directory, predictor):
    # Only the run's own predictor is evaluated.
    answers = {} if predictor else cells.cached(directory, _FILE, evaluate)
    if name not in answers:
      raise cells.UnrecordedError(name)
    return answers[name]

  return cells.Measure(label, read, factor=factor, digits=digits)


_SHORT = {
  'entropy': 'normalized_entropy',
  'aleatoric': 'aleatoric_uncertainty',
  'epistemic': 'epistemic_uncertainty',
}
_SETS = {
  'CIFAR-100': 'near_cifar100',
  'Tiny-ImageNet': 'near_tiny_imagenet',
  'MNIST': 'far_mnist',
}
_DETECTION = tuple(
  measure(f'{shown}, {short}', f'{place}_{name}_auroc')
  for shown, place in _SETS.items()
  for short, name in _SHORT.items()
)
_CALIBRATION = (
  measure('NLL (nats)', 'nll_untempered'),
  measure('ECE', 'ece_untempered'),
  measure('overconfidence', 'overconfidence'),
  measure('temperature', 'temperature_tempered'),
  measure('NLL after', 'nll_tempered'),
  measure('ECE after', 'ece_tempered'),
  *(
    measure(f'AURC, {short}', f'aurc_{name}') for short, name in _SHORT.items()
  ),
)
_COVERAGE = tuple(
  measure(f'{label} of {level} % sets', f'{name}_{level / 100:g}')
  for level in (90, 95)
  for label, name in (('coverage', 'coverage'), ('size', 'size'))
)
_CORRUPTED = (
  measure('Accuracy (%)', 'corrupted_accuracy', factor=100, digits=2),
  measure('NLL (nats)', 'corrupted_nll'),
  measure('ECE', 'corrupted_ece'),
)
_CELLS = {
  'Deterministic, NWA': grids.E1['Deterministic NWA train_size', 'iid'],
  'MC dropout, NWA': grids.E1['MC Dropout NWA train_size', 'iid'],
  **{
    f'Flipout, {rule}': grids.KL_ALL[grids.method(rule), 'iid']
    for rule in cells.RULES
  },
}
_GRID = {(row, 'iid'): cell for row, cell in _CELLS.items()}
TABLES = tuple(
  tables.Table(PAPER, name, title, _GRID, measures)
  for name, title, measures in (
    (
      'out_of_distribution',
      'AUROC of out-of-distribution detection, by each uncertainty',
      _DETECTION,
    ),
    (
      'calibration',
      'calibration with and without temperature scaling, and AURC',
      _CALIBRATION,
    ),
    ('coverage', 'coverage and size of conformal prediction sets', _COVERAGE),
    (
      'corruptions',
      'images corrupted at strength 5, mean of five kinds',
      _CORRUPTED,
    ),
  )
)
