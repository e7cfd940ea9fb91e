"""The state of a game between two rounds, and checks of what a game can start or continue from."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_leaves_with_path

from ..core import check, tree
from ..core.compiling import quick_jit
from ..errors import DomainError, LearnerError, ProblemError
from ..learners.base import Horizon, check_form, first_decision, own


class Progress(eqx.Module):
    """Where a game against an `Environment` stands: `game.state` is one, and `play(state=...)` goes on from it."""

    learner: Any
    environment: Any
    key: Any
    round: Any


@functools.partial(quick_jit, once=True)
def begin(problem, learner, environment, key, horizon, start) -> Any:
    """The state before the first round."""
    check_form(problem, own(learner))
    learner_key, environment_key = jax.random.split(key)
    state = learner.init(problem, key=learner_key, horizon=horizon, start=start)
    if environment is None:
        return state
    init_key, emit_key = jax.random.split(environment_key)
    return Progress(state, environment.init(init_key), emit_key, jnp.zeros((), jnp.int32))


def checked_start(problem, start) -> Any:
    """The user's first decision as a point of the domain; None if none was given."""
    if start is None:
        return None
    if not tree.is_traced(start) and not all(
        check.is_numeric(np.asarray(leaf).dtype) for leaf in jax.tree.leaves(start)
    ):
        raise ProblemError(f"start must be a point of the domain, got {check.described(start)}")
    start = first_decision(problem, start)
    try:
        inside = problem.domain.contains(start, 1e-4)
    except DomainError:  # a domain need not be able to tell
        return start
    if not tree.is_traced(inside) and not bool(inside):
        raise ProblemError("start does not lie in the domain; give a point of it, or leave it out")
    return start


def checked_state(problem, learner, environment, state) -> Any:
    """The state to continue from; raises `LearnerError` unless it is a state of this learner on this problem."""
    if environment is not None and not isinstance(state, Progress):
        raise LearnerError("to go on in an Environment, give state= the state of a game in that Environment")
    if environment is None and isinstance(state, Progress):
        state = state.learner
    if not all(isinstance(leaf, jax.Array | np.ndarray) for leaf in jax.tree.leaves(state)):
        raise LearnerError(f"state= must be game.state of an earlier game, got {check.described(state)}")
    _check_state_form(problem, learner, environment, state)
    return state


@jax.jit
def _check_state_form(problem, learner, environment, state):
    """Compare structure and shapes of `state` with those of a new state; raises `LearnerError` if they differ.

    Jitted so that it runs once per form, while tracing; the compiled program is empty.
    """

    def fresh(horizon):
        key = jax.random.key(0)
        return jax.eval_shape(lambda: begin(problem, learner, environment, key, Horizon(horizon), None))

    short, long = fresh(16), fresh(9999)
    who = own(learner).known_as
    if _types(jax.tree.structure(state)) not in [_types(jax.tree.structure(one)) for one in (short, long)]:
        raise LearnerError(f"state= does not belong to {who}; give the state of a game that it played on this problem")
    leaves = tree_leaves_with_path(state), jax.tree.leaves(short), jax.tree.leaves(long)
    for (path, leaf), expected, other in zip(*leaves):
        depends_on_the_horizon = expected.shape != other.shape
        if not (_is_key(leaf) or depends_on_the_horizon or leaf.shape == expected.shape):
            raise LearnerError(
                f"state{keystr(path)} has shape {leaf.shape}, but {who} has {expected.shape} there on this problem; "
                "give the state of one game on it, and go on under vmap after vmap"
            )


def _types(structure):
    node = structure.node_data()
    return node and node[0], *map(_types, structure.children())


def _is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) or leaf.dtype == jnp.uint32
