"""The notebooks: pairs that agree, outputs fit to show, and they run."""

import pathlib
import runpy
import sys

import jupytext
import nbformat
import pytest

import bfl_tf
from bfl_tf import config as config_lib


_ROOT = pathlib.Path(__file__).parents[2]
_FOLDER = _ROOT / 'notebooks'
_NOTEBOOKS = sorted(_FOLDER.glob('*.ipynb'))
_REFRESH = 'run: python notebooks/refresh.py'


def _code(notebook):
  return [cell for cell in notebook.cells if cell.cell_type == 'code']


def test_each_has_its_pair():
  assert {path.stem for path in _NOTEBOOKS} == {
    path.stem for path in _FOLDER.glob('[0-9]*.py')
  }


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_pair_has_the_same_cells(path):
  ours, theirs = (
    [(cell.cell_type, cell.source) for cell in jupytext.read(file).cells]
    for file in (path, path.with_suffix('.py'))
  )
  assert ours == theirs, _REFRESH


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_fit_to_show(path):
  cells = _code(nbformat.read(path, as_version=4))
  assert [cell.execution_count for cell in cells] == [
    *range(1, len(cells) + 1)
  ], _REFRESH
  outputs = [output for cell in cells for output in cell.outputs]
  assert any('image/png' in output.get('data', {}) for output in outputs)
  for output in outputs:
    assert output.output_type in ('display_data', 'execute_result')


def test_quickstart_is_the_preset():
  notebook = jupytext.read(_FOLDER / '01_quickstart.py')
  (source,) = (
    cell.source
    for cell in _code(notebook)
    if cell.source.startswith('QUICKSTART = ')
  )
  names = {'bfl_tf': bfl_tf}
  exec(source, names)
  preset = config_lib.read_flagfile(_ROOT / 'configs/quickstart.flags')
  assert names['QUICKSTART'] == bfl_tf.Config.of(preset)


@pytest.mark.process
@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, monkeypatch):
  """The pair in Python, in this process, where TensorFlow has started."""
  monkeypatch.setenv('BFL_TF_SMOKE', '1')
  monkeypatch.chdir(_FOLDER)
  # 04 imports the experiments by its folder.
  monkeypatch.setattr(sys, 'path', [*sys.path])
  shown = runpy.run_path(str(path.with_suffix('.py')))
  assert shown['SMOKE']
