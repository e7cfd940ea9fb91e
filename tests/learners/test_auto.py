"""TrackedPI against plain NumPy; Auto in other units, where little can be had of a problem, and on its targets."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tracking_tools as tools
from jaxtyping import Array, Float
from quadratic_tools import Constraint, Loss, functions, some_rounds
from slow_tools import slow_but
from tracking_tools import over

import cocoax as cx
from cocoax import problems
from cocoax.domains import Box, L2Ball, NuclearNormBall, ProbabilitySimplex, Product
from cocoax.learners import Auto, TrackedPI

KEY = jax.random.key(0)

# dual.PI in NumPy


class Controller:
    """The weights u of m constraints, from their values and natural units."""

    def __init__(self, m, gain=0.3, proportional=20.0, smoothing=0.7, memory=None):
        self.gain, self.proportional, self.smoothing = gain, proportional, smoothing
        self.keep = 1.0 if memory is None else 1 - 1 / memory
        self.t = 0.0
        self.integral, self.mean, self.total, self.counts, self.squares, self.noise, self.largest = np.zeros((7, m))

    def weigh(self, values, units):
        self.t = self.keep * self.t + 1
        return np.array([self._one(i, g, unit) for i, (g, unit) in enumerate(zip(values, units))])

    def _one(self, i, g, unit):
        active, keep = self.integral[i] > 0 or g > 0, self.keep
        self.counts[i] = keep * self.counts[i] + active
        self.squares[i] = keep * self.squares[i] + active * g**2
        self.noise[i] = keep * self.noise[i] + active * (g - self.mean[i]) ** 2
        self.total[i] = keep * self.total[i] + g
        self.largest[i] = max(keep * self.largest[i], g**2)
        mu = over(self.gain * (unit + min(self.integral[i], 10 * unit)), (self.squares[i] + self.largest[i]) ** 0.5)
        g = g + max(self.total[i] - 0.7 * self.noise[i] ** 0.5, 0) / self.t
        self.mean[i] = self.smoothing * self.mean[i] + (1 - self.smoothing) * g
        self.integral[i] = max(self.integral[i] + mu * g, 0)
        return max(self.integral[i] + self.proportional * mu * self.mean[i], 0)

    def urgency(self):
        """How far the most broken constraint's running mean is beyond three of its standard deviations, up to 1."""
        most = 0.0
        for i, count in enumerate(self.counts):
            if count > 0:
                variance = (self.noise[i] + self.largest[i]) / count
                deviation = (variance * (1 - self.smoothing) / (1 + self.smoothing)) ** 0.5
                most = max(most, min(max(over(self.mean[i], deviation) - 3, 0), 1))
        return most


def some_values(constraints=2, rounds=80):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(rounds, constraints)) + np.where(np.arange(rounds) < 30, 0.6, -2.0)[:, None]
    return values, rng.uniform(0.5, 2, rounds), rng.uniform(0.5, 2, (rounds, constraints))


def weighed(dual, values, loss_norms, norms):
    def step(state, given):
        value, loss_norm, norm = given
        weights, state = dual.weigh(state, value, lambda: (loss_norm, norm))
        return state, weights

    state = dual.init(values.shape[1], values.dtype)
    weights = jax.lax.scan(step, state, tuple(map(jnp.asarray, (values, loss_norms, norms))))[1]
    assert np.all(weights.loss == 1)
    return np.asarray(weights.constraint)


@pytest.mark.parametrize("options", [{}, {"memory": 10, "gain": 0.1, "proportional": 3.0, "smoothing": 0.5}])
def test_pi_is_its_formula(options):
    values, loss_norms, norms = some_values()
    control, expected = Controller(2, **options), []
    keep = control.keep
    of_loss, of_constraints = 0.0, np.zeros(2)
    for value, loss_norm, norm in zip(values, loss_norms, norms):
        of_loss, of_constraints = keep * of_loss + loss_norm**2, keep * of_constraints + norm**2
        expected.append(control.weigh(value, np.sqrt(of_loss / of_constraints)))
    found = weighed(cx.dual.PI(**options), values, loss_norms, norms)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert (found > 0).any() and (found == 0).any()


def test_pi_has_no_units():
    values, loss_norms, norms = some_values()
    loss, constraint = 8.0, np.array([0.25, 1024.0])
    found = weighed(cx.dual.PI(), values, loss_norms, norms)
    other = weighed(cx.dual.PI(), constraint * values, loss * loss_norms, constraint * norms)
    np.testing.assert_array_equal(other, loss / constraint * found)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: cx.dual.PI(gain=0.0), "gain must be positive and finite, got 0.0"),
        (lambda: cx.dual.PI(proportional=-1.0), r"proportional must lie in \[0, inf\], got -1.0"),
        (lambda: cx.dual.PI(smoothing=1.0), r"smoothing must lie in \[0, 0.999\], got 1.0"),
        (lambda: Auto(memory=1), "memory must be more than 1 round, or None for all of them, got 1"),
    ],
)
def test_bad_arguments_are_told_so(make, sentence):
    with pytest.raises(cx.CocoaxError, match=sentence):
        make()


# TrackedPI in NumPy


def auto(domain: tools.Set, start, rounds, loss_curvature, constraint_curvature, memory):
    """The plays and multipliers of TrackedPI, from its docstring."""
    keep = 1.0 if memory is None else 1 - 1 / memory
    m = rounds["a"].shape[1]
    follower, control = tools.Follower(domain, start, 8), Controller(m, memory=memory)
    n, mean, squares, far, total, kappa = 0.0, np.zeros_like(start), np.zeros(m), 0.1 * domain.diameter, 0.0, 0.0
    plays, multipliers, boosts = [start], [], []
    for y, c, a, b in zip(*(rounds[name] for name in "ycab")):
        x = follower.x
        values = np.array([np.sum(ai * x) + 0.5 * constraint_curvature * np.sum(x**2) - bi for ai, bi in zip(a, b)])
        of_loss = domain.tangent(loss_curvature * (x - y) + c)
        of_constraints = [domain.tangent(ai + constraint_curvature * x) for ai in a]

        n, mean = keep * n + 1, keep * mean + of_loss
        squares = keep * squares + [np.sum(each**2) for each in of_constraints]
        units = [over(np.linalg.norm(mean) / n, (each / n) ** 0.5) for each in squares]
        u = control.weigh(values, units)
        strength = 1 + sum(over(weight, unit) for weight, unit in zip(u, units))
        hessian = (loss_curvature + constraint_curvature * u.sum()) / strength  # times the identity
        h = (of_loss + sum(weight * each for weight, each in zip(u, of_constraints))) / strength
        h = h + domain.tangent(hessian * (follower.y - x))
        kappa = max(keep * kappa, hessian if h.any() else 0.0)

        far = max(far, np.linalg.norm(x - start))
        total = keep * total + far**2 * np.sum(h**2)
        boosts.append(1 + control.urgency() * (min(strength, 10) - 1))
        eta = boosts[-1] * over(far**2, (2 * total) ** 0.5)
        eta = (1 - np.exp(-eta * kappa)) / kappa if kappa > 0 else eta
        follower.follow(follower.y - eta * h, slack=n**-0.25)
        plays.append(follower.x)
        multipliers.append(u)
    return np.array(plays), np.array(multipliers), np.array(boosts)


LOWER, UPPER = np.zeros(4), np.array([1.0, 2.0, 1.0, 0.5])
BALL = NuclearNormBall((3, 4), 1.5, method="exact")
CASES = {  # the domain, the same for NumPy, constraints, curvature of the loss and of the constraints
    "simplex, linear": (ProbabilitySimplex(5), tools.simplex(5), 3, 0.0, 0.0),
    "simplex, quadratic": (ProbabilitySimplex(5, 2.0), tools.simplex(5, 2.0), 1, 1.0, 0.5),
    "box, linear": (Box(LOWER, UPPER), tools.box(LOWER, UPPER), 1, 0.0, 0.0),
    "nuclear ball": (BALL, tools.nuclear((3, 4), 1.5, np.asarray(BALL.vertex().dense())), 2, 1.0, 0.0),
}


BOTH = [(name, memory) for name in CASES for memory in (None, 50)]


@pytest.mark.parametrize("name, memory", slow_but([*BOTH[::2], ("simplex, linear", 50)], BOTH))
def test_version_1_is_its_transcription(name, memory):
    domain, known, constraints, *curvatures = CASES[name]
    rounds = some_rounds(domain.shape, constraints)
    problem = cx.Problem(domain, *functions(*curvatures), constraints=constraints)
    game = cx.play(problem, TrackedPI(memory), rounds, key=KEY, keep_decisions=True)
    plays, multipliers, boosts = auto(known, np.asarray(domain.start()), rounds, *curvatures, memory)  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(game.multiplier, multipliers, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(game.decisions, plays[:-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(game.decision, plays[-1], rtol=0, atol=1e-9)
    assert multipliers.max() > 0.05 and np.ptp(plays, axis=0).max() > 0.3
    assert np.all(game.lmo_calls == 1)
    assert boosts.max() > 1 or (name, memory) != ("simplex, quadratic", None)


def test_steps_are_at_most_ten_times_longer():
    """As in its transcription, where constraints that cannot be met ask for more."""
    domain, known, constraints, *curvatures = CASES["simplex, quadratic"]
    rounds = some_rounds(domain.shape, constraints)
    rounds["b"] = rounds["b"] - 3
    problem = cx.Problem(domain, *functions(*curvatures), constraints=constraints)
    game = cx.play(problem, TrackedPI(), rounds, key=KEY, keep_decisions=True)
    plays, _, boosts = auto(known, np.asarray(domain.start()), rounds, *curvatures, None)  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(game.decisions, plays[:-1], rtol=0, atol=1e-9)
    assert np.sum(boosts == 10) >= 5


# Units


class Units(eqx.Module):
    loss: Float[Array, ""]
    constraint: Float[Array, " m"]
    geometry: Float[Array, ""]


class LossIn(eqx.Module):
    units: Units

    def __call__(self, x, r):
        return self.units.loss * Loss(jnp.ones(()))(x / self.units.geometry, r)


class ConstraintIn(eqx.Module):
    units: Units

    def __call__(self, x, r):
        return self.units.constraint * Constraint(jnp.full((), 0.5))(x / self.units.geometry, r)


SETS = {
    "simplex": lambda size: ProbabilitySimplex(5, size),
    "box": lambda size: Box(-size * jnp.ones(4), size * jnp.array([1.0, 2.0, 1.0, 0.5])),
    "nuclear ball": lambda size: NuclearNormBall((3, 4), 1.5 * size),
}


def decisions_in(units, name, rounds=100):
    domain = SETS[name](units.geometry)
    problem = cx.Problem(domain, LossIn(units), ConstraintIn(units), constraints=2)
    game = cx.play(problem, Auto(), some_rounds(domain.shape, 2, rounds, seed=2), key=KEY, keep_decisions=True)
    assert game.multiplier.max() > 0
    return np.asarray(game.decisions / units.geometry)


def units(loss=1.0, constraint=(1.0, 1.0), geometry=1.0):
    return Units(*(jnp.asarray(each) for each in (loss, constraint, geometry)))


@pytest.mark.parametrize("name", SETS)
def test_powers_of_two_change_no_bit(name):
    plain = decisions_in(units(), name)
    for other in (
        units(loss=2.0**20),
        units(constraint=(2.0**-13, 2.0**9)),
        units(geometry=2.0**-17),
        units(2.0**-30, (2.0**15, 2.0**-15), 2.0**11),
    ):
        np.testing.assert_array_equal(decisions_in(other, name), plain)


@pytest.mark.parametrize("name", SETS)
def test_other_units_change_rounding_only(name):
    plain, diameter = decisions_in(units(), name), float(SETS[name](jnp.ones(())).diameter(2))
    for other in (
        units(loss=1e6),
        units(loss=1e-6),
        units(constraint=(1e6, 1e-6)),
        units(geometry=1e6),
        units(geometry=1e-6),
        units(3e-5, (7e4, 1e-3), 1e3),
    ):
        assert np.abs(decisions_in(other, name) - plain).max() <= 1e-4 * diameter


# Where little can be had


SIMPLEX = ProbabilitySimplex(4)
COSTS = np.random.default_rng(3).normal([0.0, 0.5, 1.0, -0.5], size=(200, 4))


def played(loss, constraint=None, rounds=COSTS, domain=SIMPLEX, learner=None, **options):
    problem = cx.Problem(domain, loss, constraint, **options)
    game = cx.play(problem, Auto() if learner is None else learner, rounds, key=KEY, keep_decisions=True)
    tol = 1e-9 if np.asarray(game.loss).dtype == np.float64 else 1e-5
    assert np.all(jax.jit(jax.vmap(lambda x: domain.contains(x, tol)))(game.decisions))
    return game


def linear(x, cost):
    return jnp.vdot(cost, x)


def within(x, r):
    return jnp.vdot(r["use"], x) - r["limit"]


LINEAR = cx.Problem(SIMPLEX, lambda x, r: jnp.vdot(r["cost"], x), within)


def said(costs=COSTS, use=(0.0, 0.0, 0.0, 1.0), limit=0.3):
    """Rounds of LINEAR: many tests share its program."""
    rounds = len(costs)
    return {
        "cost": costs,
        "use": np.tile(np.asarray(use, costs.dtype), (rounds, 1)),
        "limit": np.full(rounds, limit, costs.dtype),
    }


def played_linear(costs=COSTS, problem=LINEAR, **limited):
    game = cx.play(problem, Auto(), said(costs, **limited), key=KEY, keep_decisions=True)
    assert np.all(jax.jit(jax.vmap(lambda x: SIMPLEX.contains(x, 1e-9)))(game.decisions))
    return game


@jax.custom_vjp
def guarded(x, cost):
    return jnp.vdot(cost, x)


guarded.defvjp(lambda x, cost: (jnp.vdot(cost, x), cost), lambda cost, up: (up * cost, None))


def test_losses_that_cannot_be_differentiated_twice_are_played_as_if_they_were_linear():
    def outside(x, r):
        return jax.pure_callback(lambda c: np.asarray(c), jax.ShapeDtypeStruct((4,), r["cost"].dtype), r["cost"])

    plain = played_linear()
    once = cx.Problem(SIMPLEX, lambda x, r: guarded(x, r["cost"]), within)
    np.testing.assert_array_equal(played_linear(problem=once).decisions, plain.decisions)
    given = cx.Problem(SIMPLEX, lambda x, r: jnp.vdot(r["cost"], x), within, loss_grad=outside)
    np.testing.assert_allclose(played_linear(problem=given).decisions, plain.decisions, rtol=0, atol=1e-9)


def test_without_constraints_it_learns():
    game = played(linear)
    assert game.constraint.shape == (200, 0)
    best = COSTS.sum(0).min()
    assert game.loss.sum() - best <= 0.3 * (COSTS.mean(1).sum() - best)  # of what the start loses


def test_constraints_without_gradients_change_nothing():
    free = played(linear)
    game = played_linear(use=np.zeros(4), limit=-1.0)
    np.testing.assert_allclose(game.decisions, free.decisions, rtol=0, atol=1e-15)


def test_a_constraint_is_met_though_the_loss_has_no_gradient():
    game = played_linear(0 * COSTS, use=np.eye(4)[0], limit=0.1)
    assert game.violation()[-1, 0] <= 0 and game.decision[0] <= 0.1


def test_a_start_at_the_minimiser_of_the_loss_is_left_for_the_constraint():
    problem = cx.Problem(L2Ball(3, radius=1.0), lambda x, r: 0.5 * jnp.vdot(x, x), lambda x, r: 0.3 - x[0])
    game = cx.play(problem, Auto(), np.zeros((2000, 1)), key=KEY)
    np.testing.assert_allclose(game.decision, [0.3, 0, 0], atol=1e-3)
    assert game.violation()[-1, 0] <= 1.5 and game.constraint[-500:].mean() <= 0


def test_nothing_to_learn_from_keeps_the_start():
    game = played_linear(0 * COSTS, use=np.zeros(4), limit=0.0)
    np.testing.assert_array_equal(game.decisions, np.full((200, 4), 0.25))


def test_a_constraint_that_cannot_be_met_is_broken_as_little_as_can_be():
    use = jnp.array([1.0, 2.0, 3.0, 4.0])
    rounds = np.random.default_rng(4).normal(size=(2000, 4)) - np.asarray(use) / 10
    game = played(linear, lambda x, cost: use @ x - 0.5, rounds)
    assert np.mean(game.constraint[-200:]) <= 0.5 + 0.02  # of 0.5 to 3.5
    assert float(use @ game.decision) - 0.5 <= 0.55


def test_float32_stays_float32_and_plays_the_same_game_at_first():
    wide, start = played_linear(), np.full(4, 0.25, np.float32)
    narrow = cx.play(LINEAR, Auto(), said(COSTS.astype(np.float32)), key=KEY, start=start, keep_decisions=True)
    assert {leaf.dtype for leaf in jax.tree.leaves((narrow.decisions, narrow.state))} <= {
        np.dtype(np.float32),
        np.dtype(np.int64),
        np.dtype(np.int32),
        np.dtype(bool),
    }
    np.testing.assert_allclose(narrow.decisions[:15], wide.decisions[:15], rtol=0, atol=1e-4)
    assert np.all(np.abs(narrow.decisions.sum(1) - 1) < 1e-5) and narrow.decisions.min() > -1e-6


def test_decisions_may_be_trees():
    domain = Product({"share": ProbabilitySimplex(3), "level": L2Ball(2, 1.0)})
    rng = np.random.default_rng(5)
    rounds = {"share": rng.normal([1, 0, -1], size=(300, 3)), "level": rng.normal(1, size=(300, 2))}

    def loss(x, r):
        return jnp.vdot(r["share"], x["share"]) + jnp.vdot(r["level"], x["level"]) + 0.5 * jnp.sum(x["level"] ** 2)

    game = played(loss, lambda x, r: x["share"][2] - 0.5, rounds, domain)
    assert np.mean(game.constraint[-100:]) <= 0.05
    assert game.decision["share"][0] <= 0.1 and np.all(game.decision["level"] < -0.4)


def test_it_needs_no_horizon_and_a_longer_game_begins_with_the_shorter():
    whole = played_linear()
    part = cx.play(LINEAR, Auto(), said(COSTS[:80]), key=KEY, keep_decisions=True)
    np.testing.assert_allclose(part.decisions, whole.decisions[:80], rtol=0, atol=1e-12)
    learner = Auto()
    state, observe = (
        jax.jit(lambda: learner.init(LINEAR, key=KEY))(),
        jax.jit(lambda *given: learner.observe(LINEAR, *given)),
    )
    assert learner.rounds_left(state) is None
    rounds = said()
    for t in range(30):
        state, _ = observe(state, {name: leaf[t] for name, leaf in rounds.items()})
    np.testing.assert_allclose(learner.decision(state), whole.decisions[30], rtol=0, atol=1e-9)


# The targets


@functools.partial(jax.jit, static_argnames=("make", "horizon"))
def games(make, learner, horizon, seeds, first=None):
    """Games on instances of their own, from `first` in every entry; the rounds come back."""

    def one(seed):
        instance_key, key = jax.random.split(jax.random.key(seed))
        instance = make(instance_key)
        start = None if first is None else jnp.full(instance.problem.domain.shape, first)
        game = cx.play(instance.problem, learner, instance.environment, key=key, horizon=horizon, start=start)
        rounds = instance.environment.draw(horizon, key)
        return instance, rounds, game.loss, game.constraint

    return jax.vmap(one)(seeds)


def paper_regret(seeds):
    _, _, loss, _ = games(problems.matrix_completion, Auto(), 1000, seeds)
    return np.mean(loss.sum(-1))  # the optimum loses nothing


def pacing_figures(budget, seeds, first):
    """Overspend over the whole budget, and regret over the optimum's value; means over seeds."""
    instances, rounds, loss, constraint = games(_pacing(budget), Auto(), 1000, seeds, jnp.asarray(first))
    overspend, regret = [], []
    for i in range(len(seeds)):
        instance, drawn = jax.tree.map(lambda leaf, i=i: leaf[i], (instances, rounds))
        best = instance.comparator(drawn, tol=1e-5)
        overspend.append(constraint[i].sum() / drawn["budget"].sum())
        regret.append((loss[i].sum() - best.value) / abs(best.value))
    return np.mean(overspend), np.mean(regret)


@functools.cache
def _pacing(budget, doubles_at=None):
    return functools.partial(problems.pacing, budget=budget, doubles_at=doubles_at)


SMOKE, ALL = jnp.arange(2), jnp.arange(10)  # never used for tuning


def test_the_papers_experiment_on_two_seeds():
    assert paper_regret(SMOKE) <= 0.06


def test_pacing_on_two_seeds():
    overspend, regret = pacing_figures(0.2, SMOKE, first=0.5)
    assert overspend <= 0.01 and regret <= 0.02


@pytest.mark.slow
def test_the_papers_experiment():
    assert paper_regret(ALL) <= 0.06


@pytest.mark.slow
def test_the_binding_variant():
    make = functools.partial(problems.matrix_completion, binding=True)
    instances, rounds, loss, constraint = games(make, Auto(), 1000, ALL)
    regret = []
    for i in range(len(ALL)):
        instance, drawn = jax.tree.map(lambda leaf, i=i: leaf[i], (instances, rounds))
        regret.append(loss[i].sum() - instance.comparator(drawn).value)
    assert np.mean(regret) <= 0.33
    assert np.mean(constraint.sum((-2, -1))) <= 50


@pytest.mark.slow
@pytest.mark.parametrize("budget, first", [(0.5, 0.5), (0.2, 0.5), (0.1, 0.5), (0.5, 1.0), (0.1, 0.0)])
def test_pacing(budget, first):
    """From buying half of everything, the domain's start, at three budgets; and from all and from nothing."""
    overspend, regret = pacing_figures(budget, ALL, first)
    assert overspend <= 0.01 and regret <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("age", [1000, 10_000])
def test_doubled_prices_cost_few_rounds_of_budget(age):
    """The largest running overspend from the day that prices double, in rounds of budget."""
    _, rounds, _, constraint = games(_pacing(0.5, age), Auto(memory=1000), age + 1000, ALL)
    since = np.cumsum(constraint[:, age:, 0], axis=1)
    peaks = since.max(1) / np.asarray(rounds["budget"][:, 0])
    assert np.mean(peaks) <= 5


def test_gradients_that_sum_to_nothing_do_not_wake_it_again():
    problem = cx.Problem(cx.domains.Box([-1.0], [1.0]), lambda x, r: r * x[0])
    signs = jnp.where(jnp.arange(2000) % 2, -1.0, 1.0)
    exact, almost = (cx.play(problem, Auto(), r, key=KEY).loss.sum() for r in (signs, signs.at[0].add(1e-3)))
    assert abs(exact - almost) < 0.1  # no fixed decision has a loss
    assert exact < 10


def test_curvature_is_seen_where_gradients_sum_to_nothing():
    problem = cx.Problem(
        cx.domains.Box([-1.0], [1.0]), lambda x, r: r["slope"] * x[0] + r["curve"] * (x[0] - r["centre"]) ** 2
    )
    first = {"slope": jnp.array(1.0), "curve": jnp.array(0.0), "centre": jnp.array(0.0)}
    observe = jax.jit(lambda *given: TrackedPI().observe(problem, *given)[0])
    state = observe(jax.jit(lambda: TrackedPI().init(problem, key=KEY))(), first)
    x = TrackedPI().decision(state)[0]
    second = {"slope": jnp.array(0.0), "curve": jnp.array(512.0), "centre": x + 1 / 1024}  # whose gradient is -1
    state = observe(state, second)
    assert state.curvature == pytest.approx(1024, rel=1e-6)


def test_decisions_stay_in_the_set_over_very_many_rounds():
    """In float32, where rounding that goes one way would lead out of it: around one target, and around many."""
    targets = jnp.asarray(np.random.default_rng(3).dirichlet(np.ones(20), 30_000), jnp.float32)
    problem = cx.Problem(cx.domains.ProbabilitySimplex(20), lambda x, r: 0.5 * jnp.sum((x - r) ** 2))
    start = jnp.full(20, 0.05, jnp.float32)
    for rounds in (jnp.broadcast_to(targets[0], targets.shape), targets):
        game = cx.play(problem, Auto(), rounds, key=KEY, start=start)
        assert game.decision.dtype == jnp.float32
        assert problem.domain.contains(game.decision, 1e-6)
