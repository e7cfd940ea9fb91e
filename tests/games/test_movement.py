"""Games where movement counts: whoever plays, the record has the true movement from round to round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax import baselines, dual, learners, primal
from cocoax.domains import ProbabilitySimplex, Product
from cocoax.games.movement import as_played
from cocoax.lab import Study
from cocoax.learners import AbstractLearner, Outcome
from cocoax.testing import check_learner

KEY = jax.random.key(0)
ASSETS, ROUNDS, LIMIT = 3, 12, 0.25
COSTS = jnp.asarray(np.random.default_rng(0).uniform(0, 1, (ROUNDS, ASSETS)))
CONSTANTS = (cx.Regularity(4.0, 1.0, 2.0), cx.Regularity(4.0, 1.0, 2.0, norm=jnp.inf))


def turnover(x, r, previous):
    return 0.5 * jnp.abs(x - previous).sum() - LIMIT


def fee(x, r, previous):
    return jnp.vdot(r, x) + 0.1 * jnp.linalg.norm(x - previous)


def problem(**options):
    return cx.Problem(ProbabilitySimplex(ASSETS), fee, turnover, **{"regularity": CONSTANTS, **options})


def by_hand(path, start, costs=COSTS):
    """Losses and constraints of a path, in NumPy."""
    path = np.asarray(path)
    steps = np.diff(np.concatenate([np.asarray(start)[None], path]), axis=0)
    losses = (np.asarray(costs) * path).sum(1) + 0.1 * np.sqrt((steps**2).sum(1))
    return losses, 0.5 * np.abs(steps).sum(1) - LIMIT


class Jumper(AbstractLearner):
    """Plays the cheapest asset of the round before; of the request, if it sees one. Knows nothing of movement."""

    def init(self, problem, *, key, horizon=None, start=None):
        return problem.domain.start() if start is None else start

    def decision(self, state):
        return state

    def decide(self, problem, state, request):
        return jnp.eye(ASSETS, dtype=state.dtype)[jnp.argmin(request)]

    def observe(self, problem, state, round, *, played=None):
        loss, values = problem.values(state if played is None else played, round)
        none, finite = jnp.zeros((), int), jnp.isfinite(loss) & jnp.isfinite(values).all()
        outcome = Outcome(loss, values, jnp.zeros_like(values), none, none, finite)
        return jnp.eye(ASSETS, dtype=state.dtype)[jnp.argmin(round)], outcome


class Careful(Jumper):
    """Moves half as far if the turnover of the whole way would be above the limit."""

    def observe(self, problem, state, round, *, played=None):
        target, outcome = super().observe(problem, state, round, played=played)
        assert problem.previous is not None
        too_far = problem.values(target, round, state)[1][0] > 0
        return jnp.where(too_far, (state + target) / 2, target), outcome


LEARNERS = {
    "Jumper": Jumper(),
    "Auto": learners.Auto(),
    "DPP": learners.DPP(),
    "Blocks": learners.Blocks(primal.OCG()),
    "PDMFW": learners.PDMFW(),
    "Yi": baselines.Yi(),
    "DPPMirror": baselines.DPPMirror(),
    "YuNeely": baselines.YuNeely(),
    "PrimalDual": learners.PrimalDual(primal.Tracked(), dual.RegularizedAscent(theta=1.0, mu=0.1)),
    "Capped": learners.Capped(learners.Auto(), safe=jnp.eye(ASSETS)[0], limit=2.0, bound=1.0),
    "Anytime": learners.Anytime(learners.PDOFW(), first=4),
}


def test_five_rounds_by_hand():
    costs = jnp.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    game = cx.play(problem(), Jumper(), costs, key=KEY, start=jnp.array([0.5, 0.5, 0.0]), keep_decisions=True)
    first, second = jnp.eye(ASSETS)[:2]
    np.testing.assert_array_equal(game.decisions[1:], jnp.stack([first, second, second, first]))
    np.testing.assert_allclose(game.constraint[:, 0] + LIMIT, [0, 0.5, 1, 0, 1])
    length = np.sqrt(2)
    np.testing.assert_allclose(game.loss - 0.1 * np.array([0, length / 2, length, 0, length]), [0.5, 1, 0, 1, 1])


# one of each way to observe: DPP, DPPMirror, PDMFW and PrimalDual have YuNeely's
OBSERVERS = ["Jumper", "Auto", "Blocks", "Yi", "YuNeely", "Capped", "Anytime"]


@pytest.mark.parametrize("name", slow_but(OBSERVERS, LEARNERS))
def test_every_learner_is_charged_for_its_true_movement(name):
    game = cx.play(problem(), LEARNERS[name], COSTS, key=KEY, keep_decisions=True)
    losses, constraints = by_hand(game.decisions, problem().domain.start())
    np.testing.assert_allclose(game.loss, losses, rtol=1e-12)
    np.testing.assert_allclose(game.constraint[:, 0], constraints, rtol=1e-12, atol=1e-12)
    assert np.ptp(game.decisions, axis=0).max() > 0.005


def test_vmap_and_jit_play_the_same_games():
    keys, costs = jax.random.split(KEY, 3), jnp.stack([COSTS, COSTS[::-1], COSTS**2])

    @jax.jit
    @jax.vmap
    def games(key, costs):
        return cx.play(problem(), Jumper(), costs, key=key, keep_decisions=True)

    batch = games(keys, costs)
    for i in range(3):
        alone = cx.play(problem(), Jumper(), costs[i], key=keys[i], keep_decisions=True)
        np.testing.assert_array_equal(batch.decisions[i], alone.decisions)
        np.testing.assert_allclose(batch.loss[i], alone.loss, rtol=1e-12)
        np.testing.assert_allclose(batch.constraint[i], alone.constraint, rtol=1e-12, atol=1e-12)


def test_a_game_goes_on_from_where_it_moved_to():
    whole = cx.play(problem(), Jumper(), COSTS, key=KEY)
    first = cx.play(problem(), Jumper(), COSTS[:5], key=KEY)
    second = cx.play(problem(), Jumper(), COSTS[5:], state=first.state)
    np.testing.assert_array_equal(jnp.concatenate([first.loss, second.loss]), whole.loss)
    still = cx.play(cx.Problem(ProbabilitySimplex(ASSETS), jnp.vdot), Jumper(), COSTS, key=KEY)
    with pytest.raises(cx.LearnerError, match=r"^state= does not belong to Jumper; give the state of a game"):
        cx.play(problem(), Jumper(), COSTS, state=still.state)


class Walk(cx.Environment):
    def init(self, key):
        return jnp.zeros(ASSETS)

    def emit(self, state, decision, key):
        costs = state + jax.random.uniform(key, (ASSETS,)) + (0 if decision is None else 0.1 * decision)
        return 0.5 * costs, costs


@pytest.mark.parametrize("request_", [False, True], ids=["before", "request"])
@pytest.mark.parametrize("rounds", [COSTS, Walk()], ids=["arrays", "environment"])
def test_environments_and_requests(rounds, request_):
    planned = {} if rounds is COSTS else {"horizon": ROUNDS}
    game = cx.play(
        problem(request=request_), Jumper(), rounds, key=KEY, keep_decisions=True, keep_rounds=True, **planned
    )
    losses, constraints = by_hand(game.decisions, problem().domain.start(), game.rounds)
    np.testing.assert_allclose(game.loss, losses, rtol=1e-12)
    np.testing.assert_allclose(game.constraint[:, 0], constraints, rtol=1e-12)
    np.testing.assert_array_equal(
        jnp.argmax(game.decisions, 1)[1:], jnp.argmin(game.rounds, 1)[slice(1, None) if request_ else slice(-1)]
    )


def test_a_learner_that_knows_movement_moves_less():
    jumper, careful = (cx.play(problem(), learner, COSTS, key=KEY) for learner in (Jumper(), Careful()))
    assert careful.violation()[-1, 0] < 0.7 * jumper.violation()[-1, 0]


def test_a_proximal_step_has_values_and_gradients_of_one_function():
    game = cx.play(problem(), baselines.Yi(), COSTS, key=KEY)
    assert game.gradient_calls.max() == 2  # exact after one linearisation


def test_decisions_may_be_trees():
    pair = Product({"a": ProbabilitySimplex(ASSETS), "b": ProbabilitySimplex(2)})
    on = cx.Problem(
        pair,
        lambda x, r, previous: fee(x["a"], r, previous["a"]) + x["b"][0],
        lambda x, r, previous: turnover(x["b"], r, previous["b"]),
    )
    game = cx.play(on, LEARNERS["PrimalDual"], COSTS, key=KEY, keep_decisions=True)
    losses, _ = by_hand(game.decisions["a"], pair.start()["a"])
    np.testing.assert_allclose(game.loss, losses + game.decisions["b"][:, 0], rtol=1e-12)
    _, constraints = by_hand(game.decisions["b"], pair.start()["b"], 0)
    np.testing.assert_allclose(game.constraint[:, 0], constraints, rtol=1e-12, atol=1e-12)
    best = cx.hindsight(on, COSTS)
    np.testing.assert_allclose(best.value, np.asarray(COSTS).sum(0).min(), rtol=1e-6)
    assert best.price[0] > 0


@pytest.mark.parametrize("name", slow_but(["Jumper", "Anytime"], ["Jumper", "Auto", "Capped", "Anytime"]))
def test_the_contract_holds_with_movement(name, free_promotion):
    check_learner(LEARNERS[name], key=KEY, problem=problem(), rounds=COSTS)


@pytest.mark.parametrize("request_", [False, True], ids=["before", "request"])
def test_the_contract_finds_a_learner_that_hides_its_movement(request_):
    class Hiding(Jumper):
        def observe(self, problem, state, round, *, played=None):
            here = state if played is None else played
            return super().observe(problem.after(here), state, round, played=played)

    with pytest.raises(AssertionError, match="loss and constraint must be the decision's"):
        check_learner(Hiding(), key=KEY, problem=problem(request=request_), rounds=COSTS)


def test_regret_and_table_against_fixed_decisions_and_paths():
    game = cx.play(problem(), Jumper(), COSTS, key=KEY, keep_decisions=True, keep_rounds=True)
    np.testing.assert_allclose(game.regret(game.decisions), 0, atol=1e-12)
    best = cx.hindsight(problem(), COSTS)
    np.testing.assert_allclose(best.value, np.asarray(COSTS).sum(0).min(), rtol=1e-9)
    np.testing.assert_allclose(best.constraint, -LIMIT, atol=1e-12)
    np.testing.assert_allclose(game.regret(best.x), game.regret(best), atol=1e-9)
    table = game.table(best)
    np.testing.assert_allclose(table["constraint"], by_hand(game.decisions, problem().domain.start())[1])
    np.testing.assert_allclose(table["regret"], game.regret(best))


@pytest.mark.parametrize("horizons", [[ROUNDS], [5, ROUNDS]], ids=str)
def test_a_study_plays_the_same_games(horizons):
    study = Study({"moves": (problem(), COSTS)}, {"jumper": Jumper()}, horizons, seeds=[0])
    table = study.run(quiet=True).table()
    assert len(table) == len(horizons)
    for horizon, loss, violation in table.select("horizon", "loss", "violation").iter_rows():
        game = cx.play(problem(), Jumper(), COSTS[:horizon], key=KEY)
        np.testing.assert_allclose(loss, game.loss.sum(), rtol=1e-12)
        np.testing.assert_allclose(violation, game.violation()[-1, 0], rtol=1e-12)


def test_a_bad_round_is_named():
    with pytest.raises(cx.ProblemError, match="round 4: the loss is not finite"):
        cx.play(problem(), learners.Stay(), COSTS.at[4].set(jnp.nan), key=KEY)


def test_without_movement_a_learner_plays_as_it_is():
    still, learner = cx.Problem(ProbabilitySimplex(ASSETS), jnp.vdot), LEARNERS["PrimalDual"]
    assert as_played(still, learner) is learner
    state = cx.play(still, learner, COSTS, key=KEY).state
    assert jax.tree.structure(state) == jax.tree.structure(learner.init(still, key=KEY, horizon=ROUNDS))


def test_minimize_refuses_movement():
    with pytest.raises(cx.ProblemError, match=r"^minimize returns one decision, which never moves; leave previous"):
        cx.minimize(problem(), Walk(), horizon=ROUNDS, key=KEY)
