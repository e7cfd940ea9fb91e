"""A problem that NumPy can differentiate: f = q |x - y|^2 / 2 + <c, x> and g_i = <a_i, x> + p |x|^2 / 2 - b_i."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Loss(eqx.Module):
    curvature: Float[Array, ""]

    def __call__(self, x, r):
        return 0.5 * self.curvature * jnp.sum((x - r["y"]) ** 2) + jnp.vdot(r["c"], x)


class Constraint(eqx.Module):
    curvature: Float[Array, ""]

    def __call__(self, x, r):
        return jax.vmap(lambda a: jnp.vdot(a, x))(r["a"]) + 0.5 * self.curvature * jnp.sum(x**2) - r["b"]


def functions(of_loss, of_constraints):
    """f and g with these curvatures."""
    return Loss(jnp.asarray(of_loss)), Constraint(jnp.asarray(of_constraints))


def some_rounds(shape, constraints, rounds=60, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=shape)
    return {
        "y": rng.normal(size=(rounds, *shape)),
        "c": mean + 0.5 * rng.normal(size=(rounds, *shape)),
        "a": 0.3 * rng.normal(size=(rounds, constraints, *shape)) - mean + rng.normal(size=(constraints, *shape)),
        "b": rng.uniform(0, 0.3, (rounds, constraints)),
    }


def cost(x, y, c, of_loss):
    """f at x in NumPy."""
    return 0.5 * of_loss * np.sum((x - y) ** 2) + np.sum(c * x)


def at(x, y, c, a, b, of_loss, of_constraints):
    """(g, the gradient of f, those of g) at x in NumPy, in the round y, c, a, b."""
    values = np.array([np.sum(ai * x) + 0.5 * of_constraints * np.sum(x**2) - bi for ai, bi in zip(a, b)])
    return values, of_loss * (x - y) + c, [ai + of_constraints * x for ai in a]
