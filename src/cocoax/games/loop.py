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
from ..core.packing import forms, packed_few, unpacked
from ..domains.base import Point
from ..errors import LearnerError
from ..learners.base import AbstractLearner, Outcome
from ..problem.problem import Problem, Round

_FEW = 8


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
    carried, whole = _packing(state)

    def one_round(t, carry):
        state, rows = carry
        state, row = step(whole(state), jnp.asarray(t, jnp.int32))  # not weakly typed, as the trace for its shape
        return carried(state), jax.tree.map(lambda rows, row: rows.at[t].set(row), rows, row)

    state, rows = jax.lax.fori_loop(np.int32(0), rounds, one_round, (carried(state), empty))
    return whole(state), rows


def _packing(state) -> tuple[Callable, Callable]:
    """What a loop carries of a state, and back: on GPUs, all numbers are one array.

    There, to copy one of them into the next round takes as long as to launch a kernel; CPUs are faster without.
    """
    leaves, structure = jax.tree.flatten(state)
    numbers = [leaf for leaf in leaves if _is_number(leaf)]
    if not numbers or jax.default_backend() == "cpu":
        return (lambda state: state), (lambda state: state)

    def carried(state):
        leaves = jax.tree.leaves(state)
        others = [leaf for leaf in leaves if not _is_number(leaf)]
        return packed_few([leaf for leaf in leaves if _is_number(leaf)]), others

    def whole(carry):
        of_numbers, others = iter(unpacked(carry[0], forms(numbers))), iter(carry[1])
        return jax.tree.unflatten(structure, [next(of_numbers if _is_number(leaf) else others) for leaf in leaves])

    return carried, whole


def _is_number(leaf) -> bool:
    """Or a few, of a dtype that one of floats can hold."""
    kind = jnp.result_type(leaf)
    return jnp.size(leaf) <= _FEW and (jnp.issubdtype(kind, jnp.floating) or kind == jnp.bool_)


def at(rounds, t) -> Round:
    """Round t of a PyTree of rounds."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[t], rounds)  # without jit, leaves may still be NumPy's
