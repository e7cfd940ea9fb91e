"""One round of a session, compiled. States are kept flat: to take modules apart and together again costs more than a
small round does."""

import functools

import jax
import jax.numpy as jnp

from . import _tree as tree


def figures(constraints: int) -> int:
    """How many a round has: loss, g, multiplier, LMO and gradient calls; finite, and the next decision's checksum."""
    return 6 + 2 * constraints


@functools.lru_cache(maxsize=256)
def compiled_step(structure, of_state):
    """`step(constants, state, round, played)`, for a (problem, learner) and states of these structures.

    Returns the next state, its decision, and the figures, all in one array: whatever leaves a device costs a journey.
    """

    @jax.jit
    def step(constants, leaves, round, played):
        problem, learner = jax.tree.unflatten(structure, constants)
        state, outcome = learner.observe(problem, jax.tree.unflatten(of_state, leaves), round, played=played)
        decision = learner.decision(state)
        mark = _mark(decision)
        found = (
            outcome.loss,
            outcome.constraint,
            outcome.multiplier,
            outcome.lmo_calls,
            outcome.gradient_calls,
            outcome.finite & tree.all_finite(decision),
            mark >> 16,
            mark & 0xFFFF,
        )
        found = jnp.concatenate([jnp.ravel(each).astype(outcome.loss.dtype) for each in found])
        return of_state.flatten_up_to(state), decision, found

    return step


def _mark(x):
    """A checksum of bits, in 32 of them, which needs no order of summation: one changed entry changes it."""
    total = jnp.zeros((), jnp.uint32)
    for leaf in jax.tree.leaves(x):
        bits = jax.lax.bitcast_convert_type(leaf.reshape(-1), jnp.uint16).reshape(-1).astype(jnp.uint32)
        odd = 2 * jax.lax.iota(jnp.uint32, bits.size) + 1
        total = 31 * total + jnp.sum(bits * odd, dtype=jnp.uint32)
    return total
