"""What play and its games say: errors in one sentence, regret, tables, stopping, tracing."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import Comparator, baselines, learners, primal
from cocoax.core import tree
from cocoax.problem.environment import Environment
from cocoax.testing import problems

ROUNDS = 16
KEY = jax.random.key(0)
OCG = learners.Blocks(primal.OCG())


@functools.cache
def simplex():
    return problems.simplex(key=jax.random.key(1), rounds=ROUNDS)


@functools.cache
def kept(dtype):
    problem, rounds = simplex()
    start = problem.domain.start().astype(dtype)
    return cx.play(problem, OCG, rounds, key=KEY, start=start, keep_rounds=True, keep_decisions=True)


@functools.cache
def best():
    return cx.hindsight(*simplex())


def with_problem(**changes):
    given = simplex().problem
    options = {
        "domain": given.domain,
        "loss": problems.loss,
        "constraint": problems.constraint,
        "regularity": given.regularity,
    }
    return cx.Problem(**(options | changes))


class Replay(Environment):
    """Recorded rounds, over and over."""

    rounds: dict

    def init(self, key):
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        index = state % self.rounds["target"].shape[0]
        return state + 1, jax.tree.map(lambda leaf: leaf[index], self.rounds)


class Chasing(Environment):
    """An adversary: the target flees from the decision, with noise."""

    def init(self, key):
        return jax.random.normal(key, (4,))

    def emit(self, state, decision, key):
        target = state - decision + 0.1 * jax.random.normal(key, (4,))
        round = {"target": target, "cost": target, "use": decision[None], "budget": jnp.full((1,), 0.2)}
        return 0.9 * state, round


# --- errors: one sentence, which says what to do


L2, LINF = cx.Regularity(1.0, 1.0), cx.Regularity(1.0, 1.0, norm=jnp.inf)
REFUSED = {
    "no constants": ({"regularity": None}, OCG, {}, "Blocks with OCG needs lipschitz in the l2 norm; give"),
    "no smoothness": (
        {"regularity": cx.Regularity(1.0)},
        learners.Blocks(primal.OSPF()),
        {},
        "Blocks with OSPF needs smoothness in the l2 norm; give",
    ),
    "no smoothness for Algorithm 2": (
        {"regularity": cx.Regularity(1.0, norm=jnp.inf)},
        learners.PDMFW(),
        {},
        "PDMFW needs smoothness in the linf norm; give",
    ),
    "only the l2 norm": ({"regularity": L2}, learners.PDMFW(), {}, "PDMFW needs constants in the linf norm, but"),
    "only the linf norm": ({"regularity": LINF}, OCG, {}, "needs constants in the l2 norm, but"),
    "overrun": ({}, OCG, {"horizon": 8}, "planned for 8 more round.s. but 16 are to be played"),
    "no key": ({}, OCG, {"key": None}, "play needs a key"),
    "outside": ({}, OCG, {"start": jnp.full(4, 0.251)}, "start does not lie in the domain"),
    "start of a wrong shape": ({}, OCG, {"start": jnp.ones(3)}, r"start must have the domain's shape \(4,\)"),
    "a long vector": (
        {"constraint": lambda x, r: x},
        OCG,
        {},
        r"constraint returned shape \(4,\), but the problem expects 1 value",
    ),
    "other names": (
        {"constraint": lambda x, r: {"a": x[0], "b": x[1]}, "constraints": ("a", "c")},
        OCG,
        {},
        r"constraint returned the names \['a', 'b'\], but the problem expects \['a', 'c'\]",
    ),
    "a vector as loss": ({"loss": lambda x, r: x}, OCG, {}, r"loss must return one number, got shape \(4,\)"),
    "a negative horizon": ({}, OCG, {"horizon": 0}, "horizon must be at least 1 round"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_sentence(name):
    changes, learner, options, sentence = REFUSED[name]
    with pytest.raises(cx.CocoaxError, match=sentence) as caught:
        cx.play(with_problem(**changes), learner, simplex().rounds, **{"key": KEY, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "rounds, sentence",
    [
        ({"a": jnp.ones((3, 2)), "b": jnp.ones(4)}, r"one leading axis of rounds, got shapes \(3, 2\), \(4,\)"),
        ({"a": jnp.ones(3), "b": 1.0}, r"one leading axis of rounds, got shapes \(\), \(3,\)"),
        ({}, "rounds must hold at least one array"),
        (jnp.ones((0, 2)), "rounds hold no round"),
        (Chasing(), "an Environment goes on for ever; give horizon="),
    ],
    ids=["unequal", "scalar", "nothing", "empty", "environment"],
)
def test_bad_rounds_get_one_sentence(rounds, sentence):
    with pytest.raises(cx.CocoaxError, match=sentence):
        cx.play(simplex().problem, OCG, rounds, key=KEY)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: learners.Blocks(primal.OCG(), beta=0.2), r"beta must lie in \[0, 0.16666"),
        (lambda: learners.PDMFW(beta=-0.1), r"beta must lie in \[0, 0.5\], got -0.1"),
        (lambda: learners.PDMFW(theta_scale=0.0), "theta_scale must be positive and finite, got 0.0"),
        (lambda: baselines.PDOGD(theta_scale=float("nan")), "theta_scale must be positive and finite, got nan"),
        (lambda: primal.MFW("gauss"), "perturbation must be one of cube, centred, ball, got 'gauss'"),
        (lambda: cx.Horizon(5, 4), "at most its capacity"),
        (lambda: cx.Regularity(-1.0), "lipschitz must be one finite number >= 0, got -1.0"),
        (lambda: cx.Regularity(1.0, norm=1), "norm 2 or inf, got norm=1"),
        (lambda: with_problem(regularity=(L2, L2)), "states one norm twice"),
        (lambda: with_problem(constraints=()), "a number or a tuple of different names"),
        (lambda: with_problem(loss=1.0), "loss must be callable"),
        (lambda: cx.play(simplex().problem, primal.OCG(), simplex().rounds), "one of cocoax.learners second"),
    ],
)
def test_bad_parts_get_one_sentence(make, sentence):
    with pytest.raises(cx.CocoaxError, match=sentence):
        make()


def test_a_finished_game_does_not_go_on():
    problem, rounds = simplex()
    with pytest.raises(cx.LearnerError, match=r"planned for 0 more round\(s\)"):
        cx.play(problem, OCG, rounds, state=kept("float64").state)


@pytest.mark.parametrize("what, leaf", [("loss", "cost"), ("constraint", "budget")])
def test_the_error_says_what_is_not_finite(what, leaf):
    problem, rounds = simplex()
    bad = {**rounds, leaf: rounds[leaf].at[5].set(jnp.inf)}
    with pytest.raises(cx.ProblemError, match=f"round 5: the {what} is not finite"):
        cx.play(problem, OCG, bad, key=KEY)


def test_a_bad_gradient_of_a_good_loss_is_found():
    problem = with_problem(loss=lambda x, r: jnp.sqrt(jnp.sum((x - r["corner"]) ** 2)), constraint=None)
    corners = jnp.tile(jnp.array([1.0, 0, 0, 0]), (ROUNDS, 1))
    with pytest.raises(cx.ProblemError, match="round 0: the gradient is not finite"):
        cx.play(problem, OCG, {"corner": corners}, key=KEY, start=corners[0])


# --- starts and points played


def test_an_integer_start_is_a_point():
    problem, rounds = simplex()
    game = cx.play(problem, OCG, rounds, key=KEY, start=np.array([0, 1, 0, 0]), keep_decisions=True)
    assert game.decisions.dtype == jnp.float64
    np.testing.assert_array_equal(game.decisions[0], [0, 1, 0, 0])


def test_a_start_needs_no_membership_test():
    domain = cx.domains.from_lmo(
        lambda direction: jax.nn.one_hot(jnp.argmin(direction), 4), start=jnp.full(4, 0.25), diameter=2**0.5
    )
    problem, rounds = simplex()
    given = cx.play(with_problem(domain=domain), OCG, rounds, key=KEY, start=jnp.full(4, 0.25))
    np.testing.assert_allclose(given.loss, cx.play(problem, OCG, rounds, key=KEY).loss, atol=1e-12)


def test_a_point_played_takes_the_dtype_of_the_game():
    problem, rounds = simplex()
    state = OCG.init(problem, key=KEY, horizon=ROUNDS, start=jnp.full(4, 0.25, jnp.float32))
    round = jax.tree.map(lambda leaf: leaf[0], rounds)
    for played in (np.full(4, 0.25), np.array([1, 0, 0, 0])):
        after, outcome = OCG.observe(problem, state, round, played=played)
        assert outcome.loss.dtype == jnp.float32  # pyright: ignore[reportAttributeAccessIssue]
        kinds = [jax.tree.map(lambda leaf: leaf.dtype, each) for each in (state, after)]
        assert jax.tree.leaves(kinds[0]) == jax.tree.leaves(kinds[1])
    with pytest.raises(cx.ProblemError, match=r"played must have the domain's shape \(4,\), got \(3,\)"):
        OCG.observe(problem, state, round, played=np.ones(3))


def test_written_gradients_equal_autodiff():
    problem, rounds = simplex()
    written = with_problem(loss_grad=lambda x, r: x - r["target"] + r["cost"], constraint_grad=lambda x, r: r["use"])
    game, again = (cx.play(p, learners.DPP(), rounds, key=KEY, keep_decisions=True) for p in (problem, written))
    np.testing.assert_allclose(again.decisions, game.decisions, atol=1e-12)
    np.testing.assert_allclose(again.multiplier, game.multiplier, atol=1e-12)


# --- environments


OTHER = pytest.param(learners.PDMFW(), marks=pytest.mark.slow)  # an environment is none of the learner's


@pytest.mark.parametrize("learner", [OCG, OTHER, learners.Stay()], ids=["Blocks", "PDMFW", "Stay"])
def test_replayed_rounds_are_the_rounds(learner):
    problem, rounds = simplex()
    game = cx.play(problem, learner, rounds, key=KEY, keep_decisions=True)
    again = cx.play(problem, learner, Replay(rounds), key=KEY, horizon=ROUNDS, keep_decisions=True, keep_rounds=True)
    np.testing.assert_allclose(again.decisions, game.decisions, atol=1e-12)
    np.testing.assert_array_equal(again.rounds["target"], rounds["target"])


@pytest.mark.parametrize("learner", [OCG, OTHER], ids=["Blocks", "PDMFW"])
def test_going_on_in_an_environment_equals_not_having_stopped(learner):
    problem, environment = simplex().problem, Chasing()
    plan = {"key": KEY, "horizon": ROUNDS, "keep_decisions": True}
    whole = cx.play(problem, learner, environment, **plan)
    first = cx.play(problem, learner, environment, **plan, length=ROUNDS // 2)
    second = cx.play(problem, learner, environment, state=first.state, keep_decisions=True)
    state = first.state.learner
    np.testing.assert_array_equal(np.concatenate([first.decisions, second.decisions]), whole.decisions)
    np.testing.assert_array_equal(np.concatenate([first.loss, second.loss]), whole.loss)
    with pytest.raises(cx.LearnerError, match="give state= the state of a game in that Environment"):
        cx.play(problem, learner, environment, horizon=ROUNDS, state=state)


def test_a_horizon_with_room_to_spare_plays_its_rounds():
    problem = simplex().problem
    assert cx.play(problem, OCG, Chasing(), key=KEY, horizon=cx.Horizon(5, 8)).loss.shape == (5,)


@pytest.mark.parametrize("learner", [OCG, learners.PDMFW()], ids=["Blocks", "PDMFW"])
def test_traced_horizons_equal_static_ones(learner):
    problem, rounds = simplex()

    @jax.jit
    def losses(horizon):
        return cx.play(problem, learner, rounds, key=KEY, horizon=cx.Horizon(horizon, 20)).loss

    for horizon in (16, 19):
        game = cx.play(problem, learner, rounds, key=KEY, horizon=cx.Horizon(horizon, 20))
        np.testing.assert_allclose(losses(horizon), game.loss, atol=1e-12)
    assert not np.allclose(losses(16), losses(19), atol=1e-12)


# --- what a game says


def loss_of(x):
    problem, rounds = simplex()
    return jax.vmap(problem.loss, in_axes=(0 if x.ndim == 2 else None, 0))(x, rounds)


@pytest.mark.parametrize("x", [np.array([0.7, 0.1, 0.1, 0.1]), np.eye(4)[np.arange(ROUNDS) % 4]])
def test_regret_against_a_point_or_a_path(x):
    game = kept("float64")
    np.testing.assert_allclose(game.regret(x), np.cumsum(game.loss - loss_of(x)), atol=1e-12)


def test_regret_against_the_best_point():
    game, comparator = kept("float64"), best()
    expected = np.cumsum(game.loss - loss_of(jnp.asarray(comparator.x)))
    np.testing.assert_allclose(game.regret(comparator), expected, atol=1e-8)
    lower, upper = game.regret_bounds(comparator)
    np.testing.assert_allclose(lower, expected, atol=1e-8)
    np.testing.assert_allclose(upper - lower, float(comparator.value - comparator.lower_bound), atol=1e-12)


def test_the_score_charges_violations_at_the_comparators_price():
    game, comparator = kept("float64"), best()
    charge = np.maximum(np.cumsum(game.constraint, axis=0), 0) @ comparator.price
    np.testing.assert_allclose(game.score(comparator), game.regret(comparator) + charge, atol=1e-12)
    assert comparator.multiplier.shape == (1,) and np.all(comparator.price >= 2 * comparator.multiplier)


def test_violations_are_running_sums():
    game = kept("float64")
    constraint = np.asarray(game.constraint)
    np.testing.assert_allclose(game.violation(), np.cumsum(constraint, 0), atol=1e-12)
    np.testing.assert_allclose(game.hard_violation(), np.cumsum(np.maximum(constraint, 0), 0), atol=1e-12)
    np.testing.assert_allclose(game.average, np.mean(game.decisions, 0), atol=1e-12)


def test_running_sums_do_not_drift_in_float32():
    game = kept("float32")
    assert game.loss.dtype == jnp.float32
    assert game.violation().dtype == game.regret(best()).dtype == np.float64
    exact = np.cumsum(np.asarray(game.constraint, np.float64), 0)
    np.testing.assert_array_equal(game.violation(), exact)
    np.testing.assert_allclose(jax.jit(lambda game: game.violation())(game), exact, rtol=1e-6, atol=1e-6)


def test_a_point_as_comparator_needs_the_rounds():
    problem, rounds = simplex()
    with pytest.raises(cx.ProblemError, match="play with keep_rounds=True"):
        cx.play(problem, learners.Stay(), rounds, key=KEY).regret(np.full(4, 0.25))


def test_staying_has_no_regret_against_itself():
    problem, rounds = simplex()
    game = cx.play(problem, learners.Stay(), rounds, key=KEY)
    np.testing.assert_allclose(game.regret(Comparator.fixed(problem, rounds, np.full(4, 0.25))), 0, atol=1e-12)


def test_tables_have_equal_columns():
    game = kept("float64")
    table = game.table(best())
    assert {len(column) for column in table.values()} == {ROUNDS}
    assert all(type(column) is np.ndarray and column.ndim == 1 for column in table.values())
    assert set(table) >= {"round", "loss", "regret", "score", "constraint", "constraint_violation", "lmo_calls"}
    assert "regret" not in game.table()
    np.testing.assert_array_equal(table["regret"], game.regret(best()))


def test_batches_of_games_are_games():
    problem, rounds = simplex()
    keys = jax.random.split(KEY, 3)
    games = jax.vmap(lambda key: cx.play(problem, learners.PDMFW(), rounds, key=key))(keys)
    one = jax.tree.map(lambda leaf: leaf[1], games)
    for each in ("regret", "score"):
        batch = getattr(games, each)(best())
        assert batch.shape == (3, ROUNDS)
        np.testing.assert_allclose(batch[1], getattr(one, each)(best()), atol=1e-12)
    assert games.violation().shape == (3, ROUNDS, 1)
    assert [bound.shape for bound in games.regret_bounds(best())] == [(3, ROUNDS)] * 2
    table = games.table(best())
    assert {len(column) for column in table.values()} == {3 * ROUNDS}
    np.testing.assert_array_equal(table["game"], np.repeat(np.arange(3), ROUNDS))
    np.testing.assert_array_equal(table["loss"], np.asarray(games.loss).reshape(-1))


def test_named_constraints_name_the_columns():
    problem, rounds = simplex()
    named = with_problem(constraint=lambda x, r: {"spend": problems.constraint(x, r)[0]}, constraints=("spend",))
    table = cx.play(named, learners.Stay(), rounds, key=KEY).table()
    plain = cx.play(problem, learners.Stay(), rounds, key=KEY).table()
    np.testing.assert_array_equal(table["spend_violation"], plain["constraint_violation"])


def test_games_can_be_stepped_through_without_jit():
    """For debugging: `print` and breakpoints in losses see numbers."""
    problem, rounds = simplex()
    few, seen = jax.tree.map(lambda leaf: np.asarray(leaf[:3]), rounds), []  # JAX has not made arrays of them yet

    def loss(x, r):
        seen.append(x)
        return problem.loss(x, r)

    watched = cx.Problem(problem.domain, loss, problem.constraint, constraints=problem.constraints)
    with jax.disable_jit():
        game = cx.play(watched, learners.Stay(), few, key=KEY)
    numbers = [np.asarray(x) for x in seen if not tree.is_traced(x)]
    assert any(np.array_equal(x, problem.domain.start()) for x in numbers)
    np.testing.assert_allclose(game.loss, cx.play(problem, learners.Stay(), few, key=KEY).loss, rtol=1e-12)
