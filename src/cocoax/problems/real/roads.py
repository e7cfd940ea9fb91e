"""Road traffic in Sioux Falls: Beckmann's user equilibrium, within an emissions budget."""

from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...core.facts import ProblemFacts, with_facts
from ...data.stored import load
from ...domains import Flow, Product
from ...errors import ProblemError
from ...problem.problem import Problem, Round
from .recorded import RealInstance, generator
from .routes import candidate_routes

PUBLISHED = 4231.33528710744
"""The least value of Beckmann's objective for the demand as it is; in thousands of vehicles, hundredths of an hour."""

_EQUILIBRIUM = 1339.2417  # emissions of the user equilibrium, for the demand as it is
_B, _POWER = 0.15, 4  # of the volume-delay function, the same for all links
_GRAMS, _LENGTH = 0.2038, 0.7962  # of TRANSYT-7F's formula for emissions
_MINUTES = 0.6  # in a hundredth of an hour


class _Beckmann(eqx.Module):
    """The loss: Beckmann's objective for the flows of a decision."""

    flows: Callable  # from a decision to the flow on each link
    free: Float[Array, " links"]
    capacity: Float[Array, " links"]

    def __call__(self, x, r):
        flow, capacity = r["demand"] * self.flows(x), r["open"] * self.capacity.astype(r["open"].dtype)
        late = _B / (_POWER + 1) * (flow / capacity) ** _POWER
        return jnp.sum(self.free.astype(flow.dtype) * flow * (1 + late))


class _Emissions(eqx.Module):
    """The constraint: the emissions over the budget, less 1."""

    flows: Callable
    free: Float[Array, " links"]
    capacity: Float[Array, " links"]
    length: Float[Array, " links"]
    budget: Float[Array, ""]

    def __call__(self, x, r):
        flow = r["demand"] * self.flows(x)
        free, capacity, length, budget = (
            part.astype(flow.dtype) for part in (self.free, self.capacity, self.length, self.budget)
        )
        return emissions(flow, free, length, r["open"] * capacity) / budget - 1


class _OfRoutes(eqx.Module):
    """Link flows of a decision that has, for each route, its fraction of the demand."""

    uses: Float[Array, "links routes"]  # the demand, where a route uses a link

    def __call__(self, x):
        return self.uses.astype(x.dtype) @ x


class _OfOrigins(eqx.Module):
    """Link flows of a decision that has one flow per origin; edges to the sink come last and are left out."""

    links: int = eqx.field(static=True)

    def __call__(self, x):
        return sum(block[: self.links] for block in x)


def emissions(flow: Any, free: Any, length: Any, capacity: Any) -> Any:
    r"""$\sum_a v_a\,0.2038\,t_a\,e^{0.7962\,\ell_a/t_a}$: carbon monoxide by TRANSYT-7F, in minutes and kilometres.

    $t_a(v)$ is the time on a link with the flow v. The sum is convex in v, since $t \ge \ell$ here.
    """
    minutes = _MINUTES * free * (1 + _B * (flow / capacity) ** _POWER)
    return jnp.sum(flow * _GRAMS * minutes * jnp.exp(_LENGTH * _MINUTES * length / minutes))


@with_facts(ProblemFacts("a product of simplices", "real roads: user equilibrium within an emissions budget"))
def traffic(
    key: PRNGKeyArray | None = None,
    *,
    days: int = 500,
    budget: float | None = 1.02,
    routes: int | None = 8,
    varies: float = 0.1,
) -> RealInstance:
    r"""$f_t(x) = \sum_a\int_0^{v_a} t_a(s)\,ds$ with $t_a(v) = t^0_a(1 + 0.15(v/c_a)^4)$, where v are the link flows.

    Roads and trips of Sioux Falls (LeBlanc et al., 1975): 24 nodes, 76 links, 528 pairs; flows are in thousands. A
    decision has each route's fraction of its trips, for the `routes` shortest ones of each pair. The minimum is the
    user equilibrium, where nobody can arrive earlier by another route. With `routes=None` all routes are allowed: a
    decision is then one flow per origin, and LMOs are linear programs on the host. The data describe one day. On other
    days, demand and link capacities are multiplied by independent factors, $1 \pm$ `varies`, drawn with the key (one
    seed without a key).

    $g_t(x)$ is the emissions over the budget, less 1. `budget` is relative to the emissions of the equilibrium on the
    recorded day (`None`: no limit). As days vary, the equilibrium has 1.027 of these on average, and the least possible
    is 1.013. The multiplier is the toll that keeps the budget. Baselines: "shortest paths" (of an empty town) and "MSA"
    (successive averages): on day t, a fraction 1/t of the traffic moves to the routes that were fastest the day before.

    >>> instance = traffic(days=3, routes=2)
    >>> instance.baseline("MSA").constraint.shape
    (3, 1)
    """
    whole = days >= 1 and (routes is None or routes >= 1)
    if not (whole and 0 <= varies < 1 and (budget is None or budget > 0)):
        raise ProblemError(
            "traffic needs days and routes from 1 on, varies in [0, 1) and a positive budget, got "
            f"{days}, {routes}, {varies}, {budget}"
        )
    tables = load("sioux_falls")
    net = tables["links"]
    roads = {"free": jnp.asarray(net["free_flow_time"], float), "capacity": jnp.asarray(net["capacity"] / 1e3, float)}
    domain, flows = town() if routes is None else _by_routes(tables, routes)
    loss, emitted = _Beckmann(flows, **roads), None
    if budget is not None:
        limit, length = jnp.asarray(budget * _EQUILIBRIUM, float), jnp.asarray(net["length"], float)
        emitted = _Emissions(flows, **roads, length=length, budget=limit)
    rng = generator(key)
    rounds = {
        "demand": rng.uniform(1 - varies, 1 + varies, days),
        "open": rng.uniform(1 - varies, 1 + varies, (days, len(net["tail"]))),
    }
    problem = Problem(domain, loss, emitted, constraints=1 if emitted is None else "emissions")
    return RealInstance(problem, rounds, MSA=successive_averages, **{"shortest paths": _shortest})


def _by_routes(tables, count):
    """(domain, link flows of a decision) with the `count` shortest routes of each pair."""
    net, trips = tables["links"], tables["trips"]
    demands = {"source": trips["origin"] - 1, "target": trips["destination"] - 1, "amount": trips["trips"] / 1e3}
    found = candidate_routes(np.stack([net["tail"], net["head"]], 1) - 1, net["free_flow_time"], demands, count)
    return found.domain(), _OfRoutes(jnp.asarray(found.uses * found.amount[found.owner], float))


def town() -> tuple[Product, _OfOrigins]:
    """(domain, link flows of a decision) with all routes: one flow per origin, in thousands.

    From each destination, an edge of its own leads to a common sink.
    """
    tables = load("sioux_falls")
    net, trips = tables["links"], tables["trips"]
    links, nodes = np.stack([net["tail"], net["head"]], 1) - 1, net["tail"].max()
    blocks = []
    for origin in range(nodes):
        own = trips["origin"] - 1 == origin
        ends, demand = trips["destination"][own] - 1, trips["trips"][own] / 1e3
        edges = np.concatenate([links, np.stack([ends, np.full(len(ends), nodes)], 1)])
        capacity = np.concatenate([np.full(len(links), demand.sum()), demand])
        blocks.append(Flow(edges, source=origin, sink=nodes, value=demand.sum(), capacity=capacity))
    return Product(tuple(blocks)), _OfOrigins(len(links))


def link_flows(problem: Problem, x: Any) -> Any:
    """The flow on each link, in thousands, where the demand is as usual."""
    return cast(_Beckmann, problem.loss).flows(jax.tree.map(jnp.asarray, x))


def _fastest(problem, x, r):
    """The decision with all trips on the routes that are fastest at the flows of x (by an LMO)."""
    return problem.domain.lmo(problem.gradients(x, r)[0]).dense()


def _shortest(problem, rounds):
    nobody = jax.tree.map(jnp.zeros_like, problem.domain.start())
    return _fastest(problem, nobody, jax.tree.map(lambda column: column[0], rounds))


def successive_averages(problem: Problem, rounds: Round) -> Any:
    r"""Baseline: $x_{t+1} = x_t + \frac{1}{t+1}(y_t - x_t)$, where $y_t$ has all trips on day t's fastest routes.

    Returns one x per day.
    """

    def one_day(x, today):
        day, r = today
        y = _fastest(problem, x, r)
        return jax.tree.map(lambda old, new: old + (new - old) / (day + 1), x, y), x

    days = jnp.arange(1, len(rounds["demand"]) + 1, dtype=float)
    return jax.lax.scan(one_day, _shortest(problem, rounds), (days, rounds))[1]
