"""The same instance with rare feedback, or with constraints that cannot be met for a while."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import check
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem
from .base import Instance


class Wrapped(Environment):
    """Rounds of an environment, in the field `revealed`, with the fields that `extra(t, key)` adds to round t."""

    environment: Environment
    extra: Callable

    def init(self, key) -> Any:
        return jnp.zeros((), jnp.int32), self.environment.init(key)

    def emit(self, state, decision, key) -> tuple[Any, Any]:
        t, inner = state
        inner, revealed = self.environment.emit(inner, decision, key)
        return (t + 1, inner), {"revealed": revealed, **self.extra(t, key)}


class Revealed(eqx.Module):
    """The old function, applied to the field `revealed`."""

    function: Callable

    def __call__(self, x, r):
        return jnp.asarray(self.function(x, r["revealed"]))


class _Times(Revealed):
    """The old function, times the field `name`."""

    name: str = eqx.field(static=True)

    def __call__(self, x, r):
        value = super().__call__(x, r)
        return r[self.name].astype(value.dtype) * value


class Plus(Revealed):
    """The old function, plus the field `name`."""

    name: str = eqx.field(static=True)

    def __call__(self, x, r):
        value = super().__call__(x, r)
        return value + r[self.name].astype(value.dtype)


def wrapped(who: str, instance: Instance, extra: Callable, loss: Callable, constraint: Callable) -> Instance:
    """The instance with rounds of `Wrapped`, and with its functions replaced by `loss(old)` and `constraint(old)`.

    `who` is the public function that errors name.
    """
    check.instance(instance, Instance, ProblemError, f"{who} needs an Instance first")
    old = instance.problem
    if old.loss_grad is not None or old.constraint_grad is not None:
        raise ProblemError(f"{who} leaves gradients to autodiff; give a Problem without loss_grad and constraint_grad")
    problem = Problem(
        old.domain,
        loss(old.loss),
        None if old.constraint is None else constraint(old.constraint),
        constraints=old.names or 1,
        request=old.request,
        integral=old.integral,
    )
    return Instance(problem, Wrapped(instance.environment, extra), None, None)


def with_constraints(who: str, instance: Instance) -> None:
    """Raise `ProblemError`, naming `who`, if the instance has no constraints."""
    check.instance(instance, Instance, ProblemError, f"{who} needs an Instance first")
    if instance.problem.constraint is None:
        raise ProblemError(f"{who} needs an instance with constraints")


class _Seen(eqx.Module):
    """Draws whether loss and constraints are seen in a round, as 0 or 1."""

    loss: Float[Array, ""]  # the chance that it is seen
    constraint: Float[Array, ""]

    def __call__(self, t, key):
        chances = jax.random.uniform(jax.random.fold_in(key, 1), (2,))
        return {
            "seen_loss": (chances[0] < self.loss).astype(float),
            "seen": (chances[1] < self.constraint).astype(float),
        }


def rarely_seen(instance: Instance, *, loss: float = 1.0, constraint: float = 0.03) -> Instance:
    """The same instance, with loss and constraints replaced by 0 in all but a random share of the rounds.

    `loss` and `constraint` are these shares; the two are drawn independently.

    >>> import jax
    >>> from cocoax.problems import simplex
    >>> instance = rarely_seen(simplex(jax.random.key(0)))
    >>> 10 < instance.rounds(1000, jax.random.key(1))["seen"].sum() < 60
    Array(True, dtype=bool)
    """
    for name, share in (("loss", loss), ("constraint", constraint)):
        if not 0 < share <= 1:
            raise ProblemError(f"{name} must be a share of rounds in (0, 1], got {share}")
    seen = _Seen(jnp.asarray(loss, float), jnp.asarray(constraint, float))
    return wrapped(
        "rarely_seen",
        instance,
        seen,
        lambda function: _Times(function, "seen_loss"),
        lambda function: _Times(function, "seen"),
    )


class _Stretches(eqx.Module):
    """The excess in the last `length` of every `every` rounds, else 0."""

    every: Int[Array, ""]
    length: Int[Array, ""]
    excess: Float[Array, ""]

    def __call__(self, t, key):
        return {"excess": jnp.where(t % self.every >= self.every - self.length, self.excess, 0.0)}


def infeasible_stretches(instance: Instance, *, excess: float, every: int = 100, length: int = 15) -> Instance:
    """The same instance, with constraints larger by `excess` in the last `length` of every `every` rounds.

    If no decision can offset the excess, the constraint cannot be met during a stretch. It can be met on average over
    all rounds if the excess is not too large.

    >>> import jax
    >>> from cocoax.problems import simplex
    >>> instance = infeasible_stretches(simplex(jax.random.key(0)), excess=0.5)
    >>> instance.rounds(200, jax.random.key(1))["excess"].sum().item()
    15.0
    """
    with_constraints("infeasible_stretches", instance)
    every = check.whole(every, "every", ProblemError, low=1)
    if not 0 <= check.whole(length, "length", ProblemError, low=0) <= every:
        raise ProblemError(f"length must be at most every = {every}, got {length}")
    stretches = _Stretches(jnp.asarray(every, jnp.int32), jnp.asarray(length, jnp.int32), jnp.asarray(excess, float))
    return wrapped("infeasible_stretches", instance, stretches, Revealed, lambda function: Plus(function, "excess"))
