"""Test that killed runs resume with bit-for-bit identical results.

  python -m experiments.campaign --count=100

Runs of the papers' presets, reduced to digits, are killed up to four times at
random moments and then finished. Their rows and predictions must equal those of
a run without kills. Prints the number of kills per preset. Exit code 1: a run
failed or its results differ; its directory is kept.
"""

import pathlib
import shutil
import signal
import subprocess
import sys
import time

from absl import flags

from bfl_tf import seeds
from experiments import command_line, outcomes
from experiments.harness import cells

_COUNT = flags.DEFINE_integer(
  'count', 10, 'Number of killed runs.', lower_bound=1
)
_NUM_ROUNDS = 5
_SMALL = f"""
--dataset=digits --noaugment --partition=iid --num_clients=4 --local_epochs=1
--num_rounds={_NUM_ROUNDS} --num_mc_samples=2 --final_num_mc_samples=3
--eval_every=1 --num_eval_examples=0 --num_workers=1
"""
_OURS = 'experiments.papers.noniid_techniques'
_MLP = '--model=mlp --mlp.hidden_units=16 --batch_size=64'
# Flags by paper. The state between rounds differs: a posterior, a student, a
# momentum, a posterior of rank 3.
_CHANGES = {
  'posterior_pooling': f'{_MLP} --pooling=lp --weighting=max_discrepancy',
  'fedbe': f"""{_MLP} --num_server_examples=200 --distil.epochs=5
    --distil.batch_size=50 --distil.swa_start=0.5 --distil.swa_cycle=0.2
    --ensemble.num_samples=3""",
  'noniid_techniques': f"""{_MLP} --sign_threshold.threshold=2
    --server_parts=momentum,{_OURS}.sign_threshold:sign_threshold,ensemble
    --client_parts={_OURS}.projection:projection,{_OURS}.gradient_noise:gradient_noise""",
  'fl_swag': '--local_epochs=2 --swag.rank=3 --ensemble.num_samples=4',
}
_MOST_KILLS = 4
# A kill waits for changes of these files, at most so many, then a random time.
_MOMENTS = (
  ('', 0),
  ('checkpoint.npz', _NUM_ROUNDS),
  ('plots/*.png', _NUM_ROUNDS),
  ('*predictions.npz*', 1),
)


def main() -> int:
  """Kills runs `--count` times; prints the kills per preset and failures."""
  folder = pathlib.Path('runs/campaign')
  folder.mkdir(parents=True, exist_ok=True)
  rng = seeds.generator(0, 'campaign_kills', 0)
  wanted, seconds = {}, {}
  for name in _CHANGES:
    started = time.monotonic()
    _ended(name, folder / f'never-{name}')
    seconds[name] = time.monotonic() - started
    wanted[name] = outcomes.of(folder / f'never-{name}')
  kills, broken = dict.fromkeys(_CHANGES, 0), []
  while sum(kills.values()) < _COUNT.value:
    name = min(kills, key=kills.__getitem__)
    run = folder / f'killed-{sum(kills.values())}'
    for _ in range(rng.integers(1, _MOST_KILLS + 1)):
      kills[name] += _killed(name, run, seconds[name], rng)
    _ended(name, run)
    differ = outcomes.difference(outcomes.of(run), wanted[name])
    if differ:
      broken.append(f'broken: {run}: {differ}')
    else:
      shutil.rmtree(run)
  lines = [*(f'{name}: {n} kills' for name, n in kills.items()), *broken]
  print(*lines, f'{len(broken)} runs broke', sep='\n')
  return int(bool(broken))


def _start(name, run):
  preset = f'--flagfile={cells.CONFIGS / name}.flags'
  words = f'{_SMALL} {_CHANGES[name]} --output_dir={run}'.split()
  return subprocess.Popen(
    [sys.executable, '-m', 'experiments.run', preset, *words],
    stdout=subprocess.DEVNULL,
  )


def _ended(name, run):
  code = _start(name, run).wait()
  if code:
    command_line.fail(f'{run} ended with code {code}', code=1)


def _killed(name, run, seconds, rng) -> bool:
  """Kills a run at a random moment; returns False if it ended before."""
  pattern, most = _MOMENTS[rng.integers(len(_MOMENTS))]
  changes = rng.integers(1, most + 1) if pattern else 0
  before = _files(run, pattern)
  process = _start(name, run)
  while len(_files(run, pattern) - before) < changes:
    if process.poll() is not None:
      return False
    time.sleep(0.001)
  time.sleep(rng.uniform(0, 0.1 if pattern else seconds))
  process.send_signal(signal.SIGKILL)
  return process.wait() == -signal.SIGKILL


def _files(run, pattern):
  found = set()
  for path in run.glob(pattern) if pattern else ():
    try:
      found.add((path, path.stat().st_mtime_ns))
    except OSError:
      continue  # A temporary file was removed.
  return found


if __name__ == '__main__':
  command_line.main(main)
