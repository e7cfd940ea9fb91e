"""What regret is measured against: a decision, or a path of them, with its certificate."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import tree
from ..core.summaries import Summary, is_known, number, point
from ..domains.base import Point
from ..errors import ProblemError
from ..problem.derivatives import anew_if_mixed
from ..problem.movement import decisions_before
from ..problem.problem import Problem, Round
from ..problem.rounds import as_rounds, number_of_rounds
from .chunks import batch_size, map_rounds
from .price import gradient_squares, prices


class Comparator(eqx.Module):
    r"""A decision $x^*$ to compare with, and its certificate.

    `value` is $\sum_t f_t(x^*)$. No decision that meets the constraints does better than `lower_bound`, because
    $\sum_t f_t + \langle\lambda^*, C\rangle \ge$ `lower_bound` on X, where $\lambda^*$ is `multiplier` and C stands for
    the constraints: $\sum_t g_t$ by default, T times the expectation where that was given, each $g_t$ for
    `"every_round"`. So a unit of total violation is worth $\lambda^*$ units of total loss. The score charges `price`,
    at least twice as much, so that ignoring a constraint never pays: $\max(2\lambda^*_i, \frac1{10}u_i)$, where the
    natural unit $u_i$ is the RMS over rounds of $|\nabla f_t(x^*)|$ over that of $|\nabla g_{ti}(x^*)|$, both within
    the domain's affine hull. A point or path of one's own proves nothing: its lower bound is $-\infty$. All leaves are
    NumPy arrays of float64: comparators can be stacked.

    `cx.hindsight` returns one. `Comparator.fixed` and `Comparator.path` make one of your own decisions.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, cost: jnp.vdot(cost, x))
    >>> mine = Comparator.fixed(problem, jnp.array([[1.0, 0.0], [3.0, 0.0]]), jnp.array([0.5, 0.5]))
    >>> mine.loss.tolist(), float(mine.value), float(mine.gap)
    ([0.5, 1.5], 2.0, inf)
    """

    x: Point
    loss: np.ndarray  # (T,): f_t(x*)
    constraint: np.ndarray  # (T, m): g_t(x*)
    value: np.ndarray
    lower_bound: np.ndarray
    multiplier: np.ndarray  # (m,), or (T, m) with benchmark="every_round"
    price: np.ndarray  # of a unit of violation, like `multiplier`
    names: tuple[str, ...] = eqx.field(static=True, default=())  # of the constraints

    def __init__(
        self,
        x: Point,
        loss: np.ndarray,
        constraint: np.ndarray,
        value: np.ndarray,
        lower_bound: np.ndarray,
        multiplier: np.ndarray,
        price: np.ndarray | None = None,
        names: tuple[str, ...] = (),
    ):
        self.x, self.loss, self.constraint = x, loss, constraint
        self.value, self.lower_bound, self.multiplier = value, lower_bound, multiplier
        self.price = 2 * np.asarray(multiplier) if price is None else price
        self.names = names

    @property
    def gap(self) -> np.ndarray:
        """How far `value` may be above the best possible one; it is below it where a constraint is broken a little."""
        return np.maximum(self.value - self.lower_bound, 0.0)

    def __repr__(self):
        return str(self._summary()) if self._is_known() else eqx.tree_pformat(self)

    def _repr_html_(self):
        return self._summary().html() if self._is_known() else None

    def _is_known(self):
        parts = self.loss, self.constraint, self.value, self.lower_bound, self.multiplier
        return is_known(*parts) and np.size(self.loss) > 0

    def _summary(self) -> Summary:
        horizon, several = self.loss.shape[-1], int(np.prod(self.loss.shape[:-1]))
        title = "Comparator" if self.loss.ndim == 1 else f"{several:,} comparators, mean ± standard deviation,"
        proof = "" if np.isinf(self.lower_bound).any() else f", at most {number(self.gap)} above the best possible"
        rows = [("value", f"{number(self.value)}{proof}"), ("mean loss", number(self.loss.mean(-1)))]
        count = self.constraint.shape[-1]
        names = self.names or (["constraint"] if count == 1 else [f"constraint_{i}" for i in range(count)])
        for i, name in enumerate(names):
            prices = self.multiplier[..., i]
            price = number(prices if prices.shape == self.loss.shape[:-1] else prices.mean(-1))
            rows.append((name, f"mean {number(self.constraint[..., i].mean(-1))}, multiplier {price}"))
        if (x := point(self.x)) is not None:
            rows.append(("x", x))
        mean = np.cumsum(self.loss, -1) / np.arange(1, horizon + 1)
        return Summary(f"{title} over {horizon:,} rounds", rows, [("mean loss", mean.reshape(-1, horizon))])

    @classmethod
    def fixed(cls, problem: Problem, rounds: Round, x: Point) -> "Comparator":
        """Any one point as the comparator."""
        return cls._given(problem, rounds, x, None)

    @classmethod
    def path(cls, problem: Problem, rounds: Round, xs: Point) -> "Comparator":
        """One point a round (leading axis T), for dynamic regret. It may begin where it likes: no movement to there."""
        return cls._given(problem, rounds, xs, 0)

    @classmethod
    @anew_if_mixed
    def _given(cls, problem, rounds, x, axis):
        with jax.enable_x64(True):
            problem, rounds, x = (float64(part) for part in (problem, as_rounds(rounds), x))
            horizon = number_of_rounds(rounds)
            if axis == 0 and number_of_rounds(x) != horizon:
                raise ProblemError(f"a path needs one point a round: {horizon} rounds, {number_of_rounds(x)} points")
            loss, constraint = (np.asarray(values) for values in each_round(problem, rounds, x, axis))
            squares = gradient_squares(problem, rounds, x, axis)
        value, none = np.asarray(loss.sum()), np.zeros(problem.constraints)
        x = jax.tree.map(np.asarray, x)
        return cls(x, loss, constraint, value, np.asarray(-np.inf), none, prices(none, squares), problem.names)


@eqx.filter_jit
def each_round(problem, rounds, x, axis):
    """(f_t(x), g_t(x)) of all rounds; `axis` is 0 where x is a path, else None. A fixed x does not move."""
    previous = decisions_before(x) if axis == 0 and problem.has_movement else None
    point = jax.tree.map(lambda leaf: leaf[0], x) if axis == 0 else x
    batch, moves = batch_size(problem, point, rounds), 0 if previous is not None else None
    if axis is None:
        return map_rounds(jax.vmap(lambda r: problem.values(x, r)), batch, rounds)
    return map_rounds(jax.vmap(problem.values, in_axes=(0, 0, moves)), batch, x, rounds, previous)


def float64(x):
    """Its floating leaves in float64."""
    return tree.astype(jax.tree.map(jnp.asarray, x), jnp.float64)
