"""Auto, version 2, against plain NumPy; what it keeps in every round; and the examples that broke version 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tracked_pi2_tools as transcription
import tracking_tools as tools
from quadratic_tools import functions, some_rounds
from slow_tools import slow_but

import cocoax as cx
from cocoax.domains import Box, L2Ball, NuclearNormBall, ProbabilitySimplex
from cocoax.learners import Auto

KEY = jax.random.key(0)
LOWER, UPPER = np.zeros(4), np.array([1.0, 2.0, 1.0, 0.5])
BALL = NuclearNormBall((3, 4), 1.5, method="exact")
CASES = {  # the domain, the same for NumPy, diameter or ends, constraints, curvatures of the loss and of them
    "simplex": (ProbabilitySimplex(5, 2.0), tools.simplex(5, 2.0), 2 * 2**0.5, 2, 1.0, 0.5),
    "box": (Box(LOWER, UPPER), tools.box(LOWER, UPPER), (LOWER, UPPER), 2, 1.0, 0.5),
    "nuclear ball": (BALL, tools.nuclear((3, 4), 1.5, np.asarray(BALL.vertex().dense())), 3.0, 1, 0.0, 0.0),
}


def both(name, rounds, memory):
    """The game, and its transcription."""
    domain, known, size, constraints, *curvatures = CASES[name]
    problem = cx.Problem(domain, *functions(*curvatures), constraints=constraints)
    game = cx.play(problem, Auto(memory), rounds, key=KEY, keep_decisions=True)
    start = np.asarray(domain.start())
    expected = transcription.play(known, start, size, rounds, curvatures, memory, entropic=name == "simplex")
    np.testing.assert_allclose(game.decisions, expected.plays, rtol=0, atol=1e-9)
    np.testing.assert_allclose(game.multiplier, expected.multipliers, rtol=1e-9, atol=1e-9)
    assert np.all(game.lmo_calls == 1)
    return expected


BOTH = [(name, memory) for name in CASES for memory in (None, 50)]


@pytest.mark.parametrize("name, memory", slow_but(BOTH[:-1], BOTH))
def test_version_2_is_its_transcription(name, memory):
    rounds = some_rounds(CASES[name][0].shape, CASES[name][3])
    rounds["c"][30:32] *= 20  # clipped; the second may be twice as long as the first
    expected = both(name, rounds, memory)
    assert np.max(expected.multipliers) > 0.05 and np.ptp(expected.plays, axis=0).max() > 0.3
    assert expected.clipped > 0


@pytest.mark.parametrize("name", ["simplex", "box"])
def test_also_where_constraints_cannot_be_met(name):
    """Then steps are longer, and units grow."""
    rounds = some_rounds(CASES[name][0].shape, CASES[name][3])
    rounds["b"] -= 2
    expected = both(name, rounds, None)
    assert max(expected.boosts) > 2 and expected.grown


@pytest.mark.parametrize("name, memory", slow_but(BOTH[:-1], BOTH))
def test_also_where_gradients_of_constraints_are_noise(name, memory):
    """Then multipliers weigh less; and losses are curved so much that decisions stop half-way."""
    rounds = some_rounds(CASES[name][0].shape, CASES[name][3], rounds=120)
    rounds["a"] *= np.random.default_rng(1).choice([-1.0, 1.0], size=(120, *[1] * (rounds["a"].ndim - 1)))
    for field in "yc":
        rounds[field] *= 0.1
    expected = both(name, rounds, memory)
    assert (expected.disagreeing > 30) == (memory is None) and (expected.turned > 0) == (name == "simplex")


def test_most_moves_of_matrices_are_left_out_until_units_may_grow():
    rounds = some_rounds(BALL.shape, 1, rounds=150)
    rounds["b"][90:] -= 9
    expected = both("nuclear ball", rounds, None)
    assert 20 < expected.left_out < 60 and expected.grown


# Movement and poles


@pytest.mark.parametrize("memory", slow_but([None], [None, 50]))
def test_limits_on_movement_alone_are_kept_after_every_round(memory):
    problem = cx.Problem(
        ProbabilitySimplex(4),
        lambda x, r: jnp.vdot(r["cost"], x),
        lambda x, r, previous: 0.5 * jnp.abs(x - previous).sum() - r["limit"],
    )
    costs = np.random.default_rng(0).normal([0.0, 0.2, 0.4, -0.2], size=(500, 4))
    costs[250:] *= -3
    for limit in (0.003, 0.1):
        game = cx.play(problem, Auto(memory), {"cost": costs, "limit": np.full(500, limit)}, key=KEY)
        assert np.cumsum(game.constraint[:, 0]).max() <= 1e-12
        assert np.max(game.constraint) > 0.5 * limit  # what was saved is used


POLES = {  # at 0, next to which the best first coordinate is
    "x log x": lambda x, r: jnp.vdot(r, x) + 0.03 * jnp.sum(x * jnp.log(x)),
    "root": lambda x, r: jnp.vdot(r, x) - 0.03 * jnp.sum(jnp.sqrt(x)),
    "logarithm": lambda x, r: jnp.vdot(r, x) - 0.001 * jnp.sum(jnp.log(x)),
}


@pytest.mark.parametrize("name, domain", [("x log x", "box"), ("logarithm", "box"), ("root", "simplex")])
def test_poles_on_the_boundary_are_not_played(name, domain, tmp_path):
    rounds = np.random.default_rng(1).normal([1.0, 0.0, -1.0], 0.3, size=(300, 3))
    ground = Box(np.zeros(3), np.ones(3)) if domain == "box" else ProbabilitySimplex(3)
    problem = cx.Problem(ground, POLES[name], lambda x, r: x[2] - 0.5)
    game = cx.play(problem, Auto(), rounds, key=KEY, keep_decisions=True)
    assert np.all(np.isfinite(game.decisions)) and np.all(np.isfinite(game.loss))
    at_start = jax.vmap(lambda r: problem.loss(ground.start(), r))(jnp.asarray(rounds[-100:]))
    assert np.mean(game.loss[-100:]) < np.mean(at_start) - 0.3 and game.decision[0] < 0.05
    if domain == "simplex":  # a session plays the others in the same way
        session = cx.Session(problem, Auto(), tmp_path / "session", key=KEY)
        session.observe_many(rounds)
        assert session.rounds == 300
        np.testing.assert_allclose(session.decide(), game.decision, rtol=0, atol=1e-9)


# What broke version 1


def test_curvatures_of_three_sizes():
    weights, centre, best = jnp.array([1.0, 10.0, 100.0]), jnp.array([2.0, 1.0, 0.7]), jnp.array([0.0, 4 / 11, 7 / 11])

    def loss(x, r):
        return 0.5 * jnp.sum(weights * (x - centre) ** 2)

    problem = cx.Problem(ProbabilitySimplex(3), loss)
    tracked = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RobustPI())
    mine, its = (
        float(cx.play(problem, learner, np.zeros(2000), key=KEY).loss.sum() - 2000 * loss(best, None))
        for learner in (Auto(), tracked)
    )
    assert 0 < mine <= 2 * its


def test_a_start_that_is_curved_a_thousand_times_more_is_forgotten():
    """Fourth powers: if the largest curvature counts for ever, the last decision is four times worse than Tracked's."""
    best = 0.2 * jnp.arange(1.0, 4.0)

    def loss(x, r):
        return jnp.sum((x - best) ** 4) + 0.1 * jnp.sum((x - best) ** 2)

    problem, start = cx.Problem(L2Ball(3, 20.0), loss), jnp.array([10.0, -10.0, 10.0])
    tracked = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RobustPI())
    mine, its = (cx.play(problem, each, np.zeros(500), key=KEY, start=start).loss[-1] for each in (Auto(), tracked))
    assert mine <= its


@pytest.mark.parametrize("rounds", slow_but([4000], [1000, 4000]))
def test_a_coordinate_that_is_pinned_does_not_hide_a_constraint(rounds):
    problem = cx.Problem(Box(np.zeros(2), np.ones(2)), lambda x, r: x[1] - x[0], lambda x, r: x[0] + 1000 * x[1] - 0.3)
    game = cx.play(problem, Auto(), np.zeros(rounds), key=KEY, start=np.zeros(2))
    assert game.violation()[-1, 0] <= 5


@pytest.mark.parametrize("sign", [1, -1])
def test_outliers_that_cancel_cost_no_more_than_few_rounds(sign):
    """The score is regret and twice the price of what was overspent; the optimum is (0.3, 0.35, 0.35), its multiplier
    1.05. To ignore the constraint costs 2.1 * 0.7 a round. In 13 games with other noise, a pair cost 8 to 15 if the
    positive one came first, else 1 to 7: up to five times a score of 3 without it, and version 1 has 2000."""
    target = jnp.array([1.0, 0.0, 0.0])
    problem = cx.Problem(
        ProbabilitySimplex(3), lambda x, r: 0.5 * jnp.sum((x - target) ** 2), lambda x, r: x[0] - 0.3 + r
    )
    noise = 0.1 * np.random.default_rng(2).normal(size=2000)
    noise -= noise.mean()
    outliers = np.zeros(2000)
    outliers[:2] = 1000 * sign, -1000 * sign

    def score(noise):
        game = cx.play(problem, Auto(), noise, key=KEY)
        return game.loss.sum() - 2000 * 0.3675 + 2.1 * max(game.constraint.sum(), 0)

    assert score(noise + outliers) <= score(noise) + 20 * 2.1 * 0.7


def test_roots_on_a_box_have_infinite_gradients_and_are_played():
    problem = cx.Problem(Box(jnp.zeros(3), jnp.ones(3)), lambda x, r: r @ x - 0.1 * jnp.sum(jnp.sqrt(x)))
    rounds = np.random.default_rng(0).normal(1, size=(100, 3))
    game = cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0))
    assert game.bad_round == -1 and np.all(game.decision < 0.3)


def test_units_change_nothing_where_the_first_gradient_is_infinite():
    """The loss is a root at 0, where the game begins but for one entry, and so is the constraint, in all entries."""
    problem = cx.Problem(
        Box(jnp.zeros(3), jnp.ones(3)),
        lambda x, r: r["loss"] * (r["cost"] @ x - jnp.sqrt(x[0])),
        lambda x, r: r["constraint"] * (1 - jnp.sqrt(x[1])),
    )

    def play(loss, constraint):
        sizes = {"loss": np.full(20, loss), "constraint": np.full(20, constraint)}
        rounds = sizes | {"cost": np.random.default_rng(0).normal(1, size=(20, 3))}
        return cx.play(problem, Auto(), rounds, key=KEY, start=np.zeros(3)).decision

    for other in ((2.0**20, 1.0), (2.0**-20, 2.0**9)):
        np.testing.assert_array_equal(play(*other), play(1.0, 1.0))


def test_a_loss_that_wakes_late_on_a_box_is_played_alike_in_all_units():
    def play(size):
        box = Box(-size * jnp.ones(3), size * jnp.ones(3))
        loss, constraint = lambda x, r: r * jnp.sum((x / size - 0.5) ** 2), lambda x, r: x.sum() / size - 0.6
        game = cx.play(cx.Problem(box, loss, constraint), cx.learners.Auto(), AWAKE, key=jax.random.key(0))
        return np.asarray(game.decision) / size

    np.testing.assert_array_equal(play(2.0**10), play(1.0))
    np.testing.assert_allclose(play(1.0), np.full(3, 0.2), atol=0.01)


@pytest.mark.parametrize("domain", [Box(jnp.zeros(5), jnp.ones(5)), ProbabilitySimplex(5), L2Ball(5, 1.0)])
def test_a_loss_that_wakes_late_is_played_alike_in_all_its_units(domain):
    """Until it does, costs are those of the constraint alone."""
    costs = np.random.default_rng(0).normal(size=(90, 5))

    def decisions(unit):
        rounds = {"cost": costs, "unit": np.where(np.arange(90) < 30, 0.0, unit)}
        problem = cx.Problem(
            domain,
            lambda x, r: r["unit"] * (r["cost"] @ x + 0.3 * x @ x),
            lambda x, r: x[0] + 0.5 * x[1] - 0.2 + 0.1 * r["cost"][0],
        )
        return cx.play(problem, Auto(), rounds, key=KEY, keep_decisions=True).decisions

    for unit in (2.0**10, 2.0**-10):
        np.testing.assert_array_equal(decisions(unit), decisions(1.0))


def test_a_loss_that_wakes_beside_a_constraint_that_is_overspent_is_played_alike_in_all_its_units():
    """The moves before had costs in another unit, up to which the constraint's may not grow."""
    random = np.random.default_rng(0)
    costs, noise = 0.3 * random.normal(size=(220, 4)) - np.eye(4)[0], 2 * random.normal(size=(220, 4))
    domain = ProbabilitySimplex(4)
    problem = cx.Problem(domain, lambda x, r: r["unit"] * (r["cost"] @ x), lambda x, r: (r["noise"] @ x) ** 2 - 0.5)

    def decisions(unit):
        rounds = {"cost": costs, "noise": noise, "unit": np.where(np.arange(220) < 150, 0.0, unit)}
        return cx.play(problem, Auto(), rounds, key=KEY, keep_decisions=True).decisions

    for unit in (2.0**13, 2.0**-17):
        np.testing.assert_array_equal(decisions(unit), decisions(1.0))


def test_odd_powers_of_two_change_no_bit_on_boxes():
    """A root of a number in the loss's unit rounds them otherwise: in float32 it did."""
    with jax.enable_x64(False):
        costs = jnp.asarray(np.random.default_rng(1).normal(-0.3, 1, size=(120, 6)), jnp.float32)

        @jax.jit
        def decisions(unit):
            problem = cx.Problem(Box(np.zeros(6), np.ones(6)), lambda x, r: r["unit"] * (r["cost"] @ x + 0.5 * x @ x))
            rounds = {"cost": costs, "unit": jnp.full(120, unit, jnp.float32)}
            return cx.play(problem, Auto(), rounds, key=jax.random.key(0), keep_decisions=True).decisions

        for power in (1, 3, -9, 20):
            np.testing.assert_array_equal(decisions(2.0**power), decisions(1.0))


AWAKE = jnp.where(jnp.arange(100) < 20, 0.0, 1.0)


def test_decisions_lie_in_their_box_to_the_bit():
    def decisions(lower, width, rounds):
        problem = cx.Problem(Box(lower, lower + width), lambda x, r: r @ x + 0.05 * x @ x)
        return cx.play(problem, Auto(), rounds, key=jax.random.key(0), keep_decisions=True).decisions

    draw = np.random.default_rng(0)
    lower, width = draw.normal(size=(20, 3)), np.exp(draw.normal(size=(20, 3)))
    played = np.asarray(jax.vmap(decisions)(lower, width, draw.normal(0.5, 1, (20, 60, 3))))
    assert (played >= lower[:, None]).all() and (played <= (lower + width)[:, None]).all()
