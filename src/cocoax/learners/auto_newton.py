"""`AutoNewton`, for models that are fitted as data come in: damped Newton steps under budgets."""

from typing import Any

from jaxtyping import Array, Float

from ..core.facts import Facts
from ..core.parameters import parameter
from ..dual.robust_pi import RobustPI
from ..errors import LearnerError
from ..primal.diagonal_newton import DiagonalNewton
from ..primal.mixture import Mixture
from .projected import AbstractUntuned

_SCALES = (0.5, 0.25, 0.125, 0.0625, 0.03125)
_GAIN = 0.05  # a quarter of the usual: what means have learnt from a multiplier stays in them


class AutoNewton(AbstractUntuned):
    r"""Parameters in boxes, most of which are seldom seen, as biases of users and items; no constants, no horizon.

    `primal.DiagonalNewton` with several priors side by side (`primal.Mixture`), and multipliers by `dual.RobustPI`. A
    parameter that was seen n times is a mean of n values and a few at the start, instead of a point that still moves
    by $1/\sqrt n$: where losses are squares or logarithms of predictions, this is what `Auto` lacks. Losses without
    curvature give AdaGrad by coordinate.

    **Arguments:**

    - `scales`: how far parameters may be expected from the start, in lengths of their intervals.

    *Proven:* decisions lie in the box, never use the future, and cost in a game without constraints no more than those
    of the best scale and what AdaHedge adds (`primal.Mixture`). *Measured only:* everything else (docs/models.md).

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.Box([-2.0] * 3, [2.0] * 3),
    ...     loss=lambda x, r: (x[r["item"]] - r["rating"]) ** 2,
    ...     constraint=lambda x, r: x[0] - 0.25,
    ... )
    >>> rounds = {"item": jnp.arange(300) % 3, "rating": jnp.tile(jnp.array([1.0, 0.5, -1.0]), 100)}
    >>> game = cx.play(problem, AutoNewton(), rounds, key=jax.random.key(0))
    >>> game.decision[1:].round(1).tolist(), bool(game.constraint.mean() < 0.01)
    ([0.5, -1.0], True)
    """

    facts = Facts(
        cost="for each scale 2 gradients, and 1 for each leaf",
        guarantee="on boxes, no constants, no horizon, measured: see docs/models.md",
        cites=("cocoax", "derooij2014"),
    )

    primal: Mixture
    dual: RobustPI
    scales: tuple[Float[Array, ""], ...]

    def __init__(self, scales: Any = _SCALES):
        if not isinstance(scales, tuple | list) or not scales:
            raise LearnerError(f"scales must be a list of numbers between 0 and 1, got {scales!r:.80}")
        self.scales = tuple(parameter(scale, "scale", 1e-9, 1) for scale in scales)
        self.primal = Mixture([DiagonalNewton(scale) for scale in self.scales])
        self.dual = RobustPI(_GAIN)

    def check(self, problem):
        super().check(problem)
        if problem.domain.intervals() is None:
            raise LearnerError(
                "AutoNewton plays on boxes and products of boxes, got "
                f"{type(problem.domain).__name__}; choose learners.Auto()"
            )
