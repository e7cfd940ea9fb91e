"""Telecom routing: short paths through a backbone, within a traffic budget for every link."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ...core import check
from ...core.facts import ProblemFacts, with_facts
from ...data.stored import load
from ...errors import ProblemError
from ...problem.problem import Problem
from .recorded import RealInstance, always, generator
from .routes import both_ways, candidate_routes

BUDGETS = {"abilene": 0.85, "germany50": 0.8}
"""Budgets that bind: parts of the load of the busiest link, where all traffic takes the shortest path."""

_COLUMNS = {"links": ("source", "target", "length"), "demands": ("source", "target", "amount")}
_BUDGET = 0.9  # for tables of the user's own
_DAY = 24
_SWING = 0.4  # of the traffic over the day, around its mean
_NOISE = 0.3  # standard deviation of the logarithm of a demand


class _Length(eqx.Module):
    """The loss: traffic times length, over all paths."""

    owner: Int[Array, " paths"]  # the demand that a path is for
    lengths: Float[Array, " paths"]

    def __call__(self, x, r):
        return jnp.vdot(r["demand"][self.owner] * self.lengths.astype(x.dtype), x)


class _Loads(eqx.Module):
    """The constraints: each link's load over the budget, less 1."""

    owner: Int[Array, " paths"]
    uses: Float[Array, "links paths"]  # 1 where a path uses a link
    budget: Float[Array, ""]

    def __call__(self, x, r):
        return self.uses.astype(x.dtype) @ (r["demand"][self.owner] * x) / self.budget.astype(x.dtype) - 1


@with_facts(ProblemFacts("a product of simplices", "real backbones: short routes, a budget of traffic a link"))
def telecom(
    key: PRNGKeyArray | None = None,
    *,
    data: Any = "abilene",
    hours: int = 2000,
    budget: float | None = None,
    paths: int = 4,
    folder: Any = None,
) -> RealInstance:
    r"""$f_t(x) = \sum_p d_{t,p}\ell_px_p$ and $g_{t,a}(x) = \sum_{p\ni a} d_{t,p}x_p/\rho - 1$ for every link a.

    $x_p$ is the fraction of a demand that takes the path p, one of its `paths` shortest ones. Lengths are in units of
    the mean shortest path, and traffic in units of all traffic: f is 1 if traffic is as usual and all of it takes the
    shortest path. On average over time every link, in each direction, may carry $\rho$: `budget`, as a fraction of the
    load of the busiest link under shortest paths (by default `BUDGETS`, and 0.9 for your own tables).

    `data` is "abilene", "germany50" (`cocoax data fetch` gets them), or tables of the same form. They have one amount
    for each demand. In an hour the demand is this amount times a daily wave and noise, drawn with the key (one seed
    without a key). Baselines, both without regard to the budget: "shortest path", and "ECMP", equal parts along the
    paths with the fewest links.

    >>> links = {"source": np.array([0, 1, 2]), "target": np.array([1, 2, 0]), "length": np.array([1.0, 1.0, 1.5])}
    >>> demands = {"source": np.array([0, 0]), "target": np.array([1, 2]), "amount": np.array([3.0, 1.0])}
    >>> instance = telecom(data={"links": links, "demands": demands}, hours=48)
    >>> bool(instance.baseline("shortest path").constraint.mean(0).max() > 0)
    True
    """
    if isinstance(data, str) and data not in BUDGETS:
        raise ProblemError(f"data must be {' or '.join(map(repr, BUDGETS))}, or tables like theirs, got {data!r}")
    if budget is None:
        budget = BUDGETS[data] if isinstance(data, str) else _BUDGET
    hours, paths = check.whole(hours, "hours", ProblemError), check.whole(paths, "paths", ProblemError)
    if hours < 1 or paths < 1 or not check.scalar(budget, "budget", ProblemError) > 0:
        raise ProblemError(f"telecom needs hours >= 1, paths >= 1 and a budget > 0, got {hours}, {paths}, {budget}")
    tables = load(data, folder) if isinstance(data, str) else _own_tables(data)
    routes = candidate_routes(*both_ways(tables["links"]), tables["demands"], paths)
    usual = routes.amount / routes.amount.sum()
    loads = routes.uses @ (usual[routes.owner] * routes.shortest)
    mean = usual @ routes.lengths[routes.shortest > 0]
    owner = jnp.asarray(routes.owner)
    problem = Problem(
        routes.domain(),
        _Length(owner, jnp.asarray(routes.lengths / mean, float)),
        _Loads(owner, jnp.asarray(routes.uses, float), jnp.asarray(budget * loads.max(), float)),
        constraints=tuple(f"link_{tail}_{head}" for tail, head in routes.links),
    )
    wave = 1 - _SWING * np.cos(2 * np.pi * np.arange(hours) / _DAY)
    noise = np.exp(_NOISE * generator(key).normal(size=(hours, len(usual))) - _NOISE**2 / 2)
    rounds = {"demand": wave[:, None] * noise * usual}
    baselines = {"shortest path": always(routes.shortest), "ECMP": always(routes.equal_cost)}
    return RealInstance(problem, rounds, **baselines)


def _own_tables(data: Any) -> dict[str, dict[str, np.ndarray]]:
    """The user's own tables, checked; a `ProblemError` says what is wrong with them."""
    tables: dict[str, dict[str, np.ndarray]] = {}
    for table, names in _COLUMNS.items():
        try:
            tables[table] = {name: check.real(data[table][name], f"{table} {name}", ProblemError) for name in names}
        except (KeyError, IndexError, TypeError):
            raise ProblemError(f"telecom needs a table {table!r} with the columns {', '.join(names)}") from None
        first, second, size = tables[table].values()
        if {first.shape, second.shape} != {size.shape} or size.ndim != 1 or not size.size:
            raise ProblemError(f"the columns of {table} must have one length, at least 1")
        if not (np.isfinite(size).all() and (size > 0).all()):
            raise ProblemError(f"each {names[2]} in {table} must be positive and finite")
        for name in names[:2]:
            if not (np.mod(tables[table][name], 1) == 0).all() or tables[table][name].min() < 0:
                raise ProblemError(f"nodes are whole numbers from 0 on; number them in {table}, {name}")
            tables[table][name] = tables[table][name].astype(int)
    return tables
