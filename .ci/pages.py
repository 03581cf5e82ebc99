"""Hooks of mkdocs that build the site from the repository's Markdown files.

README.md becomes the first page. The pages of flags and of the Python API are
made from the code. A linked file outside docs/ is copied to
files/ in the site, and a linked folder becomes a page that lists its files. A
link without a target is an error. Mathematics is rendered as MathML, which
browsers display without a script.
"""

from collections.abc import Iterator
import html
import pathlib
import posixpath
import re

from latex2mathml import converter
from mkdocs import exceptions
from mkdocs.structure import files as files_lib
import nbconvert

from experiments import describe

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS, README = ROOT / 'docs', ROOT / 'README.md'
_API = """\
# API

Docstrings of functions and classes; those of base classes are in
[contracts](contracts.md).

::: bfl_tf.config.config.Config
::: bfl_tf.runs.run.run
::: bfl_tf.runs.study
::: bfl_tf.runs.groups
::: bfl_tf.runs.comparison.compare
::: bfl_tf.analysis
    options:
      show_submodules: true
      filters: ["!^_", "!^(features|report_files|site_statistics)$"]
::: bfl_tf.data.columns.Dataset
::: bfl_tf.data.loading.load
::: bfl_tf.data.csv_files.rows_like
::: bfl_tf.server.pooling
::: bfl_tf.metrics
    options: {show_submodules: true}
::: bfl_tf.models
::: bfl_tf.data.partitions
    options: {show_submodules: true}
::: bfl_tf.flower.strategy.BayesianStrategy
::: bfl_tf.plots
    options:
      show_submodules: true
      filters: ["!^_", "!^(canvas|comparison|recorded)$"]
::: bfl_tf.weights
::: bfl_tf.weights.arrays.distribution
::: bfl_tf.weights.arrays.marginal_scale
::: bfl_tf.weights.layout
"""
_LINK = re.compile(r'(?<=\]\()(?![a-z]+:|#)([^)#\s]+)')
_CODE = re.compile(r'```.*?```', re.DOTALL)
_MATH = re.compile(
  r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL
)


def on_files(files, config):
  """Adds the first page and the targets of all links."""
  sources = [README, *DOCS.rglob('*.md')]
  linked = {path for source in sources for path in _linked(source)}
  for path in sorted(linked):
    for uri, made in _files(path):
      if files.get_file_from_path(uri) is None:
        files.append(
          files_lib.File.generated(
            config, uri, inclusion=files_lib.InclusionLevel.NOT_IN_NAV, **made
          )
        )
  for path in sorted((ROOT / 'notebooks').glob('*.ipynb')):
    for uri, content in _notebook(path):
      files.append(files_lib.File.generated(config, uri, content=content))
  for uri, content in {
    'index.md': rewrite(README.read_text('utf-8'), README),
    'flags.md': describe.reference(),
    'api.md': _API,
  }.items():
    files.append(files_lib.File.generated(config, uri, content=content))
  return files


def on_page_markdown(markdown, page, config, files):
  """Rewrites the links of a page to their targets in the site."""
  uri = page.file.src_uri
  copied = uri.removeprefix('files/')
  source = DOCS / uri if copied == uri else ROOT / copied
  return rewrite(markdown, source) if source.is_file() else markdown


def on_page_content(content, page, config, files):
  """Replaces the TeX of a page by MathML."""
  return _MATH.sub(_mathml, content)


def _mathml(found):
  display = 'block' if found[2] == '[' else 'inline'
  return converter.convert(html.unescape(found[3]), display=display)


def rewrite(text: str, source: pathlib.Path) -> str:
  """Returns Markdown with links to the pages of the site.

  Args:
    text: Markdown of a page.
    source: File of the page; its links are relative to this file.
  """
  place = posixpath.dirname(_uri(source, source.parent)) or '.'

  def lead(match):
    target = (source.parent / match[1]).resolve()
    return posixpath.relpath(_uri(target, source.parent), place)

  parts = re.split(f'({_CODE.pattern})', text, flags=re.DOTALL)
  return ''.join(
    part if part.startswith('```') else _LINK.sub(lead, part) for part in parts
  )


def _linked(source: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields what a page links to that is not in docs/."""
  text = _CODE.sub('', source.read_text('utf-8'))
  for target in _LINK.findall(text):
    path = (source.parent / target).resolve()
    inside = DOCS in path.parents or path == README
    if not inside:
      _uri(path, source.parent)
      yield path


def _uri(path: pathlib.Path, folder: pathlib.Path) -> str:
  """Returns where in the site a file of the repository is."""
  if not path.exists() or ROOT not in path.parents:
    raise exceptions.PluginError(
      f'a page in {folder} links to {path}, which is not there.'
    )
  if path == README:
    return 'index.md'
  if DOCS in path.parents:
    return path.relative_to(DOCS).as_posix()
  place = path.relative_to(ROOT).as_posix()
  return f'files/{place}/index.md' if path.is_dir() else f'files/{place}'


def _files(path: pathlib.Path) -> Iterator[tuple[str, dict]]:
  """Yields the files of the site that a linked file or folder is made of."""
  if not path.is_dir():
    yield _uri(path, path.parent), {'abs_src_path': str(path)}
    return
  below = sorted(
    each
    for each in path.rglob('*')
    if each.is_file() and '__pycache__' not in each.parts
  )
  lines = [f'# {path.relative_to(ROOT).as_posix()}', '']
  for each in below:
    name = each.relative_to(path).as_posix()
    lines.append(f'- [{name}]({name})')
    yield f'{_folder(path)}/{name}', {'abs_src_path': str(each)}
  yield f'{_folder(path)}/index.md', {'content': '\n'.join(lines) + '\n'}


def _notebook(path: pathlib.Path) -> Iterator[tuple[str, str | bytes]]:
  """Yields the page of a notebook and its figures."""
  body, resources = nbconvert.MarkdownExporter().from_filename(
    str(path), {'output_files_dir': path.stem}
  )
  body = body.replace('](../docs/', '](../').replace('.ipynb)', '.md)')
  yield f'notebooks/{path.stem}.md', body
  for name, content in resources['outputs'].items():
    yield f'notebooks/{name}', content


def _folder(path):
  return f'files/{path.relative_to(ROOT).as_posix()}'
