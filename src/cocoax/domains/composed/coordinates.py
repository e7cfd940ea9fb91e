"""A domain in some of its coordinates, or embedded in more."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import as_shape
from ..base import AbstractDomain, AbstractVertex, undecided
from .transforms import as_domain, ask, leaves_like, lowest, reach


class _Selection:
    """Which entries of a large tree of arrays form a small one.

    It is a static field: it can be hashed and compared.
    """

    def __init__(self, large, small, picks):
        self.shapes, self.large = jax.tree.flatten(large, is_leaf=tree.is_shape)
        self.small = small  # the structure of the small tree
        self.picks = picks  # for each of its leaves: the large leaf, and the flat positions in it
        for source in {source for source, _ in picks}:
            taken = np.concatenate([places.ravel() for other, places in picks if other == source])
            if len(np.unique(taken)) < len(taken):
                raise DomainError("index must select every coordinate at most once")
        places = tuple((source, places.shape, places.tobytes()) for source, places in picks)
        self._key = (tuple(self.shapes), self.large, small, places)
        self._hash = hash(self._key)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return isinstance(other, _Selection) and self._key == other._key

    def take(self, large):
        """The small tree of selected entries."""
        leaves = self.large.flatten_up_to(large)
        return jax.tree.unflatten(self.small, [leaves[source].reshape(-1)[places] for source, places in self.picks])

    def put(self, small, into=None):
        """The large tree `into` (zeros by default), with the selected entries replaced by `small`."""
        if into is None:
            zeros = [jnp.zeros(shape, tree.dtype(small)) for shape in self.shapes]
            into = jax.tree.unflatten(self.large, zeros)
        leaves = self.large.flatten_up_to(into)
        for (source, places), part in zip(self.picks, self.small.flatten_up_to(small)):
            leaves[source] = leaves[source].reshape(-1).at[places].set(part).reshape(self.shapes[source])
        return jax.tree.unflatten(self.large, leaves)


class Restricted(AbstractVertex):
    """Some coordinates of v."""

    inner: AbstractVertex
    selection: _Selection = eqx.field(static=True)

    def dense(self):
        return self.selection.take(self.inner.dense())

    def dot(self, x):
        return self.inner.dot(self.selection.put(x))

    def mix(self, x, step):
        return self.selection.take(self.inner.mix(self.selection.put(x), step))

    def combine(self, weights):
        return _mapped_over_batch(self.selection.take, weights)(self.inner.combine(weights))


class Restrict(AbstractDomain):
    r"""$\{x_I : x \in X\}$, the **projection** of X onto the coordinates I: what they can be, if the others may be
    anything. It is not the section of X at fixed others, which has no such LMO.

    **Arguments:**

    - `domain`: X.
    - `index`: what is kept of a decision, as in `x[index]`; for a PyTree of decisions a tree of indices, one for
      each leaf, with `...` to keep a leaf and `None` to drop it.

    An LMO cannot tell whether a point lies in the projection, so `contains` is refused.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import ProbabilitySimplex
    >>> corner = Restrict(ProbabilitySimplex(4), slice(0, 2))  # {x >= 0, sum x <= 1}
    >>> corner.lmo(jnp.array([-1.0, -2.0])).dense().tolist(), corner.lmo(jnp.array([1.0, 2.0])).dense().tolist()
    ([0.0, 1.0], [0.0, 0.0])
    """

    facts = DomainFacts("its parts'")

    domain: AbstractDomain
    selection: _Selection = eqx.field(static=True)

    def __init__(self, domain: Any, index: Any):
        self.domain = as_domain(domain)
        shapes, structure, indices = leaves_like(self.domain, index, "index")
        restricted = jax.tree.unflatten(structure, [None if index is None else 0 for index in indices])
        picks = [(i, _flat_positions(shapes[i], index)) for i, index in enumerate(indices) if index is not None]
        if not sum(places.size for _, places in picks):
            raise DomainError("index must keep at least one coordinate, got none")
        self.selection = _Selection(domain.shape, jax.tree.structure(restricted), picks)

    @property
    def shape(self):
        shapes = [places.shape for _, places in self.selection.picks]
        return jax.tree.unflatten(self.selection.small, shapes)

    def lmo(self, direction, guess: Any = None):
        return Restricted(ask(self.domain, self.selection.put(direction), guess), self.selection)

    def lowest(self, direction, guess: Any = None):
        return lowest(self.domain, self.selection.put(direction), guess)

    def vertex(self):
        return Restricted(self.domain.vertex(), self.selection)

    def start(self):
        return self.selection.take(self.domain.start())

    def diameter(self, ord):
        """An upper bound: that of X, since leaving out coordinates brings points closer."""
        return self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        raise undecided(self)


class Embedded(AbstractVertex):
    """v in some coordinates, zero in the others."""

    inner: AbstractVertex
    selection: _Selection = eqx.field(static=True)

    def dense(self):
        return self.selection.put(self.inner.dense())

    def dot(self, x):
        return self.inner.dot(self.selection.take(x))

    def mix(self, x, step):
        return self.selection.put(self.inner.mix(self.selection.take(x), step), tree.scale(1 - step, x))

    def combine(self, weights):
        return _mapped_over_batch(self.selection.put, weights)(self.inner.combine(weights))


class Embed(AbstractDomain):
    r"""$\{x : x_I \in X,\ x_j = 0 \text{ for } j \notin I\}$: X in some coordinates of a larger array.

    `Translate` it to fix the others at something else.

    **Arguments:**

    - `domain`: X.
    - `shape`: the shape of a new decision.
    - `index`: where the old one stands, as in `x[index]`; for a PyTree of decisions a tree of indices, one for each
      leaf, so that a product becomes one flat array.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import ProbabilitySimplex
    >>> face = Embed(ProbabilitySimplex(2), 4, jnp.array([1, 3]))
    >>> face.lmo(jnp.array([-5.0, 2.0, -5.0, 1.0])).dense().tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    facts = DomainFacts("its parts'")

    domain: AbstractDomain
    selection: _Selection = eqx.field(static=True)

    def __init__(self, domain: Any, shape: Any, index: Any):
        self.domain = as_domain(domain)
        shapes, structure, indices = leaves_like(self.domain, index, "index")
        whole = as_shape(shape)
        picks = [(0, _flat_positions(whole, index)) for index in indices]
        for old, (_, places) in zip(shapes, picks):
            if old != places.shape:
                raise DomainError(f"index must select the domain's shape {old}, got {places.shape}")
        self.selection = _Selection(whole, structure, picks)

    @property
    def shape(self):
        return self.selection.shapes[0]

    def lmo(self, direction, guess: Any = None):
        return Embedded(ask(self.domain, self.selection.take(direction), guess), self.selection)

    def lowest(self, direction, guess: Any = None):
        return lowest(self.domain, self.selection.take(direction), guess)

    def vertex(self):
        return Embedded(self.domain.vertex(), self.selection)

    def tangent(self, direction):
        return self.selection.put(self.domain.tangent(self.selection.take(direction)))

    def start(self):
        return self.selection.put(self.domain.start())

    def inradius(self):
        return self.domain.inradius()

    def diameter(self, ord):
        return self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        selected = self.selection.take(x)
        others = self.selection.put(tree.zeros_like(selected), x)
        slack = tol * reach(self.domain).astype(tree.dtype(x))
        return self.domain.contains(selected, tol) & (tree.norm(others, jnp.inf) <= slack)

    def project(self, x):
        return self.selection.put(self.domain.project(self.selection.take(x)))


def _flat_positions(shape, index):
    """The positions of x[index] in the flattened x, for x of the given shape."""
    index = np.asarray(index) if isinstance(index, list | jax.Array) else index
    try:
        return np.asarray(np.arange(math.prod(shape)).reshape(shape)[index])
    except IndexError:
        raise DomainError(f"index must fit the shape {shape}, got {index}") from None


def _mapped_over_batch(function, weights):
    """`function`, vmapped over all leading axes of weights (..., k) but the last."""
    for _ in range(weights.ndim - 1):
        function = jax.vmap(function)
    return function
