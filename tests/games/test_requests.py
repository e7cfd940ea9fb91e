"""Decisions after a request: `Problem(request=...)` says what of a round is seen before its decision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import baselines, learners, primal
from cocoax.domains import ProbabilitySimplex
from cocoax.lab import Study
from cocoax.learners import AbstractLearner, Outcome
from cocoax.testing import check_learner

ROUNDS, ARMS, BUDGET = 12, 4, 0.6

KEY = jax.random.key(0)
COST, USE = np.random.default_rng(0).uniform(0.1, 1.0, (2, ROUNDS, ARMS))
DATA = {"cost": jnp.asarray(COST), "use": jnp.asarray(USE)}
ALL_AND_NAMED = [True, ("cost",), ["cost"], "cost", ("cost", "use")]


class Informed(AbstractLearner):
    """Plays the cheapest arm of the request. Before one is seen, it decides for the arm that it played last."""

    def init(self, problem, *, key, horizon=None, start=None):
        return problem.domain.start() if start is None else start

    def decision(self, state):
        return state

    def decide(self, problem, state, request):
        return jnp.eye(ARMS, dtype=state.dtype)[jnp.argmin(request["cost"])]

    def observe(self, problem, state, round, *, played=None):
        played = state if played is None else played
        loss, constraint = problem.values(played, round)
        none, finite = jnp.zeros((), int), jnp.isfinite(loss) & jnp.isfinite(constraint).all()
        return played, Outcome(loss, constraint, jnp.zeros_like(constraint), none, none, finite)


class Nosy(Informed):
    """Decides by the sum of everything that it is shown."""

    def decide(self, problem, state, request):
        return jax.nn.softmax(sum(request.values()))


class Recorded(cx.Environment):
    """Recorded rounds; refuses to be told a decision."""

    rounds: dict

    def init(self, key):
        return jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        assert decision is None
        return state + 1, jax.tree.map(lambda leaf: leaf[state], self.rounds)


def problem(request):
    return cx.Problem(
        ProbabilitySimplex(ARMS),
        loss=lambda x, r: jnp.vdot(r["cost"], x),
        constraint=lambda x, r: jnp.vdot(r["use"], x) - BUDGET,
        regularity=cx.Regularity(lipschitz=2.0, smoothness=1.0, constraint_bound=1.0),
        request=request,
    )


def play(request, learner=None, rounds=DATA, **options):
    learner = Informed() if learner is None else learner
    return cx.play(problem(request), learner, rounds, key=KEY, keep_decisions=True, **options)


@pytest.mark.parametrize("request_", ALL_AND_NAMED, ids=str)
def test_a_learner_that_sees_the_costs_has_the_least_loss_of_every_round(request_):
    game = play(request_)
    np.testing.assert_array_equal(game.loss, COST.min(axis=1))
    np.testing.assert_array_equal(game.decisions, np.eye(ARMS)[COST.argmin(axis=1)])
    np.testing.assert_array_equal(game.constraint[:, 0], USE[range(ROUNDS), COST.argmin(axis=1)] - BUDGET)


def test_without_a_request_the_same_learner_decides_before():
    game = play(False)
    np.testing.assert_array_equal(game.decisions, np.full((ROUNDS, ARMS), 1 / ARMS))
    assert game.decision is not None and play(True).decision is None


@pytest.mark.parametrize("seen, hidden", [("cost", "use"), ("use", "cost")])
def test_a_learner_sees_the_named_fields_and_nothing_else(seen, hidden):
    base = play((seen,), Nosy())
    other = play((seen,), Nosy(), {**DATA, hidden: DATA[hidden] + 1.0})
    np.testing.assert_array_equal(base.decisions, other.decisions)
    revealed = {"cost": "loss", "use": "constraint"}[hidden]
    assert not np.array_equal(getattr(base, revealed), getattr(other, revealed))
    changed = play((seen,), Nosy(), {**DATA, seen: DATA[seen] ** 2})
    assert not np.array_equal(base.decisions, changed.decisions)
    assert not np.array_equal(base.decisions, play(True, Nosy()).decisions)


@pytest.mark.parametrize(
    "learner",
    [
        learners.TrackedPI(),
        learners.Blocks(primal.OCG()),
        pytest.param(learners.PDMFW(perturbation="ball"), marks=pytest.mark.slow),  # observes as DPP does
        learners.DPP(),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_that_decide_before_play_the_same_bits(learner):
    before, after = play(False, learner), play(("cost",), learner)
    for name in ("decisions", "loss", "constraint", "multiplier", "lmo_calls"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_a_game_goes_on_where_it_stopped():
    first, rest = ({name: leaf[part] for name, leaf in DATA.items()} for part in (slice(5), slice(5, None)))
    later = play(True, rounds=rest, state=play(True, rounds=first).state)
    np.testing.assert_array_equal(later.loss, COST[5:].min(axis=1))


def test_an_environment_answers_before_there_is_a_decision():
    game = play(("cost",), rounds=Recorded(DATA), horizon=ROUNDS)
    np.testing.assert_array_equal(game.decisions, play(("cost",)).decisions)
    with pytest.raises(AssertionError):
        play(False, rounds=Recorded(DATA), horizon=ROUNDS)


@pytest.mark.parametrize("rounds", [DATA, Recorded(DATA)], ids=["arrays", "environment"])
def test_a_study_plays_the_same_games(rounds):
    study = Study({"arms": (problem(("cost",)), rounds)}, {"informed": Informed()}, [5, ROUNDS], seeds=[0])
    table = study.run(quiet=True).table()
    for horizon, loss in table.select("horizon", "loss").iter_rows():
        assert np.isclose(loss, COST[:horizon].min(axis=1).sum(), rtol=1e-12)
    assert len(table) == 2


def test_wrappers_pass_the_request_on():
    unlimited = learners.Capped(Informed(), safe=jnp.full(ARMS, 1 / ARMS), limit=1e6)
    np.testing.assert_allclose(play(True, unlimited).loss, COST.min(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(play(True, learners.Anytime(Informed(), first=2)).loss, COST.min(axis=1))


def test_a_limit_holds_for_decisions_after_a_request():
    rounds = {**DATA, "use": (BUDGET + DATA["use"]).at[:, 0].set(BUDGET)}
    free = play(True, rounds=rounds).violation()[:, 0]
    limit = float(free.max()) / 2
    capped = learners.Capped(Informed(), safe=jnp.eye(ARMS)[0], limit=limit)  # the first arm keeps the constraint
    assert play(True, capped, rounds).violation()[:, 0].max() <= limit < free.max()


@pytest.mark.parametrize("integral", [False, True])
def test_known_values_leave_no_room_unused(integral):
    """With the request known, the violation reaches its limit exactly, and no bound need be given."""
    base = problem(True)
    exact = cx.Problem(base.domain, base.loss, base.constraint, request=True, integral=integral)
    rounds = {**DATA, "use": (BUDGET + DATA["use"]).at[:, 0].set(BUDGET)}
    capped = learners.Capped(learners.DualMirrorDescent(1e-6), safe=jnp.eye(ARMS)[0], limit=1.0)
    game = cx.play(exact, capped, rounds, key=KEY, keep_decisions=True)
    free = cx.play(exact, learners.DualMirrorDescent(1e-6), rounds, key=KEY).violation()[:, 0]
    violation = np.asarray(game.violation()[:, 0])
    refused = np.asarray(game.decisions)[:, 0] == 1
    assert free[-1] > 2 and violation.max() <= 1 + 1e-12
    if integral:
        assert np.isin(np.asarray(game.decisions), [0.0, 1.0]).all()
        would = np.roll(violation, 1) + USE[range(ROUNDS), COST.argmin(axis=1)]
        assert (would[refused & (COST.argmin(axis=1) > 0)] > 1).all() and refused.any()
    else:
        assert violation.max() > 1 - 1e-12
    named = cx.Problem(base.domain, base.loss, base.constraint, request=("cost", "use"), integral=integral)
    with pytest.raises(cx.ProblemError, match=r"^Capped needs an upper bound on the constraint values"):
        cx.play(named, capped, rounds, key=KEY)


def test_a_round_that_is_not_finite_is_named():
    rounds = {**DATA, "cost": DATA["cost"].at[7].set(jnp.nan)}
    with pytest.raises(cx.ProblemError, match="round 7: the loss is not finite"):
        play(("use",), Nosy(), rounds)
    with pytest.raises(cx.ProblemError, match=r"round 7: the decision is not finite.*the request"):
        play(("cost",), Nosy(), rounds)
    with pytest.raises(cx.ProblemError, match="round 0: the loss is not finite"):
        play(("use",), Nosy(), Recorded(jax.tree.map(lambda leaf: leaf[7:], rounds)), horizon=5)


def test_hindsight_draws_the_same_rounds():
    drawn = cx.hindsight(problem(True), Recorded(DATA), horizon=ROUNDS, key=KEY)
    assert drawn.value == cx.hindsight(problem(False), DATA).value


def test_minimize_refuses_a_problem_with_requests():
    with pytest.raises(cx.ProblemError, match=r"^minimize returns one decision for all rounds; leave out"):
        cx.minimize(problem(True), Recorded(DATA), horizon=ROUNDS, key=KEY)


def test_learners_that_mix_vertices_refuse_integral_decisions():
    one_answer = cx.Problem(ProbabilitySimplex(ARMS), lambda x, r: jnp.vdot(r["cost"], x), integral=True, request=True)
    mixes = learners.TrackedPI()
    for start in (lambda: cx.play(one_answer, mixes, DATA, key=KEY), lambda: cx.Session(one_answer, mixes, key=KEY)):
        with pytest.raises(cx.LearnerError, match=r"mixes vertices, but Problem\(integral=True\) needs one vertex"):
            start()
    with pytest.raises(cx.ProblemError, match=r"^integral must be True or False"):
        cx.Problem(ProbabilitySimplex(ARMS), jnp.vdot, integral=1)


@pytest.mark.parametrize("request_", [True, ("cost",)], ids=["whole", "named"])
def test_auto_says_which_learner_answers_requests(request_):
    auto = learners.Auto()
    guarded = learners.Guarded(auto, baselines.PDOGD(), regret=0.5, violation=0.5)
    for learner in (auto, learners.Certified(auto), guarded):
        with pytest.raises(
            cx.LearnerError, match=r"^Auto decides before .*; to answer requests, use learners\.AutoPrice\(\)$"
        ):
            play(request_, learner)
    with pytest.raises(cx.LearnerError, match=r"^Auto decides before"):
        cx.Session(problem(request_), auto, key=KEY)
    assert play(False, auto).loss.shape == (ROUNDS,)


@pytest.mark.parametrize("request_", [None, 1, (), "", ("cost", 2), {"cost": True}], ids=str)
def test_a_wrong_request_is_refused(request_):
    with pytest.raises(cx.ProblemError, match=r"^request must be True, False, or names of fields of a round, got"):
        problem(request_)


def test_a_field_that_a_round_does_not_have_is_named():
    with pytest.raises(cx.ProblemError, match=r"^request names the field 'price', but a round's fields are 'cost'"):
        play(("cost", "price"))
    arrays = cx.Problem(ProbabilitySimplex(ARMS), jnp.vdot, request=("cost",))
    with pytest.raises(cx.ProblemError, match=r"^request names the field 'cost', but a round's fields are none, it is"):
        cx.play(arrays, Informed(), DATA["cost"], key=KEY)


@pytest.mark.parametrize("request_", [True, ("cost",)], ids=["whole", "named"])
def test_the_contract_holds_for_learners_that_see_a_request(request_, free_promotion):
    check_learner(Informed(), key=jax.random.key(0), problem=problem(request_), rounds=DATA)


def test_a_learner_that_forgets_what_it_played_breaks_the_contract():
    class Deaf(Informed):
        def observe(self, problem, state, round, *, played=None):
            return super().observe(problem, state, round)

    with pytest.raises(AssertionError, match="loss and constraint must be the decision's"):
        check_learner(Deaf(), key=jax.random.key(0), problem=problem(("cost",)), rounds=DATA)


def test_regret_against_a_point_and_a_path():
    game = play(("cost",), keep_rounds=True)
    fixed, cheapest = jnp.full(ARMS, 1 / ARMS), jnp.eye(ARMS)[jnp.argmin(DATA["cost"], axis=1)]
    np.testing.assert_allclose(game.regret(fixed)[-1], (COST.min(axis=1) - COST.mean(axis=1)).sum(), rtol=1e-12)
    np.testing.assert_allclose(game.regret(cheapest), 0, atol=1e-12)
