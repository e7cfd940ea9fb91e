"""Ready problems are what they say, and `minimize` measures honestly."""

from fractions import Fraction

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problem_tools import check_expected_constraint, check_stated_constants

import cocoax as cx
from cocoax import problems
from cocoax.core.sums import running_sum
from cocoax.games.minimize import _interval
from cocoax.problems.completion import _random_subset
from cocoax.theory.traced_powers import ceil_power

KEY = jax.random.key(3)

READY = {
    "paper": lambda: problems.matrix_completion(KEY, rows=9, cols=7, observed=12),
    "binding": lambda: problems.matrix_completion(KEY, rows=9, cols=7, observed=12, binding=True),
    "simplex": lambda: problems.simplex(KEY),
    "simplex, quadratic, 3": lambda: problems.simplex(KEY, quadratic=True, constraints=3),
    "simplex, adversarial": lambda: problems.simplex(KEY, adversarial=True),
    "simplex, quadratic, adversarial, 3": lambda: problems.simplex(
        KEY, quadratic=True, adversarial=True, constraints=3
    ),
    "pacing": lambda: problems.pacing(KEY, budget=0.2),
    "portfolio": lambda: problems.portfolio(KEY),
    "shortest path": lambda: problems.shortest_path(KEY),
    "regression": lambda: problems.sparse_regression(KEY, n=12),
    "regression, absolute": lambda: problems.sparse_regression(KEY, n=12, absolute=True),
    "group sparsity": lambda: problems.group_sparsity(KEY, groups=4, size=3),
    "online PCA": lambda: problems.online_pca(KEY, n=6, k=2),
    "prices double": lambda: problems.pacing(KEY, doubles_at=10),
    "other units": lambda: problems.rescaled(
        problems.simplex(KEY, quadratic=True), loss=3.0, constraint=0.2, geometry=5.0
    ),
}


@pytest.mark.parametrize("name", READY)
def test_stated_constants_hold_at_vertices_and_between(name):
    instance = READY[name]()
    assert {one.norm for one in instance.problem.regularity} == {2, jnp.inf}
    assert all((one.smoothness is None) == (name == "regression, absolute") for one in instance.problem.regularity)
    check_stated_constants(instance, KEY)


@pytest.mark.parametrize("name", [name for name in READY if name != "prices double"])  # which have no one mean
def test_expected_constraint_is_the_mean_of_many_rounds(name):
    check_expected_constraint(READY[name](), KEY)


@pytest.mark.parametrize("n, size", [(30, 17), (20, 20), (40, 3), (1, 1)])
def test_subsets_are_those_of_floyds_algorithm(n, size):
    keys = jax.random.split(jax.random.key(0), 50)
    draw = jax.jit(jax.vmap(lambda key: (_random_subset(key, n, size), jax.random.uniform(key, (size,)))))
    found, uniforms = map(np.asarray, draw(keys))
    for subset, uniform in zip(found.tolist(), uniforms):
        chosen = []
        for i in range(size):
            last = n - size + i
            number = min(int(uniform[i] * np.float32(last + 1)), last)
            chosen.append(last if number in chosen else number)
        assert subset == chosen


def test_observed_entries_are_distinct_and_all_equally_likely():
    rounds = problems.matrix_completion(KEY, rows=5, cols=4, observed=6).rounds(5000, KEY)
    entries = np.asarray(rounds["entries"])
    assert all(len(set(row)) == 6 for row in entries)
    counts = np.bincount(entries.reshape(-1), minlength=20) / 5000
    assert np.abs(counts - 0.3).max() <= 4.5 * (0.3 * 0.7 / 5000) ** 0.5


def test_papers_optimum_is_the_truth_at_no_loss():
    instance = problems.matrix_completion(KEY, rows=9, cols=7, observed=12)
    best = instance.comparator(instance.rounds(30, KEY))
    assert best.value == 0
    assert np.linalg.svd(best.x, compute_uv=False).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["simplex", "simplex, quadratic, 3", "pacing"])
def test_constraints_bind(name):
    instance = READY[name]()
    best = instance.comparator(instance.rounds(300, KEY))
    assert best.multiplier.max() > 1e-3


@pytest.mark.slow
def test_binding_variant_is_as_described():
    """The truth violates by +4.4 a round, 0 by -4.4, optimal loss 0.60, multiplier 2.7e-4.

    Over 6 keys: 4.28 to 4.43, 0.571 to 0.612, 2.67e-4 to 2.76e-4, all within 5% of these.
    """
    instance = problems.matrix_completion(jax.random.key(0), binding=True)
    truth, expected = instance.environment.sample.truth, instance.expected_constraint  # pyright: ignore[reportAttributeAccessIssue]
    assert float(expected(truth)) == pytest.approx(4.4, rel=0.05)
    assert float(expected(jnp.zeros((50, 50)))) == pytest.approx(-float(expected(truth)))
    best = instance.comparator(instance.rounds(1000, KEY))
    assert best.value == pytest.approx(0.60, rel=0.05)
    assert best.multiplier[0] == pytest.approx(2.7e-4, rel=0.05)


def test_one_compilation_serves_all_instances_of_a_shape():
    learner = cx.learners.Blocks(cx.primal.OCG())
    first, second = (problems.simplex(jax.random.key(seed)) for seed in (0, 1))
    cx.play(first.problem, learner, first.rounds(20, KEY), key=KEY)
    rounds = second.rounds(20, KEY)
    with jax.no_tracing():
        cx.play(second.problem, learner, rounds, key=KEY)


def test_bad_sizes_are_refused():
    for build, sentence in (
        (lambda: problems.matrix_completion(KEY, rows=3, cols=3, observed=10), "observed must lie between 1 and"),
        (lambda: problems.simplex(KEY, n=1), "simplex needs n >= 2"),
        (lambda: problems.pacing(KEY, budget=0.0), "a budget in"),
    ):
        with pytest.raises(cx.ProblemError, match=sentence):
            build()


def test_minimize_encloses_the_true_value_and_bounds_the_true_gap():
    instance = problems.simplex(KEY, n=5, quadratic=True, constraints=2)
    mean = instance.environment
    solution = cx.minimize(instance.problem, mean, horizon=500, key=KEY, samples=400, confidence=0.9999)
    x = np.asarray(solution.x)
    noise = 5 * 0.25**2 / 3  # of the targets, the same for every x

    def expected_loss(x):
        return 0.5 * (np.sum((x - np.asarray(mean.cost)) ** 2) + noise)  # pyright: ignore[reportAttributeAccessIssue]

    assert solution.value.lower <= expected_loss(x) <= solution.value.upper
    truth = np.asarray(instance.expected_constraint(x))
    assert np.all((solution.violation.lower <= truth) & (truth <= solution.violation.upper))

    point = cvxpy.Variable(5)
    within = [point >= 0, cvxpy.sum(point) == 1, np.asarray(mean.use) @ point <= np.asarray(mean.budget)]  # pyright: ignore[reportAttributeAccessIssue]
    program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(point - np.asarray(mean.cost))), within)  # pyright: ignore[reportAttributeAccessIssue]
    program.solve(solver="CLARABEL")
    assert expected_loss(x) - (program.value + 0.5 * noise) <= solution.gap.upper


def test_intervals_have_the_confidence_they_state():
    """Of 40,000, within four standard deviations; half of what they miss lies on each side."""
    found = _interval(np.random.default_rng(0).normal(size=(4, 40_000)), 0.9)
    assert np.mean(found.lower > 0) == pytest.approx(0.05, abs=0.0044)
    assert np.mean(found.upper < 0) == pytest.approx(0.05, abs=0.0044)


def test_minimize_works_without_constraints_and_refuses_nonsense():
    sampler = cx.Sampler(lambda key: jnp.array([0.2, 0.3, 0.5]) + 0.1 * jax.random.normal(key, (3,)))
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(3), lambda x, r: 0.5 * jnp.sum((x - r) ** 2), regularity=cx.Regularity(3.0, 1.0)
    )
    solution = cx.minimize(problem, sampler, horizon=300, key=KEY, samples=100, batches=4)
    assert solution.violation.estimate.shape == (0,)
    gap = 0.5 * np.sum((np.asarray(solution.x) - [0.2, 0.3, 0.5]) ** 2)
    # 400 samples that differ by <x - mean, noise>; the best in hindsight of 100 is better by (3 - 1) 0.1^2 / 200
    error = 0.1 * (2 * gap) ** 0.5 / 400**0.5
    assert -4 * error <= solution.gap.estimate - gap <= 4 * error + 1e-4 + 1e-4 * solution.value.estimate
    assert solution.gap.lower < solution.gap.estimate < solution.gap.upper
    with pytest.raises(cx.ProblemError, match="batches >= 2"):
        cx.minimize(problem, sampler, horizon=10, key=KEY, batches=1)


@pytest.mark.parametrize("exponent", [Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(3, 5)])
def test_traced_ceilings_of_powers_are_exact(exponent):
    powers = [k**5 for k in range(2, 16)] + [k**3 for k in range(2, 100)] + [k**2 for k in range(2, 1000, 37)]
    numbers = [*range(1, 400), *powers, *(n + 1 for n in powers), *(n - 1 for n in powers)]
    largest = max(numbers)
    traced = jax.jit(jax.vmap(lambda n: ceil_power(n, exponent, largest)))(jnp.array(numbers, jnp.int32))
    assert traced.tolist() == [cx.theory.ceil_power(n, exponent) for n in numbers]


def test_sample_counts_fit_their_arrays_at_fifth_powers():
    """At T = 13^5, float32 powers are off by one; decisions must still be means of as many vertices as there are."""
    instance = problems.simplex(KEY, n=5)
    learner = cx.learners.Blocks(cx.primal.OSPF())
    game = cx.play(
        instance.problem, learner, instance.environment, key=KEY, horizon=13**5, length=2, keep_decisions=True
    )
    np.testing.assert_allclose(game.decisions.sum(-1), 1, atol=1e-6)


def test_running_sums_do_not_drift_in_float32():
    values = np.full(100_000, 0.1, np.float32)
    exact = np.cumsum(values.astype(np.float64))
    np.testing.assert_array_equal(running_sum(values, -1), exact)
    compensated = jax.jit(lambda v: running_sum(v, -1))(values)
    assert compensated.dtype == jnp.float32
    np.testing.assert_allclose(compensated, exact, rtol=2e-7)
    assert abs(float(np.cumsum(values)[-1]) / exact[-1] - 1) > 1e-5  # what a plain sum does


@pytest.mark.parametrize("side", [2, 3, 5])
def test_routing_is_a_grid_whose_paths_all_have_the_same_length(side):
    instance = cx.problems.shortest_path(jax.random.key(0), side=side)
    streets, length = 2 * side * (side - 1), 2 * (side - 1)
    assert instance.problem.domain.shape == (streets,)
    directions = jnp.asarray(np.random.default_rng(0).standard_normal((5, streets)))
    paths = jax.jit(jax.vmap(lambda direction: instance.problem.domain.lmo(direction).dense()))(directions)
    assert np.asarray(paths).sum(1).tolist() == [length] * 5
    two, infinity = instance.problem.regularity
    assert two.constraint_bound == infinity.constraint_bound == 3 * length
    assert float(two.lipschitz) == pytest.approx(3 * streets**0.5, rel=1e-6)
