# Sourced by run and nightly: goes into a copy of the tree, removed on exit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unset PYTHONPATH
shared=../shared/tensorflow_datasets
if [[ -z "${TFDS_DATA_DIR:-}" && -d "$shared" ]]; then
  TFDS_DATA_DIR=$(realpath "$shared")
  export TFDS_DATA_DIR
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch"/{tmp,tree,empty}
export TMPDIR="$scratch/tmp" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
# Bytecode is compiled as it is imported: most of it never is.
export PIP_NO_COMPILE=1

stage() {
  printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"
}

# What git knows or does not ignore: no build of an earlier day.
git ls-files -z --cached --others --exclude-standard |
  xargs -0 cp -d --parents -t "$scratch/tree"
cd "$scratch/tree"
