"""The same instance in other units, or with constraints that are 0 at first."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..comparators.comparator import Comparator
from ..core import check, tree
from ..domains import Scale
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem, Regularity
from .base import Instance


class _Units(eqx.Module):
    """Factors from old units to new ones."""

    loss: Float[Array, ""]
    constraint: Float[Array, ""]
    geometry: Float[Array, ""]

    def inner(self, x):
        """A decision in the old units."""
        return None if x is None else tree.scale(1 / self.geometry, x)


class _Function(eqx.Module):
    """`factor` times the old function, of the decision in the old units and its other arguments."""

    function: Callable
    units: _Units
    factor: Float[Array, ""]

    def __call__(self, x, *rest):
        value = jnp.asarray(self.function(self.units.inner(x), *rest))
        return self.factor.astype(value.dtype) * value


class _Environment(Environment):
    """The old environment, which sees decisions in the old units."""

    environment: Environment
    units: _Units

    def init(self, key):
        return self.environment.init(key)

    def emit(self, state, decision, key):
        return self.environment.emit(state, self.units.inner(decision), key)


class _Rescaled(Instance):
    """The instance in other units."""

    original: Instance
    units: _Units

    def comparator(self, rounds, **options):
        """The original's comparator in the new units; its certificate does not depend on units."""
        best, units = self.original.comparator(rounds, **options), self.units
        loss, constraint, geometry = (float(factor) for factor in (units.loss, units.constraint, units.geometry))
        return Comparator(
            jax.tree.map(lambda leaf: geometry * leaf, best.x),
            loss * best.loss,
            constraint * best.constraint,
            np.asarray(loss * best.value),
            np.asarray(loss * best.lower_bound),
            loss / constraint * best.multiplier,
            loss / constraint * best.price,
            best.names,
        )


def rescaled(instance: Instance, *, loss: Any = 1.0, constraint: Any = 1.0, geometry: Any = 1.0) -> Instance:
    r"""The same instance in other units: losses times `loss`, constraints times `constraint`, decisions times
    `geometry`.

    $f'_t(x) = a f_t(x/s)$ and $g'_t(x) = b g_t(x/s)$ over $sX$. Constants follow: D becomes $\max(a,b)D/s$, L
    $\max(a,b)L/s^2$ and G $bG$; a multiplier $\lambda$ becomes $\frac ab\lambda$. A learner whose decisions depend on
    units plays another game.

    >>> import jax
    >>> from cocoax.problems import simplex
    >>> instance = rescaled(simplex(jax.random.key(0)), loss=1e3)
    >>> rounds = instance.rounds(50, jax.random.key(1))
    >>> round(float(instance.comparator(rounds).value / simplex(jax.random.key(0)).comparator(rounds).value), 6)
    1000.0
    """
    check.instance(instance, Instance, ProblemError, "rescaled needs an Instance first")
    for name, factor in (("loss", loss), ("constraint", constraint), ("geometry", geometry)):
        if not tree.is_traced(factor) and not 0 < check.scalar(factor, name, ProblemError) < float("inf"):
            raise ProblemError(f"{name} must be positive and finite, got {factor}")
    units = _Units(*(jnp.asarray(factor, float) for factor in (loss, constraint, geometry)))
    old = instance.problem
    if old.loss_grad is not None or old.constraint_grad is not None:
        raise ProblemError(
            "rescaled leaves gradients to autodiff; give a Problem without loss_grad and constraint_grad"
        )
    problem = Problem(
        Scale(old.domain, units.geometry),
        _Function(old.loss, units, units.loss),
        None if old.constraint is None else _Function(old.constraint, units, units.constraint),
        constraints=old.names or 1,
        regularity=[_regularity(one, units) for one in old.regularity],
        request=old.request,
        integral=old.integral,
    )
    expected = instance.expected_constraint
    return _Rescaled(
        problem,
        _Environment(instance.environment, units),
        None,
        None if expected is None else _Function(tree.as_pytree(expected), units, units.constraint),
        instance,
        units,
    )


def _regularity(old: Regularity, units: _Units) -> Regularity:
    """The constants in the new units."""
    size = jnp.maximum(units.loss, units.constraint)
    return Regularity(
        None if old.lipschitz is None else old.lipschitz * size / units.geometry,
        None if old.smoothness is None else old.smoothness * size / units.geometry**2,
        None if old.constraint_bound is None else old.constraint_bound * units.constraint,
        norm=old.norm,
    )


class _Sleeping(Environment):
    """The old rounds in the field `revealed`, and `awake`, which is 0 in the first `rounds` and then 1."""

    environment: Environment
    rounds: Int[Array, ""]

    def init(self, key):
        return jnp.zeros((), jnp.int32), self.environment.init(key)

    def emit(self, state, decision, key):
        t, inner = state
        inner, revealed = self.environment.emit(inner, decision, key)
        return (t + 1, inner), {"revealed": revealed, "awake": (t >= self.rounds).astype(float)}


class _Revealed(eqx.Module):
    """The old function, applied to the field `revealed`."""

    function: Callable

    def __call__(self, x, r):
        return self.function(x, r["revealed"])


class _Awake(eqx.Module):
    """The old function, times the field `awake`."""

    function: Callable

    def __call__(self, x, r):
        value = jnp.asarray(self.function(x, r["revealed"]))
        return r["awake"].astype(value.dtype) * value


def waking(instance: Instance, *, after: int) -> Instance:
    """The same instance, with all constraints 0 in the first `after` rounds.

    The comparator meets the mean constraint of the rounds that are played, so only the later ones restrict it.

    >>> import jax
    >>> from cocoax.problems import simplex
    >>> instance = waking(simplex(jax.random.key(0)), after=30)
    >>> instance.rounds(50, jax.random.key(1))["awake"].sum().item()
    20.0
    """
    check.instance(instance, Instance, ProblemError, "waking needs an Instance first")
    after = check.whole(after, "after", ProblemError, low=0)
    old = instance.problem
    if old.constraint is None:
        raise ProblemError("waking needs an instance with constraints")
    if old.loss_grad is not None or old.constraint_grad is not None:
        raise ProblemError("waking leaves gradients to autodiff; give a Problem without loss_grad and constraint_grad")
    problem = Problem(
        old.domain,
        _Revealed(old.loss),
        _Awake(old.constraint),
        constraints=old.names,
        regularity=old.regularity,
        request=old.request,
        integral=old.integral,
    )
    return Instance(problem, _Sleeping(instance.environment, jnp.asarray(after, jnp.int32)), None, None)
