"""Capped: its promise in 13,000 games against adversaries that see the decision, and its freedom where it has some."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Array, Float
from slow_tools import slow_but

import cocoax as cx
from cocoax.baselines import PDOGD
from cocoax.domains import Box, ProbabilitySimplex
from cocoax.learners import Anytime, Auto, Blocks, Capped, Stay

KEY = jax.random.key(0)
N, ROUNDS, GAMES = 4, 40, 100

# g_i(x) = max_j (<a_ij, x> - b_ij) on the simplex


def loss(x, r):
    return jnp.vdot(r["cost"], x)


def constraint(x, r):
    with jax.numpy_dtype_promotion("standard"):  # a user's function, which may mix float32 and float64
        return jnp.max(r["a"] @ x - r["b"], axis=-1)


class Villain(eqx.Module):
    """g_t with g_t(safe) <= -margin and g_t <= bound on the simplex, in one of five ways, that of each round drawn.

    * 0: the largest such function, (bound + margin) * gauge - margin, where the gauge of the simplex around the safe
      point is max_j 1 - x_j / safe_j: no adversary can do more;
    * 1: the linear one along the decision; 2: along a random direction; 3: largest at one vertex;
    * 4: mercy: -margin, everywhere.

    Breaking the constraints pays: the cost is against the direction of the first.
    """

    safe: Float[Array, " n"]
    bound: Float[Array, " m"]
    margin: Float[Array, " m"]
    directions: Float[Array, "T m n"]
    kinds: Float[Array, "T m"]
    spite: Float[Array, ""]

    def answer(self, t, x):
        eye = jnp.eye(N)
        with jax.numpy_dtype_promotion("standard"):
            gauge = -eye / self.safe[:, None], -jnp.ones(N)  # rows a_j, and b_j
            a, b = zip(*(self._one(t, i, gauge, x - self.safe) for i in range(len(self.bound))))
            cost = -self.directions[t, 0] - self.spite * (x - self.safe)
        return {"cost": cost, "a": jnp.stack(a), "b": jnp.stack(b)}

    def _one(self, t, i, gauge, away):
        drawn, size, margin = self.directions[t, i], self.bound[i] + self.margin[i], self.margin[i]
        corner = jnp.where(jnp.arange(N) == jnp.argmax(away), 1.0, 0.0)
        choices = [self._linear(away), self._linear(drawn), self._linear(corner), jnp.zeros(N)]
        linear = jnp.stack(choices)[jnp.maximum(self.kinds[t, i] - 1, 0).astype(int)]
        rows = jnp.where(self.kinds[t, i] == 0, gauge[0], linear)
        offsets = jnp.where(self.kinds[t, i] == 0, gauge[1], linear @ self.safe)
        return size * rows, size * offsets + margin

    def _linear(self, direction):
        """A direction whose product with vertex - safe is at most 1."""
        rise = jnp.max(direction) - direction @ self.safe
        return jnp.where(rise > 1e-6, direction / jnp.maximum(rise, 1e-6), 0)


def villains(rng, constraints, kinds, size, dtype=float):
    """As many as there are games, and the limits that they meet."""
    shape = (GAMES, constraints)
    bound = size * 10 ** rng.uniform(-2, 2, shape)
    margin = bound * rng.choice([0.0, 0.01, 0.3, 1.0, 3.0], shape)
    limit = bound * 10 ** rng.uniform(-1, 1.3, shape)
    safe = rng.dirichlet(np.full(N, rng.choice([0.5, 2.0])), GAMES)
    safe = (safe + 0.01) / (1 + 0.01 * N)
    drawn = (
        safe,
        bound,
        margin,
        rng.normal(size=(GAMES, ROUNDS, constraints, N)),
        rng.choice(kinds, (GAMES, ROUNDS, constraints)).astype(float),
        rng.choice([0.0, 1.0, 30.0], GAMES),
    )
    return Villain(*(jnp.asarray(each, dtype) for each in drawn)), jnp.asarray(limit, dtype)


LEARNERS = {
    "Auto": Auto(),
    "PDOGD": PDOGD(theta_scale=0.01),
    "Blocks": Blocks(cx.primal.OCG(), theta_scale=0.01),
}


@eqx.filter_jit
def revealed(inner, villains, limits):
    """In every round of every game: g_t at the decision, its maximum on the domain, and g_t(safe)."""
    domain = ProbabilitySimplex(N)
    m = limits.shape[1]
    regularity = cx.Regularity(lipschitz=1.0, smoothness=0.0, constraint_bound=1.0)
    problem = cx.Problem(domain, loss, constraint, constraints=m, regularity=regularity)

    def one(villain, limit):
        learner = Capped(inner, safe=villain.safe, limit=limit, bound=villain.bound, margin=villain.margin)

        def step(state, t):
            r = villain.answer(t, learner.decision(state))
            state, outcome = learner.observe(problem, state, r)
            highest = jnp.max(constraint_at_vertices(r), axis=-1)
            return state, (outcome.constraint, highest, constraint(villain.safe, r))

        start = jnp.full(N, 1 / N, villain.safe.dtype)
        state = learner.init(problem, key=KEY, horizon=ROUNDS, start=start)
        return jax.lax.scan(step, state, jnp.arange(ROUNDS))[1]

    return jax.vmap(one)(villains, limits)


def constraint_at_vertices(r):
    """All g at all vertices, (m, n): a convex function is largest at one of them."""
    return jax.vmap(lambda vertex: constraint(vertex, r), out_axes=1)(jnp.eye(N, dtype=r["a"].dtype))


def worst_share(inner, villains, limits, tol):
    """The largest running violation over its limit, and a proof that the villains kept to the rules."""
    values, highest, at_safe = (np.asarray(each, float) for each in revealed(inner, villains, limits))
    bound, margin = (np.asarray(each, float)[:, None] for each in (villains.bound, villains.margin))
    assert np.all(highest <= bound * (1 + tol) + margin * tol)
    assert np.all(at_safe <= -margin + tol * (bound + margin))
    return np.max(np.cumsum(values, axis=1) / np.asarray(limits, float)[:, None])


games = {
    "seed": st.integers(0, 2**32 - 1),
    "kinds": st.lists(st.integers(0, 4), min_size=1, max_size=5),
    "size": st.sampled_from([1e-4, 1.0, 1e4]),
}


PLAYED = [("Auto", 1, 50), ("Auto", 3, 30), ("PDOGD", 3, 25), ("Blocks", 1, 25)]


@pytest.mark.parametrize("name, constraints, examples", slow_but(PLAYED[2:], PLAYED))
def test_no_adversary_exceeds_the_limit(name, constraints, examples):
    shares = []

    @settings(max_examples=examples)
    @given(**games)
    def holds(seed, kinds, size):
        foes, limits = villains(np.random.default_rng(seed), constraints, kinds, size)
        shares.append(worst_share(LEARNERS[name], foes, limits, 1e-12))
        assert shares[-1] <= 1 + 1e-9

    holds()
    assert len(shares) >= examples and max(shares) > 0.999  # some adversary takes all that it may


def test_no_adversary_exceeds_the_limit_in_float32():
    @settings(max_examples=5)
    @given(**games)
    def holds(seed, kinds, size):
        foes, limits = villains(np.random.default_rng(seed), 2, kinds, size, np.float32)
        assert worst_share(LEARNERS["PDOGD"], foes, limits, 1e-5) <= 1 + 1e-5

    holds()


@pytest.mark.parametrize("games, share, rounds", [(1000, 1.0, 3), (10, 1e-4, 200_000)])
def test_rounding_takes_nothing_from_the_promise(games, share, rounds):
    """In float32, not by one unit in the last place: when all room is taken at once, and by steps so small that a plain
    sum would lose them, and end 0.5% above the limit."""
    interval = cx.Problem(Box(np.zeros(1), np.ones(1)), lambda x, slope: -x[0], lambda x, slope: slope * x[0])

    @jax.jit
    @jax.vmap
    def values(limit, bound):
        learner = Capped(Stay(), safe=jnp.zeros(1), limit=limit, bound=bound)

        def step(state, _):
            state, outcome = learner.observe(interval, state, jnp.asarray(share, bound.dtype) * bound)
            return state, outcome.constraint[0]

        state = learner.init(interval, key=KEY, start=jnp.ones(1, bound.dtype))
        return jax.lax.scan(step, state, length=rounds)[1]

    limit, bound = np.random.default_rng(0).uniform([[0.1], [1.1]], [[0.9], [1.9]], (2, games)).astype(np.float32)
    found = values(limit, bound)
    assert found.dtype == np.float32
    most = np.cumsum(np.asarray(found, float), axis=1).max(1)
    assert np.all(most <= limit) and np.all(most >= limit * (1 - 1e-6))


def test_without_the_cap_the_limit_is_exceeded():
    foes, _ = villains(np.random.default_rng(0), 1, [0, 1], 1.0)
    values, _, _ = revealed(Auto(), foes, jnp.full((GAMES, 1), 1e9, float))  # the type of the limits above
    assert np.max(np.cumsum(values, axis=1) / np.asarray(foes.bound)[:, None]) > 5


# One game


COSTS = np.random.default_rng(1).normal(size=(60, N)) - [0.0, 0.0, 0.0, 1.0]
SAFE = np.array([0.4, 0.3, 0.3, 0.0])


def use(x, cost):
    return x[3] - 0.2


def problem(**options):
    return cx.Problem(ProbabilitySimplex(N), lambda x, cost: jnp.vdot(cost, x), use, **options)


def play(learner, costs=COSTS, **options):
    return cx.play(problem(), learner, costs, key=KEY, keep_decisions=True, **options)


def begin(learner):
    return learner.init(problem(), key=KEY, horizon=len(COSTS))


FREE = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RegularizedAscent(theta=0.1, mu=0.1))


def capped(limit=2.0, **options):
    return Capped(FREE, safe=SAFE, limit=limit, bound=0.8, **options)


def test_it_is_free_while_the_limit_is_far():
    free, game = play(FREE), play(capped(limit=1e3))
    np.testing.assert_allclose(game.decisions, free.decisions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(game.multiplier, free.multiplier, rtol=1e-9)


def test_a_limit_of_nothing_plays_the_safe_decision():
    tight = np.array([0.3, 0.3, 0.2, 0.2])  # earns nothing
    game = play(Capped(FREE, safe=tight, limit=0.0, bound=0.8))
    np.testing.assert_allclose(game.decisions, np.tile(tight, (60, 1)), rtol=0, atol=1e-15)


def test_a_margin_is_room():
    """With nothing to spend, a share a of the learner's decision may cost 0.8 a, and the rest earns 0.2 (1 - a)."""
    first = np.full(N, 1 / N)
    for margin, share in ((0.0, 0.0), (0.2, 0.2)):
        game = play(capped(limit=0.0, margin=margin))
        np.testing.assert_allclose(game.decisions[0], (1 - share) * SAFE + share * first, rtol=0, atol=1e-12)
        assert game.violation().max() <= 1e-12


def test_a_bound_that_was_too_low_is_raised():
    """To 1, which the first round shows. With 0.5, the third one would lead to 3."""
    interval = cx.Problem(Box(np.zeros(1), np.ones(1)), lambda x, r: -x[0], lambda x, r: x[0])
    game = cx.play(interval, Capped(Stay(), safe=[0.0], limit=2.5, bound=0.5), np.ones((5, 1)), key=KEY, start=[1.0])
    np.testing.assert_allclose(game.violation()[:, 0], [1, 2, 2.5, 2.5, 2.5], rtol=1e-14)


def test_the_learner_is_told_what_was_played():
    learner = capped(limit=0.0)
    state, outcome = learner.observe(problem(), begin(learner), jnp.asarray(COSTS[0]))
    told, _ = FREE.observe(problem(), begin(FREE), jnp.asarray(COSTS[0]), played=jnp.asarray(SAFE))
    np.testing.assert_array_equal(FREE.decision(state.learner), FREE.decision(told))
    np.testing.assert_allclose(outcome.constraint, [-0.2])


@pytest.mark.slow  # the contract of learners asks it of Capped, with another learner in it
def test_going_on_equals_not_having_stopped():
    whole, first = play(capped()), play(capped(), COSTS[:25], horizon=len(COSTS))
    rest = cx.play(problem(), capped(), COSTS[25:], key=KEY, state=first.state, keep_decisions=True)
    np.testing.assert_allclose(rest.decisions, whole.decisions[25:], rtol=0, atol=1e-12)


def test_limits_may_be_traced_and_batched():
    @jax.jit
    @jax.vmap
    def many(limit):
        learner = Capped(FREE, safe=jnp.asarray(SAFE), limit=limit, bound=0.8)
        return cx.play(problem(), learner, jnp.asarray(COSTS), key=KEY).violation()[:, 0]

    limits = np.array([0.1, 1.0, 1e3])
    violations = many(jnp.asarray(limits))
    assert np.all(violations.max(1) <= limits * (1 + 1e-9))
    np.testing.assert_allclose(violations[1], play(capped(limit=1.0)).violation()[:, 0], rtol=0, atol=1e-9)


def test_the_bound_comes_from_the_problem_unless_it_is_given():
    known = problem(regularity=cx.Regularity(constraint_bound=0.8))
    learner = Capped(FREE, safe=SAFE, limit=2.0)
    game = cx.play(known, learner, COSTS, key=KEY, keep_decisions=True)
    np.testing.assert_allclose(game.decisions, play(capped()).decisions, rtol=0, atol=1e-12)


def test_limits_of_their_own_for_each_constraint():
    box = cx.Problem(Box(np.zeros(2), np.ones(2)), lambda x, r: -jnp.sum(x), lambda x, r: x - 0.5, constraints=2)
    learner = Capped(FREE, safe=[0.0, 0.0], limit=[1.0, 4.0], bound=0.5, margin=0.5)
    game = cx.play(box, learner, np.zeros((100, 1)), key=KEY)
    assert np.all(game.violation().max(0) <= np.array([1.0, 4.0]) * (1 + 1e-9))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Capped(cx.dual.PI(), safe=SAFE, limit=1.0), "Capped needs one of cocoax.learners first, got PI"),
        (lambda: capped(limit=-1.0), "limit must be a number >= 0, or one for each constraint, got -1.0"),
        (lambda: capped(limit=np.inf), "limit must be a number >= 0, or one for each constraint, got inf"),
        (lambda: capped(margin=np.ones((2, 2))), "margin must be a number >= 0, or one for each constraint"),
        (lambda: Capped(Auto(), safe=SAFE, limit=1.0, bound=-0.5), "bound must be a number >= 0"),
        (lambda: play(Capped(Auto(), safe=SAFE, limit=1.0)), "Capped needs an upper bound on the constraint values"),
        (lambda: play(Capped(Auto(), safe=2 * SAFE, limit=1.0, bound=0.8)), "safe must lie in the domain"),
        (lambda: play(Anytime(Capped(Auto(), safe=2 * SAFE, limit=1.0, bound=0.8))), "safe must lie in the domain"),
        (lambda: Capped(Auto(), safe="x", limit=1.0), "safe must be a number, got 'x'"),
        (lambda: Capped(Auto(), safe=np.nan * SAFE, limit=1.0), "safe must be finite"),
        (lambda: play(Capped(Auto(), safe=SAFE[:3], limit=1.0, bound=0.8)), "safe must have the domain's shape"),
        (lambda: play(capped(limit=[1.0, 2.0])), "limit must be one number or 1, one for each constraint"),
    ],
)
def test_bad_arguments_are_told_so(make, sentence):
    with pytest.raises(cx.CocoaxError, match=sentence):
        make()
