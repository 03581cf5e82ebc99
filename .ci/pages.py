"""Makes pages of the markdown as it is: links lead out of docs/ into the site.

README.md becomes the first page. A file of the repository that a page links to
goes into the site under files/, a folder becomes a page that lists its files.
A link to what is not there is an error.
"""

from collections.abc import Iterator
import pathlib
import re

from mkdocs import exceptions
from mkdocs.structure import files as files_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
_LINK = re.compile(r'(?<=\]\()(?![a-z]+:|#)([^)#\s]+)')
_CODE = re.compile(r'```.*?```', re.DOTALL)


def on_files(files, config):
  """Adds the first page, and all that pages link to."""
  sources = {'index.md': ROOT / 'README.md'}
  sources |= {
    path.name: path for path in pathlib.Path(config.docs_dir).glob('*.md')
  }
  linked = {path for source in sources.values() for path in _linked(source)}
  for path in sorted(linked):
    for uri, made in _files(path):
      if files.get_file_from_path(uri) is None:
        files.append(
          files_lib.File.generated(
            config, uri, inclusion=files_lib.InclusionLevel.NOT_IN_NAV, **made
          )
        )
  files.append(
    files_lib.File.generated(config, 'index.md', content=_text('index.md'))
  )
  return files


def on_page_markdown(markdown, page, config, files):
  """Leads the links of a page of docs/ to where their targets are."""
  uri = page.file.src_uri
  at_root = '/' not in uri and uri != 'index.md'
  return rewrite(markdown, ROOT / 'docs') if at_root else markdown


def rewrite(text: str, folder: pathlib.Path) -> str:
  """Returns markdown whose links are those of the site.

  Args:
    text: of a page at the root of the site.
    folder: that its links are relative to in the repository.
  """

  def lead(match):
    return _uri((folder / match[1]).resolve(), folder)

  parts = re.split(f'({_CODE.pattern})', text, flags=re.DOTALL)
  return ''.join(
    part if part.startswith('```') else _LINK.sub(lead, part) for part in parts
  )


def _text(uri):
  source = ROOT / 'README.md' if uri == 'index.md' else ROOT / 'docs' / uri
  return rewrite(source.read_text(), source.parent)


def _linked(source: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields what a page links to that is not in docs/."""
  text = _CODE.sub('', source.read_text())
  for target in _LINK.findall(text):
    path = (source.parent / target).resolve()
    inside = ROOT / 'docs' in path.parents or path == ROOT / 'README.md'
    if not inside:
      _uri(path, source.parent)
      yield path


def _uri(path: pathlib.Path, folder: pathlib.Path) -> str:
  """Returns where in the site a file of the repository is."""
  if not path.exists() or ROOT not in path.parents:
    raise exceptions.PluginError(
      f'a page in {folder} links to {path}, which is not there.'
    )
  if path == ROOT / 'README.md':
    return 'index.md'
  if path.parent == ROOT / 'docs':
    return path.name
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


def _folder(path):
  return f'files/{path.relative_to(ROOT).as_posix()}'
