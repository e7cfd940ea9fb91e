"""The same instance with outliers or heavy-tailed noise, in pairs that cancel.

For a fixed decision a pair changes nothing, so the comparator stays the same. A learner pays for how it changes its
decision between the two, and afterwards.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..errors import ProblemError
from .base import Instance
from .gates import Plus, Revealed, with_constraints, wrapped


class _Tilted(Revealed):
    """The old function, plus <tilt, x>, where `tilt` is a field of the round."""

    def __call__(self, x, r):
        value = super().__call__(x, r)
        return value + jnp.vdot(r["tilt"].astype(value.dtype), x)


class _Outliers(eqx.Module):
    """The fields `tilt` and `shift` of a pair of outliers; 0 in all other rounds."""

    at: Int[Array, " k"]  # where a pair begins
    tilt: Float[Array, "..."]
    shift: Float[Array, ""]

    def __call__(self, t, key):
        sign = jnp.any(t == self.at).astype(float) - jnp.any(t == self.at + 1).astype(float)
        return {"tilt": sign * self.tilt, "shift": sign * self.shift}


class _Noise(eqx.Module):
    """The fields `tilt` and `shift`: t-distributed noise with opposite signs in each pair of rounds."""

    key: Array
    degrees: Float[Array, ""]  # of freedom
    tilt: Float[Array, "..."]
    shift: Float[Array, ""]

    def __call__(self, t, key):
        tilt_key, shift_key = jax.random.split(jax.random.fold_in(self.key, t // 2))
        sign = (1 - 2 * (t % 2)).astype(float)
        tilt = self.tilt * jax.random.t(tilt_key, self.degrees, self.tilt.shape)
        return {"tilt": sign * tilt, "shift": sign * self.shift * jax.random.t(shift_key, self.degrees)}


def with_outliers(
    instance: Instance, *, loss: float = 0.0, constraint: float = 0.0, at: tuple[int, ...] = (1, 400)
) -> Instance:
    r"""The same instance with pairs of outliers that cancel, in the rounds s and s + 1 for each s in `at`.

    The first of a pair adds $\langle u, x\rangle$ to the loss, where u has alternating signs and the length `loss`, and
    the number `constraint` to the constraints. The second subtracts the same.

    >>> import jax
    >>> from cocoax.problems import simplex
    >>> instance = with_outliers(simplex(jax.random.key(0)), constraint=1000.0)
    >>> instance.rounds(4, jax.random.key(1))["shift"].tolist()
    [0.0, 1000.0, -1000.0, 0.0]
    """
    if not at or min(at) < 0:
        raise ProblemError(f"at must be numbers of rounds >= 0, got {at}")
    shape = instance.problem.domain.shape if isinstance(instance, Instance) else ()
    signs = 1 - 2 * (jnp.arange(_size(shape)).reshape(shape) % 2).astype(float)
    outliers = _Outliers(jnp.asarray(at, jnp.int32), loss * signs / signs.size**0.5, jnp.asarray(constraint, float))
    return _shocked("with_outliers", instance, outliers, constraint)


def heavy_tailed(
    instance: Instance, *, degrees: float = 1.2, loss: float = 0.0, constraint: float = 0.0, seed: int = 0
) -> Instance:
    r"""The same instance with noise of Student's t distribution, whose variance is infinite for `degrees` up to 2.

    Adds $\langle z_t, x\rangle$ to the losses and $s_t$ to the constraints, where all entries are t-distributed, times
    `loss` and `constraint`. Noise cancels in pairs, $z_{2k+1} = -z_{2k}$ and likewise s; otherwise the score would show
    little but the largest entries.

    >>> import jax
    >>> from cocoax.problems import simplex
    >>> rounds = heavy_tailed(simplex(jax.random.key(0)), loss=0.1).rounds(1000, jax.random.key(1))
    >>> bool(abs(rounds["tilt"]).max() > 10), abs(rounds["tilt"].reshape(500, 2, 10).sum(1)).max().item()
    (True, 0.0)
    """
    if not degrees > 0:
        raise ProblemError(f"degrees must be positive, got {degrees}")
    shape = instance.problem.domain.shape if isinstance(instance, Instance) else ()
    noise = _Noise(
        jax.random.key(seed), jnp.asarray(degrees, float), jnp.full(shape, loss, float), jnp.asarray(constraint, float)
    )
    return _shocked("heavy_tailed", instance, noise, constraint)


def _shocked(who, instance, extra: Callable, constraint):
    if constraint != 0:
        with_constraints(who, instance)
    return wrapped(who, instance, extra, _Tilted, lambda function: Plus(function, "shift"))


def _size(shape):
    return int(jnp.prod(jnp.asarray(shape, int))) if shape else 1
