"""One round of a session, compiled.

States are kept flat: to take modules apart and put them together again costs more than a small round does.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..core import tree
from ..errors import LearnerError
from ..games.loop import decide, play_round
from ..learners.budgets import updated
from .outcomes import packed


@functools.lru_cache(maxsize=256)
def compiled_step(structure, of_state):
    """`step(constants, state, round, played)`, for a (problem, learner) and states of these structures.

    Returns the next state, its decision, and its outcome in one array: each transfer from a device costs time.
    """

    @jax.jit
    def step(constants, leaves, round, played):
        problem, learner = jax.tree.unflatten(structure, constants)
        state, _, outcome = play_round(problem, learner, jax.tree.unflatten(of_state, leaves), round, played=played)
        decision = learner.decision(state)
        following, mark = _as_before(state, of_state, leaves), _mark((state, decision))
        return following, decision, packed(outcome, outcome.finite & tree.all_finite(decision), mark)

    return step


@functools.lru_cache(maxsize=256)
def compiled_decision(structure, of_state):
    """`decision(constants, state, request)`, for a (problem, learner) and states of these structures."""

    @jax.jit
    def decision(constants, leaves, request):
        problem, learner = jax.tree.unflatten(structure, constants)
        return decide(problem, learner, jax.tree.unflatten(of_state, leaves), request)

    return decision


@functools.lru_cache(maxsize=256)
def compiled_reservation(structure, of_state):
    """`reserve(constants, state, request, decision)`, for a (problem, learner) and states of these structures."""

    @jax.jit
    def reserve(constants, leaves, request, decision):
        _, learner = jax.tree.unflatten(structure, constants)
        state = jax.tree.unflatten(of_state, leaves)
        reserved = updated(learner, state, lambda keeper, state: keeper.reserve(state, request, decision))
        return _as_before(reserved, of_state, leaves)

    return reserve


def _as_before(state, of_state, leaves):
    """The leaves of a state, whose form must be that of the one before."""
    new, structure = jax.tree.flatten(state)
    if structure != of_state or [jax.typeof(leaf) for leaf in new] != [jax.typeof(leaf) for leaf in leaves]:
        raise LearnerError("the learner's state changes its form in a round; keep shapes and dtypes as init has them")
    return new


def _mark(x) -> Array:
    """A checksum of all bits: each word is mixed with its place, and sums of integers have no order."""
    total, place = jnp.zeros((), jnp.uint32), 0
    for leaf in jax.tree.leaves(x):
        bits = words(leaf)
        mixed = bits ^ (jax.lax.iota(jnp.uint32, bits.size) + jnp.uint32(place)) * jnp.uint32(0x9E3779B1)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # as in MurmurHash3
            mixed = (mixed ^ (mixed >> shift)) * jnp.uint32(factor)
        total, place = total + jnp.sum(mixed ^ (mixed >> 16), dtype=jnp.uint32), place + bits.size
    return total


def words(leaf: Any) -> Array:
    """Its bits, as 32-bit words."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if leaf.dtype == bool:
        return leaf.reshape(-1).astype(jnp.uint32)
    word = {1: jnp.uint8, 2: jnp.uint16}.get(leaf.dtype.itemsize, jnp.uint32)
    return jax.lax.bitcast_convert_type(leaf.reshape(-1), word).reshape(-1).astype(jnp.uint32)
