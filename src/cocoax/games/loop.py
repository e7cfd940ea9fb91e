"""The loop over rounds. `play`, sessions and the lab all run the round that is written here.

A round: a learner decides, given its state and, if the problem says so, what is already seen of the round (its
request); the round is revealed; the learner observes it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import check
from ..domains.base import Point
from ..errors import LearnerError
from ..learners.base import AbstractLearner, Outcome
from ..problem.problem import Problem, Round


def decide(problem: Problem, learner: AbstractLearner, state, round: Round = None) -> Point:
    """The decision of this round. Of `round` the learner sees the request, and nothing else."""
    request = problem.request_of(round)
    return learner.decision(state) if request is None else learner.decide(problem, state, request)


def play_round(
    problem: Problem, learner: AbstractLearner, state, round: Round, *, played: Point | None = None
) -> tuple[Any, Point, Outcome]:
    """(the state after the round, the decision, the outcome). `played` is what was done in place of the decision."""
    decision = decide(problem, learner, state, round)
    if played is None and problem.has_requests:
        played = decision  # the state does not hold it
    state, outcome = observed(problem, learner, state, round, played)
    return state, decision, outcome


def observed(problem: Problem, learner: AbstractLearner, state, round: Round, played) -> tuple[Any, Outcome]:
    """What `observe` returns, checked."""
    answer = learner.observe(problem, state, round, played=played)
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Outcome)):
        raise LearnerError(f"observe must return (state, Outcome), got {check.described(answer)}")
    return answer


def play_rounds(step: Callable, state, rounds, *, capacity: int | None = None) -> tuple[Any, Any]:
    """Run `step(state, t) -> (state, row)` for t = 0, ..., rounds - 1: the last state, and all rows.

    Rows are stacked along a leading axis of length `capacity`, by default `rounds`. `rounds` may be traced if
    `capacity` is given; rows after the last round are zeros.
    """
    step = jax.jit(step)  # traced once, for the shape of a row and for the loop
    row = jax.eval_shape(step, state, jax.ShapeDtypeStruct((), jnp.int32))[1]
    length = rounds if capacity is None else capacity
    empty = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), row)

    def one_round(t, carry):
        state, rows = carry
        state, row = step(state, jnp.asarray(t, jnp.int32))  # not weakly typed, as the trace for its shape
        return state, jax.tree.map(lambda rows, row: rows.at[t].set(row), rows, row)

    return jax.lax.fori_loop(np.int32(0), rounds, one_round, (state, empty))


def at(rounds, t) -> Round:
    """Round t of a PyTree of rounds."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[t], rounds)  # without jit, leaves may still be NumPy's
