"""Executes each notebook's `.py` file and writes its `.ipynb` file.

    python notebooks/refresh.py [01_quickstart.py ...]

Cells have fixed ids, and the output on stderr and the timings are omitted.
Two versions of an `.ipynb` file thus differ only in results.
"""

import pathlib
import sys

import jupytext
import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parent


def refresh(source: pathlib.Path) -> None:
  """Executes one notebook at the full setting and writes it."""
  notebook = jupytext.read(source)
  nbclient.NotebookClient(
    notebook,
    timeout=600,
    kernel_name='python3',
    record_timing=False,
    resources={'metadata': {'path': str(FOLDER)}},
  ).execute()
  for number, cell in enumerate(notebook.cells):
    cell.id = f'{source.stem}-{number}'
    if cell.cell_type == 'code':
      cell.outputs = [o for o in cell.outputs if o.get('name') != 'stderr']
  nbformat.write(notebook, source.with_suffix('.ipynb'))


if __name__ == '__main__':
  names = sys.argv[1:]
  for path in sorted(FOLDER.glob('[0-9]*.py')):
    if not names or path.name in names:
      refresh(path)
