"""What every learner promises, as one function."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..errors import LearnerError, ProblemError
from ..games import loop
from ..games.game import Game
from ..games.movement import as_played
from ..games.play import play
from ..games.state import begin
from ..learners.base import AbstractLearner, Horizon
from ..problem.problem import Problem
from . import problems
from .played import Games, problem_with, round_of, with_names_and_gradients
from .require import kinds, require, require_close, require_inside, require_same, same

_BEFORE_DRIFT = 4  # rounds, in which chaotic dynamics have not magnified rounding errors yet


def check_learner(
    learner: AbstractLearner,
    *,
    key: PRNGKeyArray,
    problem: Any = None,
    rounds: Any = None,
    horizon: int = 20,
    random: bool | None = None,
) -> None:
    """Raise `AssertionError`, naming the broken promise, unless `learner` keeps all that `play` relies on.

    **Arguments:**

    - `key`: all randomness comes from it.
    - `problem`, `rounds`: what to play; by default small problems on a simplex, on matrices and on a product.
    - `horizon`: how many rounds the small problems have.
    - `random`: whether decisions must depend on the key. By default, what the learner's `primal` says, if it has one.

    >>> import jax
    >>> from cocoax.learners import Stay
    >>> from cocoax.testing import problems
    >>> problem, rounds = problems.simplex(key=jax.random.key(1), rounds=20)
    >>> check_learner(Stay(), key=jax.random.key(0), problem=problem, rounds=rounds)
    """
    if problem is None:
        small = (problems.simplex, 0), (problems.nuclear, 0), (problems.product, 1)
        given = [make(key=jax.random.fold_in(key, i), rounds=horizon) for make, i in small]
    else:
        given = [(problem, rounds)]
    games, *_ = [check_game(learner, *each, key=key, random=random) for each in given]
    _check_stopping(games)
    _check_vmapped_games(games)
    _check_float32_without_constraints(games)


def check_game(learner: AbstractLearner, problem: Problem, rounds, *, key, random=None) -> Games:
    """Check what one compiled game shows: feasible, repeatable, blind to the future, compiled once.

    Returns the games, for further checks.
    """
    check.instance(learner, AbstractLearner, AssertionError, "check_learner needs one of cocoax.learners")
    try:
        games = Games(learner, problem, rounds, key)
    except LearnerError as error:
        raise AssertionError(str(error)) from error
    _check_record(games)
    _check_keys(games, random)
    _check_time_order(games)
    _check_bad_rounds(games)
    _check_compiled_once(games)
    return games


def _check_record(games):
    """The record of the game: feasible decisions, right shapes and dtypes, and values that are the decisions'."""
    game, length, constraints = games.base, games.length, games.problem.constraints
    require_inside(games.problem.domain, game.decisions, "the decision of round")
    start = games.problem.domain.start()
    first = jax.tree.map(lambda leaf: leaf[0], game.decisions)
    require(kinds(first) == kinds(start), "a decision must have the shapes and dtype of the start")
    if not games.problem.has_requests:  # else the next one is not known yet
        require(kinds(game.decision) == kinds(start), "the next decision must have the shapes and dtype of the start")
    for name in ("loss", "constraint", "multiplier", "lmo_calls", "gradient_calls"):
        shape = (length, constraints) if name in ("constraint", "multiplier") else (length,)
        got = getattr(game, name).shape
        require(got == shape, f"over {length} rounds, {name} must have shape {shape}, got {got}")
        if name.endswith("calls"):
            count = np.asarray(getattr(game, name))
            require(np.issubdtype(count.dtype, np.integer) and count.min() >= 0, f"{name} must be integers >= 0")
    require(np.all(game.multiplier >= 0), "multipliers must be >= 0")
    before = jax.tree.map(lambda leaf, first: jnp.concatenate([first[None], leaf[:-1]]), game.decisions, start)
    values = jax.vmap(games.problem.values)(game.decisions, games.rounds, before)
    require_close((game.loss, game.constraint), values, games.tol, "loss and constraint must be the decision's")


def _check_keys(games, random):
    """The same key must give the same game; another key must change decisions exactly if `random`."""
    require_same(games.play(), games.base, "the same key must give the same game, bit by bit")
    if random is None:
        deterministic = getattr(getattr(games.learner, "primal", None), "deterministic", None)
        random = None if deterministic is None else not deterministic
    if random is not None:
        other = games.play(key=jax.random.fold_in(games.key, 1)).decisions
        says = "must depend" if random else "must not depend"
        require(same(other, games.base.decisions) != random, f"decisions {says} on the key")


def _check_time_order(games):
    """Another round t must not change any decision taken before round t was revealed."""
    for t in sorted({0, 1, games.length // 2, games.length - 1}):
        other = games.with_request_of(t, games.round(t - games.length // 2))
        changed = games.play(rounds=games.with_round(t, other)).decisions
        last = t if games.problem.request is True else t + 1  # a round that is seen whole may change its decision
        until, known = (jax.tree.map(lambda leaf, last=last: leaf[:last], x) for x in (changed, games.base.decisions))
        require_same(until, known, f"decisions up to round {t} must not depend on what round {t} reveals after them")


def _check_bad_rounds(games):
    """An error must name a first round that is not finite.

    `_check_vmapped_games` has a bad round in the middle of a game.
    """
    bad = games.with_bad_round(0)
    if not _has_bad_values(games, bad, 0):
        return
    try:
        games.play(rounds=bad)
    except ProblemError as error:
        require("round 0:" in str(error), f"round 0 is not finite, but the error says: {error}")
    else:
        require(False, "round 0 is not finite, but the learner reports no error")


def _has_bad_values(games, bad, t):
    """Whether the bad round t has values that are not finite; a round of integers cannot."""
    values = games.problem.values(games.problem.domain.start(), round_of(bad, t))
    return not tree.all_finite(values)


def _check_compiled_once(games):
    """A second game with other numbers of the same shapes must reuse the compiled program."""
    scaled = jax.tree.map(lambda leaf: leaf * 0.5 if eqx.is_inexact_array(leaf) else leaf, games.learner)
    try:
        scaled.check(games.problem)
    except LearnerError:  # numbers that belong to the problem
        scaled = games.learner
    problem, key = problem_with(games.problem), jax.random.fold_in(games.key, 2)
    horizon = Horizon(games.length + 1, games.length + 4)
    try:
        with jax.no_tracing():
            play(problem, scaled, games.rounds, key=key, horizon=horizon, keep_decisions=True)
    except RuntimeError as error:
        if "tracing" not in str(error):
            raise
        raise AssertionError(
            "a second game of the same shapes must compile nothing; numbers must be arrays, not static"
        ) from error


def _check_stopping(games):
    """Stopping half-way and going on from `game.state` must equal the uninterrupted game, bit by bit."""
    half = games.length // 2
    first = games.play(rounds=games.part(half))
    second = games.play(rounds=games.part(half, 2 * half), key=None, horizon=None, state=first.state)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first.decisions, second.decisions)
    expected = jax.tree.map(lambda leaf: leaf[: 2 * half], games.base.decisions)
    require_same(both, expected, "going on from game.state must equal not having stopped, bit by bit")
    if 2 * half == games.length:
        require_same(second.state, games.base.state, "stopping and going on must lead to the same state")


def _check_vmapped_games(games):
    """Play four games under `vmap`, with named constraints and explicit gradients, and compare them with single games.

    The four: two ordinary games, one with a bad round, and one in which another point was played once. They share one
    program, because compiling takes most of the time.
    """
    t, problem = games.length // 2, games.problem
    keys = [games.key, jax.random.fold_in(games.key, 3), games.key, games.key]
    bad = games.with_bad_round(t)
    rounds = [games.rounds, games.with_round(t, games.round(0)), bad, games.rounds]
    decision = round_of(games.base.decisions, t)
    other = problem.domain.vertex().mix(decision, 0.5)
    swapped = np.zeros((4, games.length), bool)
    swapped[3, t] = True
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rounds)
    said = with_names_and_gradients(problem)
    play_lanes = jax.jit(jax.vmap(_play_with_points, in_axes=(None, None, 0, None, 0, 0, None)))
    decisions, outcomes = play_lanes(said, games.learner, jnp.stack(keys), games.horizon, stacked, swapped, other)

    alone = [games.base, games.play(key=keys[1], rounds=rounds[1])]
    played = decisions, outcomes.loss, outcomes.constraint, outcomes.multiplier
    for i, game in enumerate(alone):
        found = jax.tree.map(lambda leaf, i=i: leaf[i], played)
        expected = (game.decisions, game.loss, game.constraint, game.multiplier)
        what = f"under vmap, with named constraints, given gradients and played=decision, game {i} is another"
        require_close(found, expected, 100 * games.tol, what)
        first = [jax.tree.map(lambda leaf: leaf[:_BEFORE_DRIFT], x) for x in (found, expected)]
        require_close(first[0], first[1], games.tol, what)  # before rounding has grown
    bad_rounds = Game.of(outcomes, said.names).bad_round.tolist()
    expected = [-1, -1, t if _has_bad_values(games, bad, t) else -1, -1]
    require(bad_rounds == expected, f"under vmap, bad_round must be {expected}, got {bad_rounds}")

    lane = jax.tree.map(lambda leaf: leaf[3], decisions)
    until, unswapped = (jax.tree.map(lambda leaf, i=i: leaf[i, : t + 1], decisions) for i in (3, 0))
    require_same(until, unswapped, f"what is played in round {t} must not change decisions up to it")
    points = [round_of(lane, t - 1), other, round_of(lane, t + 1)]
    for s, before, x in zip(range(t, games.length), points, points[1:]):
        found = outcomes.loss[3, s], outcomes.constraint[3, s]
        values = problem.values(x, games.round(s), before)
        require_close(found, values, games.tol, f"loss and constraint must be at played, also in round {s}")
    require_inside(problem.domain, lane, "where another point was played, the decision of round")


def _play_with_points(problem, learner, key, horizon, rounds, swapped, other):
    """(decisions, outcomes) of a game that plays the point `other` in the rounds where `swapped` is True.

    In all other rounds it plays the learner's decision. `swapped` has one boolean per round.
    """
    learner = as_played(problem, learner)

    def step(state, t):
        round = loop.at(rounds, t)
        played = tree.where(swapped[t], other, loop.decide(problem, learner, state, round))
        state, decision, outcome = loop.play_round(problem, learner, state, round, played=played)
        return state, (decision, outcome)

    return loop.play_rounds(step, begin(problem, learner, None, key, horizon, None), len(swapped))[1]


def _check_float32_without_constraints(games):
    """A float32 start must give float32 results; without constraints, `constraint` has shape (T, 0)."""
    start = tree.astype(games.problem.domain.start(), jnp.float32)
    free = problem_with(games.problem, constraint=None, constraints=1, constraint_grad=None)
    game = games.play(problem=free, start=start)
    require_inside(free.domain, game.decisions, "without constraints and in float32, the decision of round")
    require(game.constraint.shape == (games.length, 0), "without constraints, constraint must have shape (T, 0)")
    game = jax.eval_shape(lambda rounds: games.play(rounds=rounds, start=start), games.rounds)
    require(tree.dtype(game.decisions) == jnp.float32, "a float32 start must give float32 decisions")
    dtypes = {name: str(getattr(game, name).dtype) for name in ("loss", "constraint", "multiplier")}
    require(set(dtypes.values()) == {"float32"}, f"a float32 start must give float32 values, got {dtypes}")
