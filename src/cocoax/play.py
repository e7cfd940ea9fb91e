"""One game: a learner against its rounds, as one compiled scan."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from . import _tree as tree
from .environment import Environment
from .errors import DomainError, LearnerError, ProblemError
from .game import Game
from .learners.base import AbstractLearner, Horizon, first_decision
from .problem import Problem, number_of_rounds


class Progress(eqx.Module):
    """Where a game against an `Environment` stands: `game.state` is one, and `play(state=...)` goes on from it."""

    learner: Any
    environment: Any
    key: Any
    round: Any


def play(
    problem: Problem,
    learner: AbstractLearner,
    rounds,
    *,
    key=None,
    horizon=None,
    start=None,
    state=None,
    length: int | None = None,
    keep_decisions: bool = False,
    keep_rounds: bool = False,
) -> Game:
    """Play a learner on a problem.

    **Arguments:**

    - `rounds`: a PyTree whose leaves have a leading axis T, or an `Environment`.
    - `key`: all randomness comes from it. Not needed with `state`.
    - `horizon`: how many rounds the learner plans for; by default the number of rounds. An `Environment` needs it.
    - `start`: the first decision, by default `problem.domain.start()`. Its dtype is that of the game.
    - `state`: `game.state` of an earlier game, to go on from: equal to not having stopped.
    - `length`: with an `Environment`, how many rounds to play now; by default all that are planned.
    - `keep_decisions`, `keep_rounds`: keep each round's decision, or data, in the `Game`.

    Works under `jax.jit` and `jax.vmap`. A loss, constraint or gradient that is not finite raises an error that
    names the round; under `jit` or `vmap`, `game.bad_round` has it.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3),
    ...     loss=lambda x, r: jnp.vdot(r, x),
    ...     regularity=cx.Regularity(lipschitz=2.0),
    ... )
    >>> costs = jnp.tile(jnp.array([1.0, 0.0, 1.0]), (100, 1))
    >>> game = cx.play(problem, cx.learners.Blocks(cx.primal.OCG()), costs, key=jax.random.key(0))
    >>> game.loss.shape, int(game.lmo_calls.sum())
    ((100,), 100)
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"play needs a Problem first, got {type(problem).__name__}")
    if not isinstance(learner, AbstractLearner):
        raise LearnerError(f"play needs one of cocoax.learners second, got {type(learner).__name__}")
    is_environment = isinstance(rounds, Environment)
    if is_environment and state is not None and not isinstance(state, Progress):
        raise LearnerError("to go on in an Environment, give state= the state of a game in that Environment")
    if not is_environment:
        if length is not None:
            raise ProblemError("length= is for an Environment; give as many rounds as are to be played")
        length = number_of_rounds(rounds)
    elif length is None:
        length = _environment_length(learner, horizon, state)
    if state is not None and (start is not None or horizon is not None):
        raise LearnerError("state= goes on with its own start and horizon; leave out start= and horizon=")
    if state is None:
        if key is None:
            raise LearnerError("play needs a key, for example key=jax.random.key(0)")
        horizon = Horizon(length) if horizon is None else horizon
        horizon = horizon if isinstance(horizon, Horizon) else Horizon(horizon)
        _check_start(problem, start)
        state = _begin(problem, learner, rounds if is_environment else None, key, horizon, start)
    elif not is_environment and isinstance(state, Progress):
        state = state.learner
    learner_state = state.learner if isinstance(state, Progress) else state
    _check_state(learner, learner_state)
    _check_length(learner, learner_state, length)
    game = _scan(problem, learner, rounds, state, length, keep_decisions, keep_rounds)
    if not tree.is_traced(game.bad_round):
        _check_finite(game)
    return game


@jax.jit
def _begin(problem, learner, environment, key, horizon, start):
    learner_key, environment_key = jax.random.split(key)
    state = learner.init(problem, key=learner_key, horizon=horizon, start=start)
    if environment is None:
        return state
    init_key, emit_key = jax.random.split(environment_key)
    return Progress(state, environment.init(init_key), emit_key, jnp.zeros((), jnp.int32))


@functools.partial(jax.jit, static_argnums=(4, 5, 6))
def _scan(problem, learner, rounds, state, length, keep_decisions, keep_rounds):
    if isinstance(rounds, Environment):
        recorded, emit = None, rounds.emit
    else:
        recorded, emit = rounds, None
        state = Progress(state, None, None, None)

    def one_round(carry, data):
        state, total = carry
        decision = learner.decision(state.learner)
        if emit is None:
            environment, number = None, None
        else:
            environment, data = emit(state.environment, decision, jax.random.fold_in(state.key, state.round))
            number = state.round + 1
        learner_state, outcome = learner.observe(problem, state.learner, data)
        total = _compensated(total, decision)
        kept = (decision if keep_decisions else None, data if keep_rounds else None)
        return (Progress(learner_state, environment, state.key, number), total), (outcome, kept)

    zero = tree.zeros_like(learner.decision(state.learner))
    (state, (total, _)), (outcomes, (decisions, kept_rounds)) = jax.lax.scan(
        one_round, (state, (zero, zero)), recorded, length=length
    )
    bad = ~outcomes.finite
    return Game(
        loss=outcomes.loss,
        constraint=outcomes.constraint,
        multiplier=outcomes.multiplier,
        lmo_calls=outcomes.lmo_calls,
        gradient_calls=outcomes.gradient_calls,
        decision=learner.decision(state.learner),
        average=tree.scale(1 / length, total),
        decisions=decisions,
        rounds=kept_rounds,
        state=state.learner if emit is None else state,
        bad_round=jnp.where(bad.any(), jnp.argmax(bad), -1),
        problem=problem if keep_rounds else None,
        names=problem.names,
    )


def _compensated(total, x):
    """Kahan's sum: (sum, what rounding has lost of it)."""
    old, lost = total
    x = tree.sub(x, lost)
    new = tree.add(old, x)
    return new, tree.sub(tree.sub(new, old), x)


def _environment_length(learner, horizon, state):
    """All that is planned: the horizon at the start, what is left of it later."""
    planned = horizon if state is None else learner.rounds_left(state.learner)
    if isinstance(planned, Horizon):
        planned = planned.rounds
    if planned is None:
        raise LearnerError("an Environment goes on for ever; give horizon=, or length=, the number of rounds to play")
    if tree.is_traced(planned):
        raise LearnerError("a traced horizon in an Environment needs length=, the number of rounds to play")
    return int(planned)


def _check_start(problem, start):
    if start is None:
        return
    try:
        inside = problem.domain.contains(first_decision(problem, start), 1e-4)
    except DomainError:  # a domain need not be able to tell
        return
    if not tree.is_traced(inside) and not bool(inside):
        raise ProblemError("start does not lie in the domain; give a point of it, or leave it out")


def _check_state(learner, state):
    try:
        learner.decision(state)
        learner.rounds_left(state)
    except (AttributeError, TypeError):
        raise LearnerError(
            f"state= does not belong to {type(learner).__name__}; give the state of a game that it played"
        ) from None


def _check_length(learner, state, length):
    left = learner.rounds_left(state)
    if left is not None and not tree.is_traced(left) and jnp.ndim(left) == 0 and int(left) < length:
        raise LearnerError(
            f"the learner planned for {int(left)} more round(s) but {length} are to be played; start it with a "
            "larger horizon="
        )


def _check_finite(game):
    bad = int(game.bad_round)
    if bad < 0:
        return
    what = "gradient"
    if not bool(jnp.isfinite(game.loss[bad])):
        what = "loss"
    elif not bool(jnp.all(jnp.isfinite(game.constraint[bad]))):
        what = "constraint"
    raise ProblemError(f"round {bad}: the {what} is not finite; mend or drop that round")
