"""Damped Newton steps by coordinate: running means with a prior, for models whose parameters lie in boxes."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.facts import Facts
from ..core.parameters import parameter
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..errors import LearnerError
from .base import AbstractPrimal, cost


class _State(eqx.Module):
    point: Point  # x_t
    squares: Point  # sums of squared gradients, by coordinate
    curvature: Point  # sums of the Hessian's diagonal
    rounds: Int[Array, ""]


class DiagonalNewton(AbstractPrimal):
    r"""Steps over the curvature seen at each coordinate, damped as by a prior; for boxes and products of boxes.

    $x_{t+1,i} = \Pi_{[l_i,u_i]}\left(x_{ti} - s_t\frac{\nabla_{ti}}{D_{ti}}\right),\qquad
    D_{ti} = \lambda_t + \sum_{s\le t}h_{si} + \frac1{w_i}\sqrt{\textstyle\sum_{s\le t}\nabla_{si}^2},\qquad
    \lambda_t = \frac{\sum\nabla^2}{\sum h}\frac1{(\tau w_i)^2}$

    where $w_i$ is the length of the interval and $h_t$ the diagonal of the Hessian. For squared errors of a parameter
    that is seen n times, this is the mean of n values and of $\lambda$ values at the start: the posterior mean where
    parameters differ from the start by $\tau w_i$. The sums of $\lambda_t$ are over all rounds and all coordinates of
    one leaf of the decision. $s_t\le1$ minimises the round's own second-order model along the step. Decisions do not
    depend on the unit of the loss or of a parameter.

    **Arguments:**

    - `scale`: $\tau$, how far parameters are expected from the start, relative to the lengths of their intervals. To
      try several, see `Mixture`.

    A round costs one gradient, one product with the Hessian for each leaf, and one for $s_t$. The product of a leaf
    has signs that change from round to round. It is exact where the leaf's own block of the Hessian is diagonal, as
    with one-hot features, and otherwise unbiased.

    *Proven,* for losses without curvature (then $\lambda=0$, $s=1$, and it is AdaGrad by coordinate): after every
    round, Regret $\le\frac32\sum_iw_i\sqrt{\sum_s\nabla_{si}^2}$ (`theory.regret.adagrad_by_coordinate`). *Measured*
    for others: docs/models.md.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.Box([0.0], [5.0]), lambda x, rating: jnp.sum((x - rating) ** 2))
    >>> learner = cx.learners.PrimalDual(cx.primal.DiagonalNewton(), cx.dual.RobustPI())
    >>> game = cx.play(problem, learner, jnp.array([4.0, 3.0, 4.0, 5.0]), key=jax.random.key(0))
    >>> [round(float(x), 1) for x in game.decision]
    [3.6]
    """

    deterministic: ClassVar[bool] = True
    facts = Facts(
        cost="2 gradients, and 1 for each leaf",
        guarantee="on boxes, no constants, proven for losses without curvature, else measured",
        cites=("duchi2011", "cocoax"),
    )

    scale: Float[Array, ""]

    def __init__(self, scale: Any = 0.25):
        self.scale = parameter(scale, "scale", 1e-9, 1)

    def init(self, domain, bounds, *, start, key, warm=None):
        _widths(domain, start)
        nothing = tree.zeros_like(start)
        return _State(start, nothing, nothing, jnp.zeros((), jnp.int32))

    def decision(self, state):
        return state.point

    def step(self, domain, state, revealed, next_bounds, *, key):
        widths = _widths(domain, state.point)
        gradient, product = linearized(revealed.gradient, revealed.played)
        squares = jax.tree.map(lambda total, h: total + h**2, state.squares, gradient)
        diagonal = _diagonal(product, state.point, state.rounds)
        curvature = tree.add(state.curvature, diagonal)

        def over(h, squares, curvature, width):
            """The gradient divided by D, for one leaf."""
            damping = ratio(squares.sum(), jnp.maximum(curvature.sum(), 0))
            prior = damping / (self.scale.astype(h.dtype) * width) ** 2
            return ratio(h, prior + jnp.maximum(curvature, 0) + jnp.sqrt(squares) / width)

        step = jax.tree.map(over, gradient, squares, curvature, widths)
        bends = tree.dot(step, product(step))
        share = jnp.where(bends > 0, jnp.minimum(ratio(tree.dot(gradient, step), bends), 1), 1)
        point = domain.project(tree.sub(revealed.played, tree.scale(share, step)))
        spent = cost(gradient_calls=2 + len(jax.tree.leaves(point)), finite=tree.all_finite(gradient))
        return _State(point, squares, curvature, state.rounds + 1), spent


def _widths(domain: AbstractDomain, start: Point) -> Point:
    """The length of each coordinate's interval; raises `LearnerError` unless the domain is a product of intervals."""
    widths = domain.intervals()
    if widths is None:
        raise LearnerError(
            f"DiagonalNewton plays on boxes and products of boxes, as Box is one, got {type(domain).__name__}"
        )
    return tree.astype(widths, tree.dtype(start))


def linearized(gradient, x: Point):
    """(gradient at x, product), where `product(d)` is the Hessian times d; 0 if there is no second derivative."""
    try:
        return jax.linearize(gradient, x)
    except (TypeError, ValueError, NotImplementedError):  # custom derivatives, callbacks
        return gradient(x), tree.zeros_like


def _diagonal(product, x: Point, rounds) -> Point:
    """An estimate z * Hz of the Hessian's diagonal, one leaf at a time.

    z has random signs on the leaf, and is 0 elsewhere; `product` multiplies with H.
    """
    leaves, structure = jax.tree.flatten(x)
    key = jax.random.fold_in(jax.random.key(0), rounds)
    found = []
    for place, leaf in enumerate(leaves):
        signs = jax.random.rademacher(jax.random.fold_in(key, place), leaf.shape, leaf.dtype)
        probe = [signs if other == place else jnp.zeros_like(leaf) for other, leaf in enumerate(leaves)]
        products = jax.tree.leaves(product(jax.tree.unflatten(structure, probe)))
        found.append(jnp.where(jnp.isfinite(products[place]), signs * products[place], 0))
    return jax.tree.unflatten(structure, found)
