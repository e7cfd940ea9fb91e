"""The online certificate: never below the true regret, whoever plays; exact where rounds are linear."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import cocoax as cx
from cocoax.learners import DPP, Auto, Certified, Stay
from cocoax.problem.lagrangian import proven_least
from cocoax.problem.minorants import tangents
from cocoax.problem.policy_sums import PolicySums

pytestmark = pytest.mark.usefixtures("free_promotion")
KEY = jax.random.key(0)
TRACKED = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RegularizedAscent(1.0, 0.1))  # soon compiled
ROUNDS, SIZE = 64, 4
DRAWN = np.random.default_rng(0)
DATA = {
    "cost": jnp.asarray(DRAWN.normal(size=(ROUNDS, SIZE))),
    "use": jnp.asarray(DRAWN.uniform(0, 1, (ROUNDS, SIZE)) * np.linspace(0.2, 1.6, SIZE)),
    "other": jnp.asarray(DRAWN.uniform(0, 1, (ROUNDS, SIZE))),
}
DOMAINS = {
    "simplex": cx.domains.ProbabilitySimplex(SIZE),
    "box": cx.domains.Box(-jnp.ones(SIZE), 2 * jnp.ones(SIZE)),
    "product": cx.domains.Product([cx.domains.L2Ball(SIZE, 1.0), cx.domains.L1Ball(SIZE, 1.0)]),
    "matrix": cx.domains.NuclearNormBall((2, 2), 1.0),
}


def flat(x):
    return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(x)])[-SIZE:]


def linear(x, r):
    return jnp.vdot(r["cost"], flat(x))


def curved(x, r):
    return 0.5 * jnp.sum((flat(x) - r["cost"]) ** 2) + jnp.abs(flat(x)[0] - r["use"][0])


def budgets(x, r):
    return jnp.stack([jnp.vdot(r["use"], flat(x)) - 0.4, jnp.vdot(r["other"], flat(x)) ** 2 - 0.3])


def a_problem(domain, loss=curved, **options):
    return cx.Problem(domain, loss, budgets, constraints=2, **options)


@pytest.mark.parametrize("name", DOMAINS)
def test_it_is_never_below_the_regret(name):
    """In every checked round, and at the end; a foolish learner's as well as a clever one's."""
    problem, half = a_problem(DOMAINS[name]), ROUNDS // 2
    best = {t: cx.hindsight(problem, jax.tree.map(lambda leaf, t=t: leaf[:t], DATA)).value for t in (half, ROUNDS)}
    for learner in (Auto(), Stay()) if name == "simplex" else (Stay(),):
        game = cx.play(problem, learner, DATA, key=KEY, certify=half)
        regret = {t: float(np.sum(np.asarray(game.loss)[:t]) - best[t]) for t in best}
        assert all(game.certified[t - 1] >= regret[t] - 1e-6 * t for t in best)
        assert np.isnan(game.certified[: half - 1]).all()
        certificate = game.certificate()
        assert game.certified[-1] + 1e-9 >= certificate.regret >= regret[ROUNDS] - 1e-6 * ROUNDS
        assert certificate.rounds == ROUNDS and not certificate.infeasible


def test_the_lowest_value_of_a_set_is_never_too_high():
    """Of spectral sets and products of them it takes a decomposition; of an intersection, the gap of its LMO."""
    direction = jnp.asarray(np.random.default_rng(3).normal(size=(5, 5)))
    ball = cx.domains.NuclearNormBall((5, 5), 2.0)
    lowest = -2 * np.linalg.svd(direction, compute_uv=False)[0]
    assert float(ball.lowest(direction)) == pytest.approx(lowest, rel=1e-12)
    assert float(cx.domains.Product([ball, ball]).lowest([direction, direction])) == pytest.approx(
        2 * lowest, rel=1e-12
    )
    half = cx.domains.ProbabilitySimplex(2).intersect(jnp.array([1.0, 0.0]), 0.25)
    assert -0.25 - 1e-9 <= float(half.lowest(jnp.array([-1.0, 0.0]))) <= -0.25 + 1e-15


class _Rough(cx.domains.L2Ball):
    """Its vertices prove nothing."""

    def lmo(self, direction, guess=None):
        return super().lmo(jnp.ones_like(direction))

    def lowest(self, direction, guess=None):
        return -self.radius * jnp.linalg.norm(direction)


@pytest.mark.parametrize(
    ("made_of", "lowest"),
    [
        (lambda ball: cx.domains.Scale(ball, -2.0), -10.0),
        (lambda ball: cx.domains.Translate(ball, 1.0), -5.0 + 7.0),
        (lambda ball: cx.domains.LinearImage(ball, 2 * jnp.eye(2)), -10.0),
        (lambda ball: cx.domains.Restrict(ball, slice(0, 1)), -3.0),
        (lambda ball: cx.domains.Embed(ball, (3,), slice(1, 3)), -5.0),
        (lambda ball: cx.domains.MinkowskiSum([ball, ball]), -10.0),
        (lambda ball: cx.domains.UnionHull([ball, cx.domains.Scale(ball, 2.0)]), -10.0),
        (lambda ball: ball.intersect(jnp.array([1.0, 0.0]), 10.0), -5.0),
        (cx.domains.Counted, -5.0),
        (cx.domains.Cached, -5.0),
    ],
)
def test_the_lowest_value_is_asked_of_the_parts(made_of, lowest):
    """Where an LMO is not exact, as those of intersections and of large matrices, only the set itself can prove it."""
    domain = made_of(_Rough(2, 1.0))
    direction = jnp.array([3.0, 4.0])
    direction = {1: direction[:1], 2: direction, 3: jnp.array([12.0, 3.0, 4.0])}[domain.shape[0]]
    assert float(domain.lowest(direction)) == pytest.approx(lowest, rel=1e-12)
    assert float(domain.lowest(direction, domain.vertex())) == pytest.approx(lowest, rel=1e-12)


@pytest.mark.parametrize("kind", [jnp.float32, jnp.float64])
def test_a_guess_at_the_lowest_value_makes_no_proof_wrong(kind):
    """Large matrices, by a factorisation: from good and bad vertices, and from nothing."""
    ball, rng = cx.domains.NuclearNormBall((120, 110), 2.0), np.random.default_rng(0)
    steep = np.outer(rng.normal(size=120), rng.normal(size=110)) + rng.normal(size=(120, 110))
    lowest = jax.jit(lambda direction, guess: ball.lowest(direction, guess))
    for matrix in (steep, rng.normal(size=(120, 110)), 1e-30 * steep, 1e15 * steep, 0 * steep):
        direction = jnp.asarray(matrix, kind)
        exact = -2 * np.linalg.svd(matrix, compute_uv=False)[0]
        bad = ball.lmo(jnp.asarray(rng.normal(size=(120, 110)), kind))
        for guess in (ball.lmo(direction), bad, None):
            found = float(lowest(direction, guess))
            assert exact * (1 + 2e-3) <= found <= exact * (1 - 100 * float(jnp.finfo(kind).eps))


def test_it_is_exact_where_rounds_are_linear():
    """By an independent linear program."""
    problem = cx.Problem(DOMAINS["simplex"], linear, lambda x, r: jnp.vdot(r["use"], x) - 0.4)
    game = cx.play(problem, TRACKED, DATA, key=KEY, certify=True)
    answer = linprog(
        DATA["cost"].sum(0),
        A_ub=[DATA["use"].sum(0)],
        b_ub=[0.4 * ROUNDS],
        A_eq=[np.ones(SIZE)],
        b_eq=[1],
        method="highs",
    )
    assert game.certificate().regret == pytest.approx(float(game.loss.sum()) - answer.fun, abs=1e-9)
    assert game.certificate().multiplier == pytest.approx(-answer.ineqlin.marginals, abs=1e-9)
    assert game.certificate(lmos=1).regret >= game.certificate().regret


def test_it_never_counts_a_comparator_that_breaks_the_constraints():
    """Without the multiplier the bound would be that of the unconstrained best."""
    problem = cx.Problem(DOMAINS["simplex"], linear, lambda x, r: jnp.vdot(r["use"], x) - 0.4)
    game = cx.play(problem, Stay(), DATA, key=KEY, certify=True)
    free = cx.play(cx.Problem(DOMAINS["simplex"], linear), Stay(), DATA, key=KEY, certify=True)
    assert game.certificate().regret < free.certificate().regret - 0.01


@pytest.mark.parametrize("kind", [jnp.float32, jnp.float64])
def test_rounding_proves_no_infeasibility(kind):
    """Only 0 meets the constraint, whose minorants then are rounding and nothing else."""
    shares = lambda x, r: jnp.mean(7 * r * x) / 7 * 3, lambda x, r: r[0] * x[0] + r[1] * x[1] + r[2] * x[2]
    for function, seed in itertools.product(shares, range(2)):
        rounds = np.random.default_rng(seed).uniform(0.1, 3, (50, 3)).astype(kind)
        with jax.enable_x64(kind is jnp.float64):
            problem = cx.Problem(cx.domains.ZeroOneCube(3), lambda x, r: -jnp.vdot(r[::-1], x), function)
            learner = jax.tree.map(lambda leaf: leaf.astype(kind), TRACKED)
            game = cx.play(problem, learner, rounds, key=KEY, certify=True)
            certificate = game.certificate()
        assert game.loss.dtype == kind and not certificate.infeasible
        assert certificate.regret >= float(game.loss.sum()) - 1e-5  # 0 costs nothing


def between_limits(x, r):
    return jnp.stack([x[0] - 0.5, r[0] - x[0]])


@pytest.mark.parametrize("kind, proven, lost", [(np.float32, 1e-4, (3e-6, 1e-6)), (np.float64, 3e-6, (1e-9,))])
def test_what_functions_may_have_lost_proves_no_infeasibility(kind, proven, lost):
    """x <= 1/2 and x >= 1/2 + gap, in sums of about 6 a round: 2e-6 of that is needed in float32, 1e-9 in float64."""
    for gap in (proven, *lost):
        with jax.enable_x64(kind is np.float64):
            problem = cx.Problem(cx.domains.ZeroOneCube(1), lambda x, r: -x[0], between_limits, constraints=2)
            game = cx.play(problem, Stay(), np.full((50, 1), 0.5 + gap, kind), key=KEY, certify=True)
            assert game.loss.dtype == kind and game.certificate().infeasible == (gap == proven)


class _Loud(Stay):
    """Says what its multiplier is."""

    said: float = eqx.field(static=True, default=1e12)

    def observe(self, problem, state, round, *, played=None):
        state, outcome = super().observe(problem, state, round, played=played)
        return state, eqx.tree_at(lambda one: one.multiplier, outcome, jnp.full_like(outcome.multiplier, self.said))


@pytest.mark.parametrize("kind", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("learner", [Stay(), _Loud()])
def test_rounding_that_cancels_proves_nothing(kind, learner):
    """Values of plus and minus 10^6 cancel in the sum, but not what they lose: at the start, that is half of a unit.

    Every decision is feasible, and the best one costs -1 a round. As values are rounded, it seems to break the budget.
    """
    unit = 0.15e6 * float(jnp.finfo(kind).eps)
    swings = np.tile([1e6, -1e6], 50).astype(kind)
    with jax.enable_x64(kind is jnp.float64):
        unit_cube = cx.domains.ZeroOneCube(1)
        problem = cx.Problem(unit_cube, lambda x, r: -x[0], lambda x, r: (kind(unit) * x[0] - kind(unit)) + r)
        game = cx.play(problem, learner, swings, key=KEY, certify=100)  # stays in the middle
        certificate = game.certificate()
    assert game.loss.dtype == kind and not certificate.infeasible
    assert certificate.regret >= 50 and game.certified[-1] >= 50


def test_multipliers_below_0_prove_nothing():
    """Prices of some learners may be negative. With -1, no decision would seem to cost less than 1/2."""
    problem = cx.Problem(cx.domains.ZeroOneCube(1), lambda x, r: x[0], lambda x, r: x[0] - 0.5)
    game = cx.play(problem, _Loud(-1.0), np.zeros(9), key=KEY, start=[1.0], certify=9)
    assert game.certificate(lmos=1).regret >= 9 and game.certified[-1] >= 9


def test_rounding_of_the_bound_itself_is_allowed_for():
    """Of 0.7 - 3 y in float32, for exact rounds: about half of 100 are rounded up."""

    @jax.vmap
    def bound(y):
        domain = cx.domains.Box(jnp.zeros(1), y[None])
        game = cx.play(
            cx.Problem(domain, lambda x, r: 0.7 - 3 * x[0]), Stay(), jnp.zeros(1), key=KEY, start=[0.0], certify=True
        )
        return game.state.minorants.cautious(domain, 0.0).lower_bound(domain, jnp.zeros(0))

    widths = np.random.default_rng(7).uniform(1, 2, 100).astype(np.float32)
    with jax.enable_x64(False):
        found = np.asarray(jax.jit(bound)(widths), float)
    room = float(np.float32(0.7)) - 3 * widths.astype(float) - found
    assert (room >= 0).all() and (room <= 1e-4).all()


@pytest.mark.parametrize("size", [1, 2000])
def test_slopes_that_vanish_in_a_sum_are_allowed_for(size):
    """In float32, 1 + 31 d = 1 for d below half of its last bit: plain sums of 32 slopes lose all but one."""
    pattern = np.concatenate([[-1], np.full(31, -0.99 * 2**-25), [1], np.full(31, -0.99 * 2**-25)]).astype(np.float32)
    with jax.enable_x64(False):
        problem = cx.Problem(cx.domains.Box(jnp.zeros(size), jnp.zeros(size).at[0].set(1)), lambda x, r: r * x[0])
        rounds = np.concatenate([np.tile(pattern, 10), -np.ones(3, np.float32)])
        game = cx.play(problem, Stay(), rounds, key=KEY, certify=len(rounds))
    regret = float(-0.5 * rounds.astype(float).sum())  # against x = 1, from the middle
    assert game.loss.dtype == jnp.float32 and regret > 0
    assert game.certificate().regret >= regret and game.certified[-1] >= regret


def test_terms_of_an_inner_product_that_cancel_prove_nothing():
    """Far from 0, <grad f, x> is a small difference of large numbers; values and gradients are exact."""
    far, x = np.float32(1e4), np.float32(1e4 + 0.5)
    slopes = np.random.default_rng(0).uniform(1, 1.00001, 2000).astype(np.float32)
    lost = (slopes * x).astype(float) - slopes.astype(float) * float(x)
    low, high = slopes[lost.argmin()], slopes[lost.argmax()]
    rounds = np.tile(np.array([[low, -high], [-high, low]]), (100, 1))
    with jax.enable_x64(False):
        problem = cx.Problem(cx.domains.Box([far, far], [far + 1, far + 1]), lambda x, r: jnp.sum(r * (x - far)))
        game = cx.play(problem, Stay(), rounds, key=KEY, certify=200)
    regret = 0.5 * np.abs(rounds.astype(float).sum(0)).sum()
    assert game.loss.dtype == jnp.float32
    assert game.certificate().regret >= regret and game.certified[-1] >= regret


def test_an_overflow_proves_nothing():
    """A constraint of plus infinity must not become a bound of minus infinity."""
    problem = cx.Problem(DOMAINS["simplex"], linear, lambda x, r: jnp.where(r["cost"][0] > 1, jnp.inf, x[0]))
    game = jax.jit(lambda: cx.play(problem, TRACKED, DATA, key=KEY, certify=ROUNDS))()
    assert game.bad_round >= 0 and game.certified[-1] == np.inf and game.certificate().regret == np.inf


def test_games_go_on_and_batches_are_batches():
    problem = a_problem(DOMAINS["simplex"])
    half = [jax.tree.map(lambda leaf, part=part: leaf[part], DATA) for part in (slice(32), slice(32, None))]
    whole = cx.play(problem, TRACKED, DATA, key=KEY, certify=True)
    first = cx.play(problem, TRACKED, half[0], key=KEY, horizon=ROUNDS, certify=True)
    second = cx.play(problem, Certified(TRACKED), half[1], state=first.state)
    assert second.certificate().rounds == ROUNDS
    assert second.certificate().regret == pytest.approx(whole.certificate().regret, rel=1e-12)
    np.testing.assert_array_equal(second.decision, whole.decision)
    np.testing.assert_array_equal(whole.decision, cx.play(problem, TRACKED, DATA, key=KEY).decision)
    both = jax.vmap(lambda start: cx.play(problem, TRACKED, DATA, key=KEY, start=start, certify=True))(
        jnp.stack([jnp.eye(SIZE)[0], whole.decision])
    )
    assert both.certificate().regret.shape == (2,) and both.certificate().multiplier.shape == (2, 2)


def test_with_movement_the_bound_counts_what_moving_costs():
    """A fixed decision does not move: the true regret is that of the moving losses against it."""

    def fee(x, r, previous):
        return jnp.vdot(r["cost"], x) + 0.5 * jnp.abs(x - previous).sum()

    problem = cx.Problem(DOMAINS["simplex"], fee)
    game = cx.play(problem, TRACKED, DATA, key=KEY, certify=True)
    regret = float(game.loss.sum() - DATA["cost"].sum(0).min())
    assert game.certificate().regret == pytest.approx(regret, abs=1e-9)


def test_infeasible_budgets_are_proven():
    def impossible(x, r):
        return jnp.stack([r["other"][0] - x[0] - 0.1, x[0] - 0.1])  # the first wants x[0] >= 0.4, the second <= 0.1

    problem = cx.Problem(DOMAINS["simplex"], linear, impossible, constraints=2)
    certificate = cx.play(problem, TRACKED, DATA, key=KEY, certify=True).certificate()
    assert certificate.infeasible and certificate.regret == -np.inf
    assert "no fixed decision meets the constraints; the multiplier proves it" in str(certificate)
    corners = np.eye(SIZE)
    for corner in corners:  # the constraints are linear, so corners tell all
        totals = np.sum(
            [impossible(corner, jax.tree.map(lambda leaf, t=t: leaf[t], DATA)) for t in range(ROUNDS)], axis=0
        )
        assert certificate.multiplier @ totals > 0
    large = cx.dual.RegularizedAscent(1e-3, 100.0)  # multipliers far above the natural unit, where the search begins
    game = cx.play(problem, cx.learners.PrimalDual(cx.primal.Tracked(), large), DATA, key=KEY, certify=True)
    assert game.certificate().infeasible
    just_feasible = cx.Problem(DOMAINS["simplex"], linear, lambda x, r: x[0] + x[1])  # only its faces are feasible
    assert not cx.play(just_feasible, TRACKED, DATA, key=KEY, certify=True).certificate().infeasible


def test_sums_do_not_drift_in_float32():
    """100,000 rounds of 0.1: a plain sum would be off by 1e-3 of itself."""
    with jax.enable_x64(False):
        problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r * x[0] + jnp.float32(0.1))
        rounds = jnp.full(100_000, 0.1, jnp.float32)
        game = cx.play(problem, Stay(), rounds, key=KEY, start=jnp.ones(1, jnp.float32), certify=True)
        assert game.loss.dtype == jnp.float32
        assert game.certificate().regret == pytest.approx(100_000 * float(np.float32(0.1)), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"certify": 0}, "certify must be"), ({"certify": "yes"}, "certify must be")],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(cx.ProblemError, match=message):
        cx.play(a_problem(DOMAINS["simplex"]), Stay(), DATA, key=KEY, **options)


def test_a_gradient_that_is_not_finite_proves_nothing():
    problem = cx.Problem(DOMAINS["simplex"], lambda x, r: -jnp.sqrt(x[0]), lambda x, r: x[1] - 0.5)
    game = jax.jit(lambda: cx.play(problem, Stay(), DATA, key=KEY, start=jnp.eye(SIZE)[1], certify=True))()
    assert game.certificate().regret == np.inf


def test_what_is_missing_is_named():
    with pytest.raises(cx.ProblemError, match="certify=True"):
        cx.play(a_problem(DOMAINS["simplex"]), Stay(), DATA, key=KEY).certificate()
    factored = cx.Problem(cx.domains.NuclearNormBall((3, 3), 1.0, factored=True, rank=2), lambda x, r: x[0, 0])
    with pytest.raises(cx.ProblemError, match="factored"):
        cx.play(factored, TRACKED, DATA, key=KEY, certify=True)


def test_sessions_know_their_regret(tmp_path):
    """Durable, and of all copies together where feedback is late."""
    problem = a_problem(DOMAINS["simplex"])
    rounds = [jax.tree.map(lambda leaf, t=t: np.asarray(leaf[t]), DATA) for t in range(20)]
    path = tmp_path / "certified"
    with cx.Session(problem, TRACKED, path, key=KEY, horizon=20, certify=True) as session:
        for one in rounds[:15]:
            session.observe(one)
    with cx.Session(problem, TRACKED, path, horizon=20, certify=True) as session:
        for one in rounds[15:]:
            session.observe(one)
        bound, regret = session.certificate(), session.regret()
        assert bound.rounds == 20 and bound.regret >= regret[-1] - 1e-6
        assert session.summary()["regret_bound"] == bound.regret
    with pytest.raises(cx.SessionError, match="certify=True"):
        cx.Session(problem, TRACKED, path, horizon=20)
    late = cx.Session(problem, DPP(), key=KEY, horizon=20, pending=2, certify=True)
    for one in rounds[:4]:
        for _ in range(2):
            late.decide()
        for name in late.pending:
            late.observe(one, ticket=name)
    assert late.certificate().rounds == 8
    with pytest.raises(cx.SessionError, match="certify=True"):
        cx.Session(problem, TRACKED, key=KEY, horizon=20).certificate()


def test_tangents_are_not_above_the_loss_in_float32():
    """At the points where they touch it, in exact arithmetic; without an allowance, rounding lifts some."""
    x, rows = (jnp.asarray(np.random.default_rng(i).uniform(1, 2, (50, 3)), jnp.float32) for i in (0, 1))
    problem = cx.Problem(cx.domains.Box(jnp.ones(3), jnp.full(3, 2.0)), lambda x, r: 0.5 * jnp.vdot(r, x) ** 2)
    offsets, slopes = jax.jit(jax.vmap(lambda x, r: tangents(problem, x, r)))(x, rows)
    x, rows, offsets, slopes = (np.asarray(part, np.float64) for part in (x, rows, offsets[:, 0], slopes[:, 0]))
    room = 0.5 * (rows * x).sum(1) ** 2 - offsets - (slopes * x).sum(1)
    assert (room >= 0).all() and (room <= 1e-3).all()


def test_a_sum_over_requests_is_not_above_its_terms_in_float32():
    """Of 64 terms, in 100 sums; about half of them are rounded up."""
    draws = np.random.default_rng(6).uniform(0.5, 1, (100, 64)).astype(np.float32)
    with jax.enable_x64(False):
        problem, x = cx.Problem(cx.domains.ZeroOneCube(1), lambda x, r: r + x[0], request=True), jnp.zeros(1)

        def add(sums, r):
            return sums.with_round(problem, x, r, jnp.zeros(0)), None

        def bound(rounds):
            return jax.lax.scan(add, PolicySums.none(problem, x), rounds)[0].best_lower_bound()

        def term(r):
            return proven_least(problem, tangents(problem, x, r), jnp.ones(1))

        bounds, terms = jax.jit(jax.vmap(bound))(draws), jax.jit(jax.vmap(jax.vmap(term)))(draws)
    room = np.asarray(terms, float).sum(1) - np.asarray(bounds, float)
    assert bounds.dtype == jnp.float32 and (room >= 0).all() and (room <= 64 * 1.2e-7 * 64).all()


@pytest.mark.parametrize("bend", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_policies_are_bounded_by_what_the_set_proves_not_by_its_vertices(bend):
    """An LMO that is wrong. The best policy is -r / |r| with linear losses, and -r with curved ones."""
    rounds = np.random.default_rng(5).normal(size=(70, 2))  # more than the first 64, which are kept
    rounds = jnp.asarray(rounds / (1.5 * np.linalg.norm(rounds, axis=1, keepdims=True)))
    loss = (lambda x, r: jnp.vdot(r, x) + 0.5 * jnp.vdot(x, x)) if bend else (lambda x, r: jnp.vdot(r, x))
    problem = cx.Problem(_Rough(2, 1.0), loss, lambda x, r: x[0] - 2.0, request=True)
    best = -70 * (0.5 * (2 / 3) ** 2 if bend else 2 / 3)
    game = cx.play(problem, Stay(), rounds, key=KEY, certify=True)
    assert game.certificate(policy=True).regret >= float(game.loss.sum()) - best - 1e-9
    with pytest.warns(UserWarning, match="before its certificate closed"):
        assert cx.hindsight(problem, rounds, policy=True).lower_bound <= best + 1e-9


@pytest.mark.parametrize("m", [1, 2])
def test_the_best_policy_is_never_better_than_its_bound(m):
    """Requests are seen first: weak duality at fixed prices, against the solver that knows all rounds."""
    drawn = np.random.default_rng(4)
    shape = (400, 5)
    rounds = {
        "value": jnp.asarray(drawn.uniform(0, 1, shape) * np.linspace(0, 1, 5)),
        "cost": jnp.asarray(drawn.uniform(0, 1, (400, m, 5)) * np.linspace(0, 2, 5)),
    }
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(5),
        lambda x, r: -jnp.vdot(r["value"], x),
        lambda x, r: r["cost"] @ x - 0.3,
        constraints=m,
        request=True,
    )
    game = cx.play(problem, cx.learners.AutoPrice(), rounds, key=KEY, certify=True)
    best = cx.hindsight(problem, rounds, policy=True)
    bound, regret = game.certificate(policy=True), float(game.loss.sum() - best.value)
    assert regret - 1e-6 <= bound.regret <= regret + 0.01 * abs(best.value)  # measured: 2e-5 and 4e-4
    assert game.certificate().regret < bound.regret  # a fixed decision is a policy
    with pytest.raises(cx.ProblemError, match="policy=True"):
        cx.play(a_problem(DOMAINS["simplex"]), Stay(), DATA, key=KEY, certify=True).certificate(policy=True)
