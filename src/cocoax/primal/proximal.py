"""The proximal step with an exact penalty on constraints, which has no closed form."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..domains.base import Point
from ..problem.problem import Problem, Round

_MOST = 200  # linearisations


def penalised_step(
    problem: Problem, round: Round, gradient: Point, centre: Point, weights: Float[Array, " m"], curvature
) -> tuple[Point, Float[Array, " m"], Int[Array, ""]]:
    r"""A gradient step that penalises the round's true constraints, not linearisations at the old point.

    $\arg\min_{x\in X}\ \langle c, x\rangle + \sum_i w_i[g_i(x)]_+ + \alpha\|x-y\|^2$

    with c = `gradient`, y = `centre`, w = `weights` and $\alpha$ = `curvature`. Returns (x, multipliers $\nu$, number
    of linearisations). Needs `domain.project`.

    Since $w[g]_+ = \max_{0\le\nu\le w}\nu g$, and for linear g the best x given $\nu$ is one projection, each $\nu_i$
    in turn is found by bisection of $[0, w_i]$, with one projection per bit of the dtype, on the linearisations of g at
    the last x. With several constraints, all $\nu$ then move once more in the direction of that sweep, again by
    bisection. The model also has the term $\frac\kappa2\|x-x_\text{last}\|^2$, where $\kappa$ is the largest curvature
    of $\langle\nu,g\rangle$ met so far (0 for linear g), so that it bounds the objective from above and the steps
    descend. Linearisations end when x rests and the duality gap of the model is rounding error.

    For one linear constraint, the result is exact up to rounding after one linearisation. For smooth nonlinear
    constraints, or several, the error falls geometrically, mostly to rounding in 3 to 40 linearisations. It falls
    slowly where many constraints contradict one another under weights far above $\alpha$; after 200 linearisations the
    rest is ignored. At its own kinks, a constraint has whichever gradient JAX gives there.
    """
    domain, kind = problem.domain, tree.dtype(centre)
    epsilon, bits = float(jnp.finfo(kind).eps), int(jnp.finfo(kind).nmant) + 4
    alpha, weights = jnp.asarray(curvature, kind), weights.astype(kind)
    if problem.constraints == 0:
        moved = tree.sub(centre, tree.scale(1 / (2 * alpha), gradient))
        return domain.project(moved), weights, jnp.zeros((), jnp.int32)
    rest = 8 * epsilon * jnp.maximum(jnp.asarray(domain.diameter(2), kind), tree.norm(centre))

    def linearise(carry):
        """One linearisation of the constraints at x: new x, multipliers and kappa, and whether to go on."""
        x, multipliers, kappa, _, count = carry
        values, slopes = problem.values(x, round)[1], problem.gradients(x, round)[1]

        def best(multipliers):
            """The minimiser x of the model for given multipliers."""

            def target(c, slope, y, here):
                pull = c + jnp.tensordot(multipliers, slope, axes=1)
                return (2 * alpha * y + kappa * here - pull) / (2 * alpha + kappa)

            return domain.project(jax.tree.map(target, gradient, slopes, centre, x))

        def linear(point):
            shift = tree.sub(point, x)
            return values + jax.vmap(lambda slope: tree.dot(slope, shift))(slopes)

        def ascend(multipliers, direction):
            """The multipliers, moved along the direction as far as the dual rises and they stay within [0, w]."""
            room = jnp.where(direction > 0, weights - multipliers, multipliers) / jnp.abs(direction)
            room = jnp.min(jnp.where(direction == 0, jnp.inf, room))
            room = jnp.where(jnp.isfinite(room), room, 0)

            def halve(_, bracket):
                low, high = bracket
                middle = (low + high) / 2
                rises = linear(best(multipliers + middle * direction)) @ direction > 0
                return jnp.where(rises, middle, low), jnp.where(rises, high, middle)

            low, high = jax.lax.fori_loop(0, bits, halve, (jnp.zeros((), kind), room))
            return jnp.clip(multipliers + (low + high) / 2 * direction, 0, weights)

        def bisect(i, multipliers):
            without = multipliers.at[i].set(0)
            return ascend(without, jnp.zeros_like(weights).at[i].set(1))

        swept = jax.lax.fori_loop(0, problem.constraints, bisect, multipliers)
        multipliers = ascend(swept, swept - multipliers) if problem.constraints > 1 else swept
        after = best(multipliers)
        moved = tree.norm(tree.sub(after, x))
        lengths = jax.vmap(tree.norm)(slopes)
        noise = 16 * epsilon * (jnp.abs(values) + lengths * (tree.norm(x) + tree.norm(after)))
        ahead = linear(after)
        bends = jnp.maximum(problem.values(after, round)[1] - ahead - noise, 0)
        kappa = jnp.maximum(kappa, 2 * multipliers @ bends / jnp.where(moved > 0, moved**2, 1))
        slack = weights @ jnp.maximum(ahead, 0) - multipliers @ ahead  # the duality gap of the model
        is_exact = (kappa == 0) & jnp.all(bends == 0)
        goes_on = (slack > 64 * weights @ noise) | ((moved > rest) & ~is_exact)
        return after, multipliers, kappa, goes_on, count + 1

    def is_open(carry):
        *_, goes_on, count = carry
        return goes_on & (count < _MOST)

    zero = jnp.zeros((), kind)
    first = (centre, jnp.zeros_like(weights), zero, jnp.asarray(True), jnp.zeros((), jnp.int32))
    x, multipliers, *_, count = jax.lax.while_loop(is_open, linearise, first)
    return x, multipliers, count
