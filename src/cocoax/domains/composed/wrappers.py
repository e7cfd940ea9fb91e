"""Domains that count the LMO calls of another one, or cache its answers."""

import threading
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import count, scalar
from ..base import AbstractDomain, AbstractVertex, Point
from .transforms import as_domain, normalise, width


class _Wrapper(AbstractDomain):
    """A domain that is the same set as another one; only `lmo` differs."""

    domain: eqx.AbstractVar[AbstractDomain]

    @property
    def shape(self):
        return self.domain.shape

    def lowest(self, direction, guess: Any = None):
        return self.domain.lowest(direction)

    def tangent(self, direction):
        return self.domain.tangent(direction)

    def start(self):
        return self.domain.start()

    def inradius(self):
        return self.domain.inradius()

    def diameter(self, ord):
        return self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        return self.domain.contains(x, tol)

    def project(self, x):
        return self.domain.project(x)


class _Counter:
    """A number on the host. Two counters are never equal, so that no two share a compiled program."""

    def __init__(self):
        self.value, self._lock = 0, threading.Lock()

    def __fingerprint__(self):
        """Counting changes no game."""
        return ()

    def add(self, calls):
        with self._lock:
            self.value += int(calls)


class Counted(_Wrapper):
    """X itself; `calls` is how often its LMO was computed since `reset()`, including calls in compiled programs.

    A computation makes one callback to the host, a batch also one. Under `vmap` every lane counts, even if its result
    is thrown away, as in a batched `lax.cond`. Reading `calls` waits for running programs. The counter is part of the
    compiled program, which is therefore not shared with another `Counted`.

    >>> import jax, jax.numpy as jnp
    >>> from cocoax.domains import L1Ball
    >>> ball = Counted(L1Ball(3, radius=1.0))
    >>> points = jax.jit(jax.vmap(lambda direction: ball.lmo(direction).dense()))(jnp.eye(3))
    >>> ball.calls
    3
    """

    facts = DomainFacts("its set's, or less")

    domain: AbstractDomain
    counter: _Counter = eqx.field(static=True)

    def __init__(self, domain: Any):
        self.domain = as_domain(domain)
        self.counter = _Counter()

    @property
    def calls(self) -> int:
        """LMO calls since `reset()`; waits for running programs."""
        jax.effects_barrier()
        return self.counter.value

    def reset(self) -> None:
        """Count from 0 again."""
        jax.effects_barrier()
        self.counter.value = 0

    def lmo(self, direction, guess=None):
        _count(self.counter, direction, jnp.ones((), jnp.int32))
        return self.domain.lmo(direction, guess)

    def lowest(self, direction, guess: Any = None):
        _count(self.counter, direction, jnp.ones((), jnp.int32))
        return self.domain.lowest(direction, guess)

    def vertex(self):
        return self.domain.vertex()


def _count(counter, direction, calls):
    """Add `calls` to the counter, by a callback from compiled programs.

    A batch under `vmap` makes one callback, with the number of its lanes.
    """

    @jax.custom_batching.custom_vmap
    def tell(direction, calls):
        jax.debug.callback(counter.add, calls)
        return calls

    @tell.def_vmap
    def tell_batch(lanes, _, direction, calls):
        return _count(counter, direction, lanes * calls), False

    return tell(jax.lax.stop_gradient(direction), calls)


class Remembered(AbstractVertex):
    """An answer, together with earlier ones and the unit directions that they answered."""

    answer: AbstractVertex
    vertices: AbstractVertex  # (size, ...)
    directions: Point  # (size, ...)
    oldest: Int[Array, ""]  # the next one to be replaced

    def dense(self):
        return self.answer.dense()

    def dot(self, x):
        return self.answer.dot(x)

    def mix(self, x, step):
        return self.answer.mix(x, step)

    def combine(self, weights):
        return self.answer.combine(weights)


class Cached(_Wrapper):
    r"""X itself, for an expensive LMO: a guess holds the last `size` answers, and one of them is returned again where
    it is proven to be good enough.

    If v was the answer to d, then for every new direction c and every $a \ge 0$

    $$\min_{x\in X}\langle c, x\rangle \ge \langle c, v\rangle - D\,|c - a d|_2,\qquad D = \mathrm{diam}_2 X,$$

    since $\langle ad, x - v\rangle \ge 0$ on X. The best remembered vertex is returned if it is within
    `tolerance` $\cdot D\,|c|_2$ of the best such bound, which is so if $\sin\angle(c, d) \le$ `tolerance` for some d.
    With `tolerance=0` answers are exact up to rounding, and only multiples of earlier directions are saved.

    The LMO gets no guess, because the proof needs exact answers. `vmap` always computes it, so this saves time only in
    loops over single directions.

    >>> import jax, jax.numpy as jnp
    >>> from cocoax.domains import NuclearNormBall
    >>> counted = Counted(NuclearNormBall((2, 2), radius=1.0))
    >>> ball = Cached(counted, size=3, tolerance=0.01)
    >>> directions = jnp.eye(2)[None] + jnp.linspace(0, 0.01, 100)[:, None, None]
    >>> last, _ = jax.lax.scan(lambda guess, d: (ball.lmo(d, guess), None), ball.vertex(), directions)
    >>> counted.calls
    1
    """

    facts = DomainFacts("its set's, or less")

    domain: AbstractDomain
    size: int = eqx.field(static=True)
    tolerance: Float[Array, ""]

    def __init__(self, domain: Any, size: Any = 1, *, tolerance: Any = 0.0):
        self.domain = as_domain(domain)
        self.size = count(size, "size")
        self.tolerance = scalar(tolerance, "tolerance")
        if not tree.is_traced(self.tolerance) and not bool(self.tolerance >= 0):
            raise DomainError(f"tolerance must not be negative, got {tolerance}")

    def lmo(self, direction, guess: Any = None):
        unit, _ = normalise(direction)
        if guess is None:
            return self._remember_only(self.domain.lmo(direction), unit)

        dtype = tree.dtype(direction)
        values = jax.vmap(lambda vertex: vertex.dot(unit))(guess.vertices)
        distances = jax.vmap(lambda stored: _distance_to_ray(unit, stored))(guess.directions)
        best = jnp.argmin(values)
        gap = values[best] - jnp.max(values - width(self.domain).astype(dtype) * distances)
        rounding = 16 * jnp.finfo(dtype).eps
        is_answer = gap <= (self.tolerance.astype(dtype) + rounding) * width(self.domain).astype(dtype)

        def recall():
            return eqx.tree_at(lambda g: g.answer, guess, jax.tree.map(lambda leaf: leaf[best], guess.vertices))

        def replace():
            answer = self.domain.lmo(direction)

            def put(stack, new):
                return jax.tree.map(lambda leaf, value: leaf.at[guess.oldest].set(value), stack, new)

            following = (guess.oldest + 1) % self.size
            return Remembered(answer, put(guess.vertices, answer), put(guess.directions, unit), following)

        return jax.lax.cond(is_answer, recall, replace)

    def vertex(self):
        return self._remember_only(self.domain.vertex(), tree.zeros_like(self.start()))

    def _remember_only(self, vertex, direction):
        """An answer whose memory holds nothing but itself."""
        vertices, directions = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (self.size, *leaf.shape)), (vertex, direction)
        )
        return Remembered(vertex, vertices, directions, jnp.zeros((), jnp.int32))


def _distance_to_ray(unit, ray):
    """min |unit - a ray| over a >= 0, for a unit vector or zero."""
    return tree.norm(tree.sub(unit, tree.scale(jnp.maximum(tree.dot(unit, ray), 0), ray)))
