"""Step sizes for `primal.Tracked`, as rules with Optax's methods `init` and `update`."""

import abc
import contextlib
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..core.parameters import discount, flag, parameter, positive_parameter, rounds_remembered
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..errors import LearnerError
from .base import RoundBounds, step_size


class AbstractStep(eqx.Module):
    """A rule for the step size, from the gradients so far."""

    @abc.abstractmethod
    def init(self, domain: AbstractDomain, start: Point) -> Any:
        """The state before the first gradient."""

    @abc.abstractmethod
    def update(
        self, domain: AbstractDomain, state, gradient: Point, point: Point, bounds: RoundBounds | None = None
    ) -> tuple[Point, Any]:
        """(what to add to the target, new state), after a gradient at `point`."""


class Norm(AbstractStep):
    r"""Steps over the norm of all gradients: $\eta_t = R\,\left(\sum_{s\le t}\|\nabla_s\|^p\right)^{-1/p}$.

    $p=\frac43$ balances the errors of tracking, and is what `primal.Tracked`'s theorem is about; $p=2$ is AdaGrad-norm
    with the diameter as its distance, made for exact projections.
    """

    power: Float[Array, ""]

    def __init__(self, power: Any = 4 / 3):
        self.power = parameter(power, "power", 1, 2)

    def init(self, domain, start):
        return jnp.zeros((), tree.dtype(start))

    def update(self, domain, state, gradient, point, bounds=None):
        power = self.power.astype(state.dtype)
        total = (state**power + tree.norm(gradient) ** power) ** (1 / power)
        rate = ratio(jnp.asarray(domain.diameter(2), total.dtype), total)
        return tree.scale(-rate, gradient), total


class Constant(AbstractStep):
    r"""One step size for all rounds: `size`, or by default $\eta = \frac{R}{D\,T^{3/4}}$, which needs D and T."""

    size: Float[Array, ""] | None

    def __init__(self, size: Any = None):
        self.size = None if size is None else positive_parameter(size, "size")

    def init(self, domain, start):
        return ()

    def update(self, domain, state, gradient, point, bounds=None):
        size = self.size
        if size is None:
            assert bounds is not None
            size = step_size(domain, bounds, 0.75)
        return tree.scale(-size, gradient), state


class Distance(AbstractStep):
    r"""Distance over gradients, with no constants (Ivgi, Hinder, Carmon, 2023; Khaled, Mishchenko, Jin, 2023).

    $\eta_t = \bar r_t\left(\sum_s\|\nabla_s\|^2\right)^{-1/2}$, or weighted,
    $\eta_t = \bar r_t^2\left(2\sum_s\bar r_s^2\|\nabla_s\|^2\right)^{-1/2}$, where $\bar r_t$ is the largest distance
    from the start so far, at first `first` times the diameter. With `memory` the sums forget, 1/memory of themselves a
    round.
    """

    first: Float[Array, ""]
    memory: Float[Array, ""] | None
    weighted: bool = eqx.field(static=True)

    def __init__(self, first: Any = 0.01, *, weighted=True, memory: Any = None):
        self.first = parameter(first, "first", 1e-9, 1)
        self.memory = rounds_remembered(memory)
        self.weighted = flag(weighted, "weighted")

    def init(self, domain, start):
        kind = tree.dtype(start)
        return start, (self.first * jnp.asarray(domain.diameter(2))).astype(kind), jnp.zeros((), kind)

    def update(self, domain, state, gradient, point, bounds=None):
        rate, state = self.rate(state, tree.norm(gradient), point)
        return tree.scale(-rate, gradient), state

    def rate(self, state, length, point):
        """(step size, new state), after a gradient of norm `length` at `point`."""
        start, far, total = state
        far = jnp.maximum(far, tree.norm(tree.sub(point, start)))
        added = (far * length if self.weighted else length) ** 2
        total = discount(self.memory, far.dtype) * total + added
        rate = ratio(far**2, jnp.sqrt(2 * total)) if self.weighted else ratio(far, jnp.sqrt(total))
        return rate, (start, far, total)


class Optax(AbstractStep):
    """Any of Optax's transformations; the decision is its parameters."""

    transformation: Any = eqx.field(static=True)

    def __init__(self, transformation):
        if not _is_optimiser(transformation):
            raise LearnerError(f"Optax needs one of Optax's optimisers, got {check.described(transformation)}")
        self.transformation = transformation

    def init(self, domain, start):
        with _optax_errors():
            return self.transformation.init(start)

    def update(self, domain, state, gradient, point, bounds=None):
        with _optax_errors():
            return self.transformation.update(gradient, state, point)


def _is_optimiser(choice) -> bool:
    """Whether this has the methods of one of Optax's optimisers."""
    parts = getattr(choice, "init", None), getattr(choice, "update", None)
    return all(map(callable, parts)) and not isinstance(choice, type)


@contextlib.contextmanager
def _optax_errors():
    """Context: an optimiser that needs more than gradients and parameters raises a `LearnerError`."""
    try:
        yield
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise LearnerError(
            "an Optax optimiser must need no more than gradients and parameters, but "
            f"{type(error).__name__}: {reason}; give another, or one of primal.steps"
        ) from error


def as_step(choice) -> AbstractStep:
    """The step rule that a user chose as a rule, a number (`Constant`), an optimiser (`Optax`), or None (`Norm`)."""
    if choice is None:
        return Norm()
    if isinstance(choice, AbstractStep):
        return choice
    if isinstance(choice, type):
        raise LearnerError(f"step must be a rule, not a class; give {choice.__name__}()")
    if _is_optimiser(choice):
        return Optax(choice)
    if isinstance(choice, int | float) or hasattr(choice, "ndim"):
        return Constant(choice)
    raise LearnerError(f"step must be one of primal.steps, a number, or an Optax optimiser, got {choice!r:.80}")
