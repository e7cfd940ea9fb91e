"""What a primal method is: online convex optimisation without long-term constraints (the paper's oracle)."""

import abc
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ..core import tree
from ..core.facts import Facts
from ..domains.base import AbstractDomain, AbstractVertex, Point
from ..errors import LearnerError
from ..theory import Constants


class RoundBounds(eqx.Module):
    """Bounds on the next loss h, and the length of the run. A primal has them before the round.

    A bound that the problem does not state is infinite, unless the primal's `needs` ask for it.
    """

    lipschitz: Float[Array, ""]  # |grad h| in the primal's norm
    smoothness: Float[Array, ""]
    horizon: Int[Array, ""]  # rounds of this run (a block's length in Algorithm 1); traced
    capacity: int = eqx.field(static=True)  # the largest horizon that arrays must hold


def step_size(domain: AbstractDomain, bounds: RoundBounds, power: float) -> Float[Array, ""]:
    r"""$R/(DT^p)$, the size of a step: diameter, Lipschitz constant, horizon and the power p."""
    kind = bounds.lipschitz.dtype
    return jnp.asarray(domain.diameter(2), kind) / (bounds.lipschitz * bounds.horizon.astype(kind) ** power)


class Cost(eqx.Module):
    """What a step used (LMO and gradient calls), and whether its gradients were finite."""

    lmo_calls: Int[Array, ""]
    gradient_calls: Int[Array, ""]
    finite: Bool[Array, ""]

    def __add__(self, other):
        """The cost of two steps together; finite if both are."""
        return Cost(
            self.lmo_calls + other.lmo_calls,
            self.gradient_calls + other.gradient_calls,
            self.finite & other.finite,
        )


def cost(lmo_calls: Any = 0, gradient_calls: Any = 0, finite: Any = True) -> Cost:
    """A `Cost` from plain numbers.

    >>> int((cost(lmo_calls=1) + cost(lmo_calls=1, gradient_calls=3)).lmo_calls)
    2
    """
    return Cost(jnp.asarray(lmo_calls, jnp.int32), jnp.asarray(gradient_calls, jnp.int32), jnp.asarray(finite, bool))


@runtime_checkable
class Revealed(Protocol):
    """The round's loss h = weights.loss * f + <weights.constraint, g>, known after the decision."""

    @property
    def played(self) -> Point:
        """The point that was actually played, which may differ from the primal's decision."""
        ...

    def gradient(self, x: Point) -> Point:
        """The gradient of h at x."""
        ...

    def sampled(self, sample: Callable[[Any], Any]) -> "Revealed":
        """The same weighted loss on `sample(round)`, a part of the round."""
        ...

    def parts(self, x: Point) -> tuple[Point, Point]:
        """(gradient of f at x, gradients of all g along a leading axis)."""
        ...

    def value(self, x: Point) -> Array:
        """h(x)."""
        ...

    def constraint(self, x: Point) -> Array:
        """The values of all constraints at x."""
        ...


def first_guess(domain: AbstractDomain, start: Point) -> AbstractVertex:
    """Some vertex, in the dtype of the decisions."""
    return tree.astype(domain.vertex(), tree.dtype(start))


class AbstractPrimal(eqx.Module):
    """A primal method: online convex optimisation in which the state holds the next decision.

    Your own needs `init`, `decision` and `step`; random keys come from the learner. `learners.PrimalDual` plays it, and
    `testing.check_primal` tells whether it keeps all promises. A primal with a theorem also has `alpha` and
    `_constants`, by which `learners.Blocks` is tuned, and names in `needs` what its updates need of a `Regularity`.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> from cocoax.primal import AbstractPrimal, cost
    >>> class MomFW(AbstractPrimal):  # Frank-Wolfe steps along a running mean of gradients; no theorem
    ...     deterministic = True
    ...
    ...     def init(self, domain, bounds, *, start, key, warm=None):
    ...         return start, jnp.zeros_like(start), jnp.ones((), start.dtype)
    ...
    ...     def decision(self, state):
    ...         return state[0]
    ...
    ...     def step(self, domain, state, revealed, next_bounds, *, key):
    ...         x, mean, t = state
    ...         gradient = revealed.gradient(revealed.played)
    ...         mean = mean + (gradient - mean) / t**0.75
    ...         x = domain.lmo(mean).mix(x, 0.5 / t**0.75)
    ...         return (x, mean, t + 1), cost(lmo_calls=1, gradient_calls=1, finite=jnp.isfinite(gradient).all())
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x), lambda x, r: x[0] - 0.25
    ... )
    >>> learner = cx.learners.PrimalDual(MomFW(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1))
    >>> rounds = jnp.tile(jnp.array([1.0, 2.0, 3.0]), (400, 1))
    >>> cx.play(problem, learner, rounds, key=jax.random.key(0)).decision.shape
    (3,)
    """

    deterministic: ClassVar[bool] = False
    """Whether decisions use no coins, so that weights may depend on the current round."""

    alpha: ClassVar[Fraction]
    """Regret grows like horizon**alpha. Only of a method with a theorem."""

    facts: ClassVar[Facts]
    """What the catalogue says of it. Only of a method that is in cocoax."""

    @property
    def has_theorem(self) -> bool:
        """Whether there are constants of a regret bound."""
        return type(self)._constants is not AbstractPrimal._constants

    @property
    def norm(self) -> float:
        """The norm in which gradients are bounded: 2, or inf for perturbations from a cube."""
        return 2

    @property
    def needs(self) -> tuple[str, ...]:
        """The constants of a `Regularity` that the updates use; by default none without a theorem."""
        return ("lipschitz",) if self.has_theorem else ()

    @property
    def factored(self) -> bool:
        """Whether decisions may be factored matrices."""
        return False

    def constants(self, domain: AbstractDomain, norm: float | None = None) -> Constants:
        """(alpha, C0, C1, C2) of the regret bound, for gradients bounded in `norm`; an error without a theorem."""
        if norm not in (None, self.norm):
            raise LearnerError(
                f"{type(self).__name__} has constants for gradients bounded in the norm {self.norm}, not {norm}"
            )
        return self._constants(domain)

    @classmethod
    def variants(cls) -> "Mapping[str, AbstractPrimal]":
        """The forms of this method that have constants of their own, by the names in tables of bounds.

        It is empty without a theorem.
        """
        return {} if cls._constants is AbstractPrimal._constants else {cls.__name__: cls()}

    def _constants(self, domain: AbstractDomain) -> Constants:
        """The constants of the method's theorem on this domain."""
        raise LearnerError(
            f"{type(self).__name__} states no regret bound; play it with learners.PrimalDual, or define alpha and "
            "_constants(domain), which returns theory.Constants"
        )

    @abc.abstractmethod
    def init(
        self, domain: AbstractDomain, bounds: RoundBounds, *, start: Point, key: PRNGKeyArray, warm: Any = None
    ) -> Any:
        """The state before the first round. `warm` is an earlier state whose LMO answers are good guesses."""

    @abc.abstractmethod
    def decision(self, state: Any) -> Point:
        """The next decision."""

    @abc.abstractmethod
    def step(
        self, domain: AbstractDomain, state: Any, revealed: Revealed, next_bounds: RoundBounds, *, key: PRNGKeyArray
    ) -> tuple[Any, Cost]:
        """Learn from the revealed loss and prepare the next decision."""

    def restart(
        self, domain: AbstractDomain, state: Any, bounds: RoundBounds, *, key: PRNGKeyArray
    ) -> tuple[Any, Cost]:
        """Forget the past, but start from the current decision and keep the LMO's guesses. By default: `init`."""
        return self.init(domain, bounds, start=self.decision(state), key=key, warm=state), cost()
