"""Tests that notebooks run and agree with their Python files."""

import pathlib
import runpy
import sys

import jupytext
import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_FOLDER = _ROOT / 'notebooks'
_NOTEBOOKS = sorted(_FOLDER.glob('*.ipynb'))
_REFRESH = 'run: python notebooks/refresh.py'


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_and_its_python_file_have_the_same_cells(path):
  ours, theirs = (
    [(cell.cell_type, cell.source) for cell in jupytext.read(file).cells]
    for file in (path, path.with_suffix('.py'))
  )
  assert ours == theirs, _REFRESH


@pytest.mark.process
@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch):
  """Runs the Python file in this process, which has TensorFlow already."""
  monkeypatch.setenv('BFL_TF_SMOKE', '1')
  monkeypatch.chdir(_FOLDER)
  # Notebook 04 adds a folder to the path.
  monkeypatch.setattr(sys, 'path', [*sys.path])
  shown = runpy.run_path(str(path.with_suffix('.py')))
  assert shown['SMOKE']
