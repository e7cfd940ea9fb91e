"""The best fixed decision in hindsight, with a certificate: what regret is measured against."""

import warnings
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..core.compilation_cache import use_compilation_cache
from ..domains.base import Point
from ..errors import InfeasibleError, ProblemError
from ..problem.derivatives import anew_if_mixed
from ..problem.environment import Environment, drawn_for
from ..problem.problem import Problem, Round
from ..problem.rounds import as_rounds, number_of_rounds
from .clock import Clock, Stopped
from .comparator import Comparator, each_round, float64
from .methods import solve
from .objective import Objective
from .oracle import Oracle
from .price import gradient_sizes, prices
from .rounding import rounding
from .search import Infeasible, Search


@anew_if_mixed
def hindsight(
    problem: Problem,
    rounds: Round | Environment,
    *,
    expected_constraint: Callable | None = None,
    benchmark: Literal["mean", "every_round"] = "mean",
    policy: bool = False,
    tol: float = 1e-6,
    seconds: float | None = None,
    progress: bool = True,
    start: Comparator | Point | None = None,
    horizon: int | None = None,
    key: PRNGKeyArray | None = None,
) -> Comparator:
    r"""The best fixed decision in hindsight, in float64, with a certificate by linear minimisation.

    $\min_{x\in X} \sum_{t=1}^T f_t(x)$ subject to $\frac1T\sum_{t=1}^T g_t(x) \le 0$.

    **Arguments:**

    - `rounds`: as in `play`. Those of an `Environment` are drawn with `horizon` and `key` while the decision stays at
      the domain's start. An adversary that reacts to decisions has no fixed rounds: give those of the game instead
      (`play(..., keep_rounds=True)`).
    - `expected_constraint`: `x ->` the expectation of g(x), as `constraint` returns it, where it is known; it then
      replaces the mean.
    - `benchmark`: `"mean"` as above, or `"every_round"`: $g_t(x) \le 0$ for every t.
    - `policy`: whether to compare with the best policy, one decision a round that is taken after the round is seen
      (`Problem(request=...)`): $\min\sum_t f_t(x_t)$ subject to $\sum_t g_t(x_t) \le 0$. Its `x` is the path of
      decisions; no policy does better than `lower_bound`.
    - `tol`: value and lower bound agree to `tol * max(1, |value|)`, constraints hold to `tol` times their size.
    - `seconds`: returns after about so long with the best decision so far, as it does on Ctrl-C.
    - `progress`: whether to say, on the error stream, how far it is, where it takes longer than two seconds.
    - `start`: an earlier answer, for example for the rounds so far, or a point of the domain, to begin with; of a
      policy, an earlier answer only, whose prices it begins with.

    Needs `lmo` only; a projection, where the domain has an exact one, makes it faster. Runs on the host: call it
    outside `jit` and `vmap`. Raises `InfeasibleError`, with its proof, if no point of the domain meets the
    constraints. Every call ends: a method that narrows the gap no further makes room for the next one, and all together
    have at most 50,000 rounds, where a round is a step of a method, or an LMO or projection within it. Warns if the
    certificate could not be closed to `tol`. The lower bound is always true (for a domain whose `lmo` is exact, and
    convex functions). The value may lie below the optimum, by what exceeding the constraints within `tol` saves: while
    searching that is counted at the multipliers, but where a constraint has no slope at its limit, as `z**2 <= 0`, it
    saves more, about `tol` times the power. What rounding in float64 may have added is
    taken off the lower bound: of constraints like `1e12 * x.sum() - 1e12` little can be proven.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(2),
    ...     loss=lambda x, r: jnp.vdot(r["cost"], x),
    ...     constraint=lambda x, r: x[0] - r["budget"],
    ... )
    >>> rounds = {"cost": jnp.array([[1.0, 2.0], [1.0, 4.0]]), "budget": jnp.array([0.5, 0.0])}
    >>> best = hindsight(problem, rounds)  # x[0] <= 0.25 on average
    >>> best.x.round(6).tolist(), round(float(best.value), 6), best.multiplier.round(6).tolist()
    ([0.25, 0.75], 5.0, [2.0])
    """
    use_compilation_cache()
    check.instance(problem, Problem, ProblemError, "hindsight needs a Problem first")
    if tree.has_element(problem.domain.start()):
        raise ProblemError("hindsight has no solver for factored matrices; give regret a decision to compare with")
    if tree.is_traced(problem, rounds, key):
        raise ProblemError("hindsight runs on the host; call it outside jit and vmap")
    if benchmark not in ("mean", "every_round"):
        raise ProblemError(f"benchmark must be 'mean' or 'every_round', got {benchmark!r}")
    if expected_constraint is not None and benchmark == "every_round":
        raise ProblemError("expected_constraint replaces the mean; with benchmark='every_round' leave it out")
    if not 0 < check.scalar(tol, "tol", ProblemError) < np.inf:
        raise ProblemError(f"tol must be positive, got {tol}")
    if seconds is not None and not check.scalar(seconds, "seconds", ProblemError) > 0:
        raise ProblemError(f"seconds must be positive, got {seconds}")
    check.flag(progress, "progress", ProblemError)
    limit = np.inf if seconds is None else float(seconds)
    if isinstance(rounds, Environment):
        rounds = _draw(problem, rounds, horizon, key)
    elif (length := number_of_rounds(rounds := as_rounds(rounds))) != (length if horizon is None else horizon):
        raise ProblemError(f"horizon={horizon} does not fit the {length} rounds given")

    if policy:
        if expected_constraint is not None or benchmark != "mean":
            raise ProblemError("a policy meets the mean of what happens; leave out expected_constraint and benchmark")
        from .policy import best_policy

        return best_policy(problem, rounds, tol, Clock(limit, progress), start)

    quiet = np.errstate(all="ignore")  # poles and overflows are looked for where they matter
    with jax.enable_x64(True), quiet, Clock(limit, progress) as clock:
        objective = Objective(float64(problem), float64(rounds), expected_constraint, benchmark)
        clock.measure_compilation()
        oracle = Oracle(objective.problem.domain, objective.start)
        guess = start.multiplier if isinstance(start, Comparator) else None
        search = Search(objective, oracle, tol, clock, _first_point(oracle, start), guess)
        why = "no method narrows its gap"  # if it is not closed
        try:
            solve(search)
            search.settle()
        except (Stopped, KeyboardInterrupt) as stop:  # what is known so far is the answer
            why = str(stop) or "it was interrupted"
        except Infeasible as proof:
            _check_convexity(objective, oracle, *proof.args)
            raise _infeasible(objective, *proof.args) from None
        return _comparator(objective, search, why)


def _first_point(oracle, start):
    if start is None:
        return None
    point = start.x if isinstance(start, Comparator) else start
    point = np.asarray(ravel_pytree(float64(oracle.domain.validate(point, "start", False)))[0])
    if oracle.projects:
        return oracle.nearest(point)
    if not isinstance(start, Comparator) and not oracle.inside(point, 1e-6):
        raise ProblemError("start must be what hindsight returned, or a point that the domain knows to be its own")
    return point


def _comparator(objective, search, why):
    _, unravel = ravel_pytree(objective.start)
    x = unravel(jnp.asarray(search.best.point))
    loss, constraint = (np.asarray(values) for values in each_round(objective.problem, objective.rounds, x, None))
    multiplier = search.multiplier
    squares, rounded = _rounding(search, x, loss, constraint)
    value, lower = np.asarray(loss.sum()), np.asarray((search.lower - rounded) * objective.horizon)
    if search.is_contradicted(rounded):
        raise ProblemError(
            f"the loss or a constraint is not convex, or the domain's lmo not exact: value {value:.6g} is below its "
            f"lower bound {lower:.6g}"
        )
    if not search.done or search.gap + rounded > search.precision:
        saved = search.saved * objective.horizon
        warnings.warn(
            f"hindsight stopped before its certificate closed ({why}): value {value:.8g}, lower bound {lower:.8g} "
            f"(gap {value + saved - lower:.2g}, of which rounding may be {rounded * objective.horizon:.2g}), "
            f"constraints exceeded by {search.best_violation:.2g} of their size, worth {saved:.2g} at the multipliers",
            stacklevel=3,
        )
    if objective.benchmark == "every_round":
        multiplier = objective.horizon * multiplier.reshape(objective.horizon, objective.problem.constraints)
    charged = prices(multiplier, squares)
    x, names = jax.tree.map(np.asarray, x), objective.problem.names
    return Comparator(x, loss, constraint, value, lower, multiplier, charged, names)


def _rounding(search, x, loss, constraint):
    """Squares of gradients at x, for prices, and how much of the lower bound may be rounding."""
    objective, point, multiplier = search.objective, search.best.point, search.multiplier
    rounds, expected = objective.horizon, objective.expected is not None
    charges = multiplier.reshape(rounds, -1) if objective.functions.each_round else multiplier / rounds
    weights = np.full((rounds, 1 + objective.problem.constraints), 1 / rounds)
    weights[:, 1:] = 0.0 if expected else charges
    squares, slopes = gradient_sizes(objective.problem, objective.rounds, x, weights)
    values = np.sum(weights * np.abs(np.column_stack([loss, constraint])))
    slopes = np.asarray(ravel_pytree(slopes)[0])
    if expected:
        values = values + multiplier @ np.abs(search.best.constraint)
        slopes = slopes + multiplier @ np.abs(objective.whole_jacobian(point))
    return squares, rounding(objective, search.oracle, (point, *search.proof.points), values, slopes)


def _check_convexity(objective, oracle, multiplier, bound):
    """A proof of infeasibility that some point contradicts shows that the constraints are not convex."""
    directions = np.random.default_rng(0).standard_normal((20, len(oracle.centre)))
    for point in (oracle.centre, *(oracle.lmo(direction) for direction in directions)):
        if multiplier @ objective.measure(point, np.zeros_like(multiplier)).constraint < 0.99 * bound:
            raise ProblemError("the constraints are not convex, or the domain's lmo is not exact; hindsight needs both")


def _infeasible(objective, multiplier, bound):
    names = objective.problem.names
    if objective.benchmark == "every_round":
        names = [f"{name} of round {t}" for t in range(objective.horizon) for name in names]
    largest = [i for i in np.argsort(-multiplier)[:3] if multiplier[i] > 1e-6]
    parts = " + ".join(f"{multiplier[i]:.3g} * {names[i]}" for i in largest)
    more = " + ..." if np.sum(multiplier > 1e-6) > len(largest) else ""
    kind = "" if objective.benchmark == "every_round" else ("expected " if objective.expected is not None else "mean ")
    if objective.benchmark == "every_round":
        multiplier = multiplier.reshape(objective.horizon, objective.problem.constraints)
    return InfeasibleError(
        f"no point of the domain meets the {kind}constraints: {parts}{more} >= {bound:.3g} everywhere; "
        "loosen them by at least this much",
        multiplier,
        float(bound),
    )


def _draw(problem, environment, horizon, key):
    if horizon is None or key is None:
        raise ProblemError("an Environment has no rounds of its own; give hindsight a horizon and a key")
    return drawn_for(problem, environment, horizon, key)
