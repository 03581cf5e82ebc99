"""Tests of differential privacy: sensitivity, noise, epsilon and budget."""

import dataclasses
import itertools
import math
import secrets

import fake
import hypothesis
from hypothesis import strategies as st
import numpy as np
import of_papers
import pytest
from scipy import optimize, stats
import toys
from toys import model

from bfl_tf import analysis, files, parts, run_files, seeds, statistics
from bfl_tf.federation import loop
from bfl_tf.runs import directory
from bfl_tf.server import pooling, privacy
from bfl_tf.server.pooling import rules
from experiments.papers import pfl_research

CONFIG = fake.CONFIG.replace(
  client_parts=(),
  privacy='central',
  settings={'central.delta': 1e-3, 'central.noise_multiplier': 4.0},
)
# Beyond 2^63 and below 2^-63, updates are rejected.
finite = st.floats(-(2.0**63), 2.0**63, width=32)
positive = st.floats(2.0**-63, 2.0**63, width=32)


def release(mechanism, rule, reference, models, round_index=0):
  """Returns the result of a rule for the models of a round."""
  noisy = mechanism.protect(rule, reference, 0, round_index)
  updates = [statistics.ClientUpdate(k, 5, m) for k, m in enumerate(models)]
  sums = models and toys.sums(noisy, [(u, 9.0) for u in updates], reference)
  return toys.stepped(noisy, None, reference, None, sums).model


class Seen(rules.WeightedSum):
  """A rule whose result is everything that it receives."""

  def step(self, model, sums, slot, ctx):
    assert sums['max_weight'] == sums['weight'] == 4
    names = ('buffers', 'point', 'summands')
    return parts.Outcome(np.concatenate([sums[k].ravel() for k in names]))


models = st.builds(
  model,
  st.lists(finite, min_size=2, max_size=2),
  st.lists(positive, min_size=2, max_size=2),
  st.lists(finite, min_size=3, max_size=3),
)


@hypothesis.given(models, st.lists(models, max_size=3), models)
def test_a_client_changes_the_sum_by_at_most_the_clip_norm(start, others, one):
  # 1e-9 keeps the noise below the clip norm, so that the sum is seen exactly.
  mechanism = privacy.CentralPrivacy(8, 4, clip_norm=0.5, noise_multiplier=1e-9)
  start = start._replace(  # Large sums would round the difference.
    loc=np.clip(start.loc, -1, 1), scale=np.clip(start.scale, 1e-6, 1),
    point=np.clip(start.point, -1, 1),
  )  # fmt: skip
  without = release(mechanism, Seen(), start, others)
  moved = release(mechanism, Seen(), start, [*others, one]) - without
  assert np.linalg.norm(moved) <= 0.5 * (1 + 1e-12) + 1e-14


def test_private_nwa_matches_hand_computed_values():
  # Two of eight clients were expected; one of three updates is clipped.
  mechanism = privacy.CentralPrivacy(8, 2, noise_multiplier=1e-12)
  start = model(point=[1, 2])
  sent = [model(point=p) for p in ([4, 6], [1, 2.5], [1, 2])]
  pooled = release(mechanism, pooling.rule_of('nwa'), start, sent)
  np.testing.assert_allclose(
    pooled.point, [1 + 0.6 / 2, 2 + 1.3 / 2], rtol=1e-6
  )


def test_ws_clips_the_changes_of_mean_and_variance_together():
  mechanism = privacy.CentralPrivacy(
    8, 2, clip_norm=2.5, noise_multiplier=1e-12
  )
  start = model([0], [1])
  # The changes of mean and variance are 3 and 4, of norm 5.
  pooled = release(
    mechanism, pooling.rule_of('ws'), start, [model([3], [5**0.5])]
  )
  np.testing.assert_allclose(pooled.loc, [1.5 / 2], rtol=1e-6)
  np.testing.assert_allclose(pooled.scale**2, [(2 + 2) / 4], rtol=1e-6)
  # Noise makes the variance negative: the result is the lower bound.
  large = privacy.CentralPrivacy(8, 2, clip_norm=1e6)
  scales = [
    release(large, pooling.rule_of('ws'), start, [], r).scale for r in range(20)
  ]
  assert {1e-6} < {float(f'{s[0]:.6g}') for s in scales}


@pytest.mark.parametrize('cohort', [0, 40])
def test_the_noise_has_the_stated_scale_and_differs_between_rounds(cohort):
  size, settings = 100_000, {'clip_norm': 0.5, 'noise_multiplier': 3.0}
  mechanism = privacy.CentralPrivacy(8, 4, **settings)
  if cohort:
    mechanism = pfl_research.SimulatedPopulation(
      8, 4, **settings, cohort=cohort, population=cohort
    )
  start = model(point=np.linspace(-1, 1, size))
  drawn = []
  for round_index in range(2):
    pooled = release(mechanism, Seen(), start, [], round_index)
    noise = pooled[:size] - 4 * start.point.astype(np.float64)
    # A simulated cohort of 40 has the noise of this mean.
    drawn.append(noise / (0.15 if cohort else 1.5))
  for noise in drawn:
    tail = stats.chi2(size).cdf(np.sum(noise**2))
    assert 0.005 < tail < 0.995
    assert stats.kstest(noise, 'norm').pvalue > 0.01
  assert abs(stats.pearsonr(*drawn).statistic) < 4 / math.sqrt(size)


def independent_epsilon(z, rate, rounds, delta):
  """Composes the loss of a mixture of Gaussians on a grid, by FFT."""
  step, length = 5e-4, 2**18
  x = np.linspace(-12 * z, 1 + 12 * z, 400_001)
  loss = np.log1p(rate * np.expm1((2 * x - 1) / (2 * z * z)))
  without, at_one = stats.norm.pdf(x, 0, z), stats.norm.pdf(x, 1, z)
  joined = (1 - rate) * without + rate * at_one

  def epsilon(loss, density):
    cells = np.round(loss / step).astype(int) % length
    mass = np.bincount(cells, density / density.sum(), length)
    mass = np.fft.irfft(np.fft.rfft(mass) ** rounds, length)
    losses = step * np.fft.fftfreq(length, 1 / length)

    # At epsilon, E[max(0, 1 - e^(epsilon - loss))] is delta.
    def missing(e):
      return mass @ -np.expm1(np.minimum(0, e - losses)) - delta

    return optimize.brentq(missing, 0, 60)

  return max(epsilon(loss, joined), epsilon(-loss, without))


@pytest.mark.parametrize(
  'z, rate, rounds, delta',
  [(1.0, 0.05, 100, 1e-5), (2.0, 0.5, 30, 1e-3), (0.7, 0.3, 1, 1e-4)],
)
def test_epsilon_agrees_with_an_independent_computation(z, rate, rounds, delta):
  ours = privacy.epsilon(z, rate, delta, rounds)
  theirs = independent_epsilon(z, rate, rounds, delta)
  assert ours == pytest.approx(theirs, rel=2e-3)


def test_epsilon_without_sampling_is_that_of_the_gaussian_mechanism():
  # Balle & Wang 2018: n releases are one with noise z / sqrt(n).
  mu = math.sqrt(40) / 2.0

  def delta(epsilon):
    low, high = stats.norm.cdf([-epsilon / mu - mu / 2, -epsilon / mu + mu / 2])
    return high - math.exp(epsilon) * low

  exact = optimize.brentq(lambda e: delta(e) - 1e-3, 0, 50)
  spent = privacy.CentralPrivacy(8, 0, noise_multiplier=2.0, delta=1e-3).spent(
    40
  )
  assert spent['epsilon'] == pytest.approx(exact, rel=1e-3)


def test_clients_are_sampled_independently_at_the_sampling_rate():
  mechanism = privacy.CentralPrivacy(20, 5)
  rounds = [mechanism.sample(0, index) for index in range(2000)]
  joined = np.array([np.isin(range(20), clients) for clients in rounds])
  counts = joined.sum(0)
  # A binomial count is within four deviations of its mean.
  assert np.all(abs(counts - 500) < 4 * math.sqrt(2000 * 0.25 * 0.75))
  # The size of a round is binomial too, and not fixed.
  assert np.var(joined.sum(1)) == pytest.approx(20 * 0.25 * 0.75, rel=0.15)
  assert privacy.CentralPrivacy(20, 0).sample(0, 1) == list(range(20))


def test_a_round_without_clients_releases_noise():
  changes = {'num_clients': 6, 'clients_per_round': 1, 'min_clients': 1}
  pieces = toys.experiment(
    privacy='central', **{'central.noise_multiplier': 4}, **changes
  )
  sample = pieces.plan.privacy.sample

  def sizes(seed):
    return [len(sample(seed, index)) for index in range(5)]

  # The first seed with an empty round and one with clients.
  seed = next(
    n for n in itertools.count() if min(sizes(n)) == 0 < max(sizes(n))
  )
  played = toys.rounds(dataclasses.replace(pieces, private_seed=seed), 5)
  counts = [each.info['clients_pooled'] for each in played[1:]]
  assert counts == sizes(seed)
  means = [each.state.model.mean for each in played]
  assert all(np.all(a != b) for a, b in itertools.pairwise(means))
  assert math.isnan(played[1 + counts.index(0)].info['train_loss'])


def test_a_budget_ends_the_run_before_it_is_exceeded(tmp_path):
  spent = [privacy.epsilon(4.0, 3 / 5, 1e-3, n) for n in range(1, 9)]
  config = CONFIG.replace(
    num_rounds=8, settings={'central.epsilon': (spent[4] + spent[5]) / 2}
  )
  summary = fake.execute(tmp_path, config)
  assert summary['rounds'] == config.final_round == 5
  rows = toys.table(tmp_path / 'metrics.csv')
  assert [float(row['epsilon']) for row in rows[1:]] == spent[:5]
  assert summary['final']['epsilon'] == spent[4]
  # Later predictions have the seed of the last executed round.
  draws = analysis.load(tmp_path).draws()
  assert np.array_equal(draws, seeds.named(config.seed, 'evaluation', 5))
  # The finished run is not continued.
  assert fake.execute(tmp_path, config) == summary


def test_a_resumed_private_run_is_identical(tmp_path, monkeypatch):
  path = tmp_path / 'stopped'
  with monkeypatch.context() as patch:
    patch.setattr(secrets, 'token_bytes', bytes)
    fake.execute(tmp_path / 'never', CONFIG)
    fake.stopped(path, loop, 'federated_round', 3, config=CONFIG)
  secret = path / run_files.SECRET
  kept = secret.read_text()
  secret.unlink()
  before = sorted(path.rglob('*'))
  with pytest.raises(files.UnreadableError, match=secret.name):
    fake.execute(path, CONFIG)
  assert sorted(path.rglob('*')) == before
  secret.write_text(kept)
  fake.execute(path, CONFIG)
  assert fake.outcome(path) == fake.outcome(tmp_path / 'never')


def test_no_other_run_has_the_noise_of_a_run(tmp_path, monkeypatch):
  fake.execute(tmp_path / 'a', CONFIG)
  fake.execute(tmp_path / 'b', CONFIG)
  assert fake.outcome(tmp_path / 'a') != fake.outcome(tmp_path / 'b')
  assert (tmp_path / 'a' / run_files.SECRET).stat().st_mode & 0o777 == 0o600
  # Runs with other flags have other noise, even with the same secret.
  monkeypatch.setattr(secrets, 'token_bytes', bytes)
  fake.execute(tmp_path / 'c', CONFIG)
  fake.execute(
    tmp_path / 'd', CONFIG.replace(settings={'central.clip_norm': 2.0})
  )
  paths = (directory.RunDirectory(tmp_path / name) for name in 'abcd')
  assert len({path.private_seed() for path in paths}) == 4


def test_rejected_clients_affect_no_other_client_and_are_not_named():
  experiment = toys.experiment(
    privacy='central', clients_per_round=5, min_clients=5
  )
  requests = []

  @toys.Engine
  def engine(pieces, state, clients):
    requests.append(list(clients))
    for client in clients:
      yield client, RuntimeError('no power')

  state, (info,) = toys.execute(experiment, 1, engine=engine)
  # The round releases noise, as a round without clients does.
  assert len(requests) == 1 and np.any(state.model.point)
  assert info['clients_rejected'] == len(requests[0]) > 0
  assert info['rejected'] == info['rejected_reasons'] == ''
  assert experiment.broadcast(state).num_examples == 0


def test_random_draws_of_privacy_have_their_own_seeds(monkeypatch):
  draws, original = [], seeds._sequence

  def spied(*name):
    draws.append(name)
    return original(*name)

  monkeypatch.setattr(seeds, '_sequence', spied)
  changes = {
    'clients_per_round': 3,
    'client_parts': (of_papers.GRADIENT_NOISE,),
  }
  pieces = toys.experiment(privacy='central', **changes)
  toys.execute(pieces)
  ours = [
    (pieces.private_seed, purpose, (index,))
    for index in range(2)
    for purpose in ('poisson_sampling', 'privacy_noise')
  ]
  assert [name for name in draws if name in ours] == ours
  states = {name: tuple(original(*name).generate_state(4)) for name in draws}
  assert len({*states.values()}) == len(states)
