"""Problems made to be mean: each is what it says, with a certified comparator that ignoring constraints cannot beat."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax import Comparator, problems

KEY = jax.random.key(7)
ROUNDS = 200

_of = functools.partial


def _quadratic(key):
    return problems.simplex(key, n=6, quadratic=True)


FAMILIES = {
    "curvatures": problems.ill_conditioned,
    "curvatures, constrained": _of(problems.ill_conditioned, condition=1e4, constrained=True),
    "correlated, box": _of(problems.least_squares, constrained=True),
    "correlated, l1 ball": _of(problems.least_squares, correlation=0.99, ball="l1", constrained=True),
    "prices over decades": _of(problems.pacing, segments=20, decades=3, budget=0.2, from_nothing=True),
    "two items": _of(problems.pacing, values=[1.0, -1.0], prices=[1.0, 1000.0], noise=0.0, budget=0.3 / 1001),
    "seasons": _of(problems.pacing, budget=0.2, season=100),
    "too large": _of(problems.absolute_regression, width=1000.0),
    "too large, constrained": _of(problems.absolute_regression, constrained=True),
    "outliers": lambda key: problems.with_outliers(problems.pacing(key, budget=0.2), constraint=1e3, at=(1, 100)),
    "outliers, loss": lambda key: problems.with_outliers(_quadratic(key), loss=1e3, at=(1, 100)),
    "heavy tails": lambda key: problems.heavy_tailed(_quadratic(key), loss=0.1, constraint=0.5),
    "rarely seen": lambda key: problems.rarely_seen(_quadratic(key), loss=0.1, constraint=0.1),
    "infeasible stretches": lambda key: problems.infeasible_stretches(_quadratic(key), excess=0.5),
    "experts": _of(problems.experts, n=2000),
    "volatility": problems.volatile_portfolio,
    "20 constraints": _of(problems.simplex, n=20, constraints=20, quadratic=True),
    "pinball": problems.newsvendor,
    "hinge": problems.classification,
    "entropy": problems.poles,
    "log-loss": _of(problems.poles, loss="log"),
    "congestion": _of(problems.shortest_path, congestion=2.0),
}


# Of one function, other numbers wait for the slow run
AGAIN = {"curvatures", "correlated, l1 ball", "two items", "seasons", "too large", "outliers", "log-loss"}


@pytest.mark.parametrize("name", slow_but([name for name in FAMILIES if name not in AGAIN], FAMILIES))
def test_the_comparator_is_certified_and_beats_the_start_and_ignoring_constraints(name):
    instance = FAMILIES[name](KEY)
    problem, rounds = instance.problem, instance.rounds(ROUNDS, KEY)
    best = instance.comparator(rounds, tol=1e-5)

    def score(x):
        fixed = Comparator.fixed(problem, rounds, x)
        return float(fixed.value - best.value + best.price @ np.maximum(fixed.constraint.sum(0), 0))

    start = score(problem.domain.start())
    assert start > 0 and abs(float(best.gap)) <= 3e-4 * start
    expected = instance.expected_constraint
    mean = best.constraint.mean(0) if expected is None else np.asarray(expected(jnp.asarray(best.x)))
    assert best.price @ np.maximum(ROUNDS * mean.reshape(-1), 0) <= 1e-3 * start
    if problem.constraints:
        if name == "entropy":  # hindsight would walk onto the pole
            x = jax.nn.softmax(-rounds["cost"].mean(0))
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                x = jnp.asarray(cx.hindsight(cx.Problem(problem.domain, problem.loss), rounds, tol=1e-3).x)
        saved = float(best.value - Comparator.fixed(problem, rounds, x).value)
        assert saved > 0  # the constraints matter
        assert score(x) > 0.5 * saved


def test_the_projection_of_an_ill_conditioned_target_is_not_the_optimum():
    make = _of(problems.ill_conditioned, curvatures=[1.0, 10.0, 100.0], target=[2.0, 1.0, 0.7], noise=0.0)
    instance = make(KEY)
    best = instance.comparator(instance.rounds(5, KEY), tol=1e-9)
    slope = np.array([1.0, 10.0, 100.0]) * (best.x - [2.0, 1.0, 0.7])
    np.testing.assert_allclose(slope[1:], slope[1], rtol=1e-3)  # equal where x is positive
    assert best.x[0] < 1e-6 and slope[0] > slope[1]


def test_half_of_what_the_optimum_saves_is_too_dear():
    """The budget of an ill-conditioned target is half-way between 1/4 and what the optimum uses."""
    free, bound = (problems.ill_conditioned(KEY, noise=0.0, constrained=wanted) for wanted in (False, True))
    x = free.comparator(free.rounds(5, KEY), tol=1e-9).x
    sampler = bound.environment.sample  # pyright: ignore[reportAttributeAccessIssue]
    assert float(sampler.budget) == pytest.approx((float(sampler.use @ x) + 0.25) / 2, abs=1e-4)


def test_features_have_the_correlation_that_was_asked():
    features = problems.least_squares(KEY, n=4, correlation=0.9).rounds(20_000, KEY)["features"]
    np.testing.assert_allclose(np.corrcoef(features, rowvar=False) - np.eye(4) * 0.1, 0.9, atol=0.01)


def test_the_width_of_a_set_changes_no_round():
    rounds = [problems.absolute_regression(KEY, width=width).rounds(5, KEY) for width in (1.0, 1000.0)]
    jax.tree.map(np.testing.assert_array_equal, *rounds)


@pytest.mark.parametrize(
    "shock",
    [
        _of(problems.with_outliers, loss=1e3, constraint=1e3, at=(0, 30)),
        _of(problems.heavy_tailed, loss=0.1, constraint=0.5),
    ],
)
def test_shocks_cancel_for_a_fixed_decision(shock):
    plain = _quadratic(KEY)
    instance = shock(plain)
    rounds = instance.rounds(60, KEY)
    jax.tree.map(np.testing.assert_array_equal, rounds["revealed"], plain.rounds(60, KEY))
    x = jax.random.dirichlet(KEY, jnp.ones(6))
    shocked = Comparator.fixed(instance.problem, rounds, x)
    before = Comparator.fixed(plain.problem, rounds["revealed"], x)
    np.testing.assert_allclose(shocked.value, before.value, rtol=1e-6)
    np.testing.assert_allclose(shocked.constraint.sum(0), before.constraint.sum(0), rtol=1e-5)
    assert np.abs(shocked.loss - before.loss).max() > 0.3 and np.abs(shocked.constraint - before.constraint).max() > 3


def test_what_is_not_seen_is_zero():
    instance = problems.rarely_seen(_quadratic(KEY), loss=0.3, constraint=0.1)
    rounds = instance.rounds(2000, KEY)
    here = Comparator.fixed(instance.problem, rounds, instance.problem.domain.start())
    for values, share in ((here.loss, 0.3), (here.constraint[:, 0], 0.1)):
        assert abs(np.mean(values != 0) - share) <= 4.5 * (share * (1 - share) / 2000) ** 0.5


def test_a_stretch_cannot_be_met_and_the_others_can():
    instance = problems.infeasible_stretches(_quadratic(KEY), excess=0.5, every=10, length=2)
    rounds = instance.rounds(40, KEY)
    use, budget = (np.asarray(rounds["revealed"][name]) for name in ("use", "budget"))
    least = use.min(2)[:, 0] + np.asarray(rounds["excess"]) - budget[:, 0]
    assert (least[np.arange(40) % 10 >= 8] > 0).all() and (least[np.arange(40) % 10 < 8] < 0).any()
    with pytest.raises(cx.InfeasibleError):
        cx.hindsight(instance.problem, jax.tree.map(lambda leaf: leaf[8:10], rounds))


def test_the_best_expert_is_the_one_that_a_solver_finds():
    instance = problems.experts(KEY, n=40)
    rounds = instance.rounds(50, KEY)
    np.testing.assert_allclose(
        instance.comparator(rounds).value, cx.hindsight(instance.problem, rounds).value, atol=1e-5
    )


def test_the_closed_form_with_entropy_is_what_a_solver_finds():
    """cvxpy minimises the same total loss under the same mean constraint."""
    import cvxpy as cp

    instance = problems.poles(KEY, n=6)
    rounds = instance.rounds(50, KEY)
    best = instance.comparator(rounds)
    cost, use, budget = (np.asarray(rounds[name], np.float64).sum(0) for name in ("cost", "use", "budget"))
    x = cp.Variable(6, nonneg=True)
    limit = use @ x <= budget
    program = cp.Problem(cp.Minimize(cost @ x - 50 * cp.sum(cp.entr(x))), [cp.sum(x) == 1, limit])
    program.solve(solver="CLARABEL")
    assert float(best.value) == pytest.approx(program.value, abs=1e-4)
    assert float(best.multiplier[0]) == pytest.approx(float(limit.dual_value), rel=1e-3)  # pyright: ignore
    assert abs(best.gap) <= 1e-6 and best.multiplier[0] > 0


def test_volatility_comes_in_clusters():
    change = np.asarray(problems.volatile_portfolio(KEY).rounds(4000, KEY)["change"])[:, -1] ** 2
    stretches = change.reshape(40, 100).mean(1)
    assert stretches.max() > 4 * stretches.min() and np.corrcoef(stretches[:-1], stretches[1:])[0, 1] > 0.2
    assert np.all(np.asarray(problems.volatile_portfolio(KEY).rounds(5, KEY)["change"])[:, 0] == 0)  # cash


def test_poles_are_where_an_entry_is_zero():
    vertex = jnp.eye(10)[0]
    for loss in ("entropy", "log"):
        instance = problems.poles(KEY, loss=loss)
        rounds = instance.rounds(40, KEY)
        value_and_slope = jax.jit(jax.vmap(lambda r, p=instance.problem: jax.value_and_grad(p.loss)(vertex, r)))
        values, slopes = value_and_slope(rounds)
        assert not np.isfinite(slopes).all()
        assert np.isfinite(values).all() == (loss == "entropy")


def test_the_first_offer_is_bought_half_or_not_at_all_and_prices_follow_the_season():
    assert problems.pacing(KEY, from_nothing=True).problem.domain.start().tolist() == [0.0] * 10
    assert problems.pacing(KEY).problem.domain.start().tolist() == [0.5] * 10
    plain, season = (problems.pacing(KEY, season=period).rounds(40, KEY)["price"] for period in (None, 20.0))
    expected = 1 + 0.8 * np.sin(2 * np.pi * np.arange(40) / 20)
    np.testing.assert_allclose(season / plain, expected[:, None] * np.ones(10), rtol=1e-5)
    prices = np.asarray(problems.pacing(KEY, segments=400, decades=3).environment.price)  # pyright: ignore
    assert 2.8 < np.log10(prices.max() / prices.min()) <= 3


def test_nonsense_is_refused():
    simplex, free = problems.simplex(KEY), problems.ill_conditioned(KEY)
    for build, sentence in (
        (lambda: problems.ill_conditioned(KEY, n=1), "n must be at least 2"),
        (lambda: problems.ill_conditioned(KEY, target=[1.0, 2.0]), "target must have the shape of the curvatures"),
        (lambda: problems.least_squares(KEY, ball="l2"), "ball must be 'box' or 'l1'"),  # pyright: ignore
        (lambda: problems.least_squares(KEY, correlation=1.0), "correlation must lie in"),
        (lambda: problems.absolute_regression(KEY, width=0.5), "width >= 1"),
        (lambda: problems.newsvendor(KEY, goods=0), "goods >= 1"),
        (lambda: problems.classification(KEY, n=1), "n >= 2"),
        (lambda: problems.poles(KEY, loss="root"), "loss must be 'entropy' or 'log'"),  # pyright: ignore
        (lambda: problems.experts(KEY, n=5, good=5), "good must lie between 1 and n - 1 = 4"),
        (lambda: problems.volatile_portfolio(KEY, assets=1), "assets >= 2"),
        (lambda: problems.pacing(KEY, values=[1.0]), "values and prices must be given together"),
        (lambda: problems.pacing(KEY, season=-1.0), "season=-1.0 must be a positive number"),
        (lambda: problems.rarely_seen(simplex, loss=0.0), "loss must be a share of rounds"),
        (lambda: problems.infeasible_stretches(simplex, excess=1.0, every=5, length=6), "at most every = 5"),
        (lambda: problems.infeasible_stretches(free, excess=1.0), "needs an instance with constraints"),
        (lambda: problems.with_outliers(free, constraint=1.0), "needs an instance with constraints"),
        (lambda: problems.with_outliers(simplex, at=()), "at must be numbers of rounds"),
        (lambda: problems.with_outliers(simplex.problem, loss=1.0), "with_outliers needs an Instance"),  # pyright: ignore
        (lambda: problems.heavy_tailed(simplex, degrees=0.0), "degrees must be positive"),
    ):
        with pytest.raises(cx.ProblemError, match=sentence):
            build()
