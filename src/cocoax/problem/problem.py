"""The problem: a domain, a loss, constraints, and their constants."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import check, tree
from ..domains.base import AbstractDomain, Point
from ..domains.matrices import view_derivatives as factored
from ..domains.matrices.view import has_view
from ..errors import ProblemError
from . import derivatives
from .functions import WithPrevious, constraint_values, function_of, loss_value
from .movement import arguments, nearby
from .names import constraint_names, request_fields
from .regularity import Regularity, regularities, stated

Round = Any
"""What one round reveals: any PyTree."""


class Problem(eqx.Module):
    """A loss f and constraints g over a domain; round by round, `loss(x, round)` and `constraint(x, round)`.

    **Arguments:**

    - `domain`: the set that decisions lie in.
    - `loss`: `(x, round) -> number`. A function, or a callable PyTree: problems of one shape then share one
      compilation.
    - `constraint`: `(x, round) ->` a number, a vector, or a dict of named numbers; <= 0 is good.
      Either may take a third argument without default, `previous`: the decision that was played in the round before,
      in the first round the start. So movement may have a cost or a limit (docs/movement.md).
    - `constraints`: how many there are, or the tuple of names that `constraint`'s dict has.
    - `regularity`: one `Regularity`, or several, one per norm. Methods with proofs need it.
    - `loss_grad`, `constraint_grad`: `(x, round) -> gradient`, in place of autodiff; with several constraints
      the latter has them along a leading axis. With movement: the gradient for a decision that stays.
    - `request`: what of a round is seen before the decision: nothing (`False`), all of it (`True`), or the fields with
      these names, of rounds that are dicts. Learners that decide before a round is seen ignore it.
    - `integral`: whether every decision must be a vertex of the domain (one answer, one path). Learners that mix
      vertices then refuse to play.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3),
    ...     loss=lambda x, r: jnp.vdot(r["cost"], x),
    ...     constraint=lambda x, r: jnp.vdot(r["use"], x) - 0.5,
    ... )
    >>> r = {"cost": jnp.array([1.0, 2.0, 3.0]), "use": jnp.array([1.0, 0.0, 0.0])}
    >>> f, g = problem.values(jnp.array([0.5, 0.5, 0.0]), r)
    >>> float(f), g.tolist()
    (1.5, [0.0])
    """

    domain: AbstractDomain
    loss: Callable
    constraint: Callable | None
    loss_grad: Callable | None
    constraint_grad: Callable | None
    regularity: tuple[Regularity, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    request: bool | tuple[str, ...] = eqx.field(static=True)
    integral: bool = eqx.field(static=True)
    previous: Point | None  # the decision of the round before, where that is known: see `after`

    def __init__(
        self,
        domain: AbstractDomain,
        loss: Callable,
        constraint: Callable | None = None,
        *,
        constraints: int | str | Sequence[str] = 1,
        regularity: Any = None,
        loss_grad: Callable | None = None,
        constraint_grad: Callable | None = None,
        request: bool | str | Sequence[str] = False,
        integral: bool = False,
    ):
        needed = "domain must be one of cocoax.domains, or made by domains.from_lmo"
        self.domain = check.instance(domain, AbstractDomain, ProblemError, needed)
        self.loss = function_of(loss, "loss", "x", "round", may_take="previous")
        self.constraint = _optional(constraint, "constraint", may_take="previous")
        self.loss_grad = _optional(loss_grad, "loss_grad")
        self.constraint_grad = _optional(constraint_grad, "constraint_grad")
        self.regularity = regularities(regularity)
        if constraint is None and constraints != 1:
            raise ProblemError(f"constraints={constraints!r} needs a constraint function; give Problem(constraint=...)")
        self.names = () if constraint is None else constraint_names(constraints)
        self.request = request_fields(request)
        self.integral = check.flag(integral, "integral", ProblemError)
        self.previous = None

    @property
    def has_movement(self) -> bool:
        """Whether the loss or the constraint takes the decision of the round before."""
        return isinstance(self.loss, WithPrevious) or isinstance(self.constraint, WithPrevious)

    def after(self, previous: Point | None) -> "Problem":
        """The same problem, in a round that follows the decision `previous`: `values` then include movement from there.

        With None, decisions do not move.
        """
        return eqx.tree_at(lambda problem: problem.previous, self, previous, is_leaf=lambda node: node is None)

    @property
    def has_requests(self) -> bool:
        """Whether something of a round is seen before the decision."""
        return self.request is not False

    @property
    def has_policies(self) -> bool:
        """Whether regret is measured against the best policy: there are requests, and rounds are not coupled."""
        return self.has_requests and not self.has_movement

    def request_of(self, round: Round) -> Round | None:
        """The part of this round that is seen before the decision; None if nothing is."""
        if not isinstance(self.request, tuple):
            return round if self.request else None
        missing = [name for name in self.request if not (isinstance(round, dict) and name in round)]
        if missing:
            has = ", ".join(map(repr, round)) if isinstance(round, dict) else f"none, it is {check.described(round)}"
            raise ProblemError(f"request names the field {missing[0]!r}, but a round's fields are {has}")
        return {name: round[name] for name in self.request}

    @property
    def constraints(self) -> int:
        """How many constraints there are."""
        return len(self.names)

    def values(
        self, x: Point, round: Round, previous: Point | None = None
    ) -> tuple[Float[Array, ""], Float[Array, " m"]]:
        """(f(x), g(x)), with g always a vector.

        With movement, `previous` is by default the decision of the previous round, if that is known (`after`);
        otherwise x, so that nothing moves.
        """
        if previous is None:
            previous = x if self.previous is None else self.previous
        return self._values(self.domain.view(x), round, previous)

    def movement(self, x: Point, round: Round, previous: Point) -> tuple[Float[Array, ""], Float[Array, " m"]]:
        """What moving from `previous` to x adds to f and to g, compared with being at x already."""
        moved, at_rest = self.values(x, round, previous), self.values(x, round, x)
        return moved[0] - at_rest[0], moved[1] - at_rest[1]

    def linearize(self, x: Point, round: Round, previous: Point | None = None) -> tuple[Any, Any, Callable]:
        """(f(x), g(x), pull), where `pull(a, b)` is the gradient of a f + <b, g> at x, in one backward pass.

        Values are those of `values`, gradients those of `gradients`.
        """
        if self.loss_grad is None and (self.constraint_grad is None or self.constraints == 0):
            function = self._of_point(self._values, x, round, previous)
            (loss, constraint), pull_back = derivatives.pulled_back(function, self.domain.view(x))
            if self.has_movement and previous is None:
                loss, constraint = self.values(x, round, previous)
            return loss, constraint, lambda a, b: pull_back((a, b))
        loss, constraint = self.values(x, round, previous)
        loss_gradient, constraint_gradients = self.gradients(x, round, previous)

        def pull(a, b):
            return tree.add(tree.scale(a, loss_gradient), tree.combine(b, constraint_gradients))

        return loss, constraint, pull

    def gradients(self, x: Point, round: Round, previous: Point | None = None) -> tuple[Point, Point]:
        """(gradient of f at x, gradients of g at x along a leading axis).

        With movement, these are by default gradients of x -> f(x, round, x), of a decision that does not move: a cost
        of movement alone has the gradient 0, at its kink too. A given `previous` is treated as a constant.
        """
        view = self.domain.view(x)
        if self.has_movement and previous is not None and (self.loss_grad or self.constraint_grad):
            raise ProblemError("loss_grad= and constraint_grad= are for decisions that stay; leave out previous=")
        if self.loss_grad is None:
            loss_gradient = derivatives.gradient(self._of_point(self._loss_value, x, round, previous), view)
        else:
            loss_gradient = derivatives.user_gradient(self.loss_grad, "loss_grad", x, round)
        if self.constraint_grad is None or self.constraints == 0:
            function = self._of_point(self._constraint_values, x, round, previous)
            constraint_gradients = derivatives.jacobian(function, view)
        else:
            name, several = "constraint_grad", self.constraints
            constraint_gradients = derivatives.user_gradient(self.constraint_grad, name, x, round, several)
        return loss_gradient, constraint_gradients

    def derivative(self, x: Point, round: Round, direction: Point) -> tuple[Array, Array] | None:
        """<gradient, direction> for f and for each g, by one forward pass; None if only gradients are known.

        The gradients are those of `gradients`. In compiled code the pass shares its work with `values`.
        """
        view = self.domain.view(x)
        if self.loss_grad is not None or self.constraint_grad is not None or has_view(view):
            return None
        try:
            return jax.jvp(self._of_point(self._values, x, round, None), (view,), (direction,))[1]
        except TypeError:  # custom derivatives that are backward only
            return None

    def curvature(
        self, x: Point, round: Round, a: Any, b: Any, previous: Point | None = None
    ) -> Callable[[Point], Point]:
        """A function that maps a direction to its product with the Hessian of a f + <b, g> at x.

        It returns 0 where f and g cannot be differentiated twice; at kinks it may not be finite. With movement, it is
        the derivative of `gradients`.
        """
        view = self.domain.view(x)
        try:
            if has_view(view):
                return factored.curvature(self._of_point(self._values, x, round, previous), view, (a, b))
            return jax.linearize(lambda point: self.linearize(point, round, previous)[2](a, b), x)[1]
        except (TypeError, ValueError, NotImplementedError):  # custom derivatives, callbacks
            return tree.zeros_like

    def constants(self, norm: float, needs: Sequence[str], who: str) -> Regularity:
        """The regularity stated in `norm`, checked to hold what `who` needs."""
        return stated(self.regularity, norm, needs, who)

    def _of_point(self, values, x, round, previous):
        """The function `values` of a point near x, ready to be differentiated there."""
        if self.has_movement and previous is None:
            apart = nearby(x)
            return lambda point: values(point, round, tree.add(point, apart))
        return lambda point: values(point, round, previous)

    def _values(self, view, round, previous):
        return self._loss_value(view, round, previous), self._constraint_values(view, round, previous)

    def _loss_value(self, view, round, previous):
        return loss_value(self.loss, *arguments(self.loss, view, round, previous))

    def _constraint_values(self, view, round, previous):
        """All constraint values at a view of the decision; an empty vector without constraints."""
        if self.constraint is None:
            return jnp.zeros((0,), tree.dtype(view))
        inputs = arguments(self.constraint, view, round, previous)
        return constraint_values(self.constraint, "constraint", self.names, *inputs)


def _optional(function, name, may_take=None) -> Callable | None:
    return None if function is None else function_of(function, name, "x", "round", may_take=may_take)
