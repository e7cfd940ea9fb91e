"""Orders shipped along a path: from a warehouse with limited stock, over a hub, to the customer."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..domains import ShortestPath
from ..errors import ProblemError
from ..problem.environment import Sampler
from ..problem.problem import Problem
from .base import Instance

_OUTSOURCED = 2.0  # what it costs to have an order shipped by others


def _loss(x, r):
    return jnp.vdot(r["cost"], x)


class _Stock(eqx.Module):
    """The constraint: what is shipped from each warehouse, less its stock per round."""

    warehouses: int = eqx.field(static=True)

    def __call__(self, x, r):
        return r["size"] * x[: self.warehouses] - r["stock"]


class _Orders(eqx.Module):
    """Draws rounds with the fields `cost` (of every edge), `size` and `stock`."""

    stock: Float[Array, " warehouses"]
    hub: Float[Array, "warehouses hubs"]  # what the way from a warehouse to a hub costs

    def __call__(self, key):
        size_key, near_key, far_key = jax.random.split(key, 3)
        warehouses, hubs = self.hub.shape
        size = jax.random.uniform(size_key, dtype=float, minval=0.5, maxval=1.5)
        near = jax.random.uniform(near_key, (warehouses, hubs), dtype=float, minval=0.5, maxval=1.5) * self.hub
        far = jax.random.uniform(far_key, (hubs,), dtype=float)
        outsourced = jnp.array([_OUTSOURCED, 0.0], dtype=far.dtype)
        cost = jnp.concatenate([jnp.zeros(warehouses, far.dtype), near.reshape(-1), far, outsourced])
        return {"cost": size * cost, "size": size, "stock": self.stock}


@with_facts(ProblemFacts("paths from warehouses over hubs", "orders and limited stock, decided after a request"))
def fulfilment(key: PRNGKeyArray, *, warehouses: int = 4, hubs: int = 3, stock: Any = 0.7) -> Instance:
    r"""$f_t(x) = \langle c_t, x\rangle$ over paths, and $g_{t,w}(x) = s_tx_w - \rho_w$ for each warehouse w.

    An order of size $s_t$ is shipped from one of the `warehouses` over one of the `hubs`, or by another company at a
    high price. The costs of all paths are known when the order comes. `stock` is the share of all orders that the
    warehouses can ship; it is not divided equally among them. An answer is one path, and takes one LMO.

    >>> import jax
    >>> instance = fulfilment(jax.random.key(0))
    >>> instance.problem.domain.shape, instance.problem.constraints
    ((21,), 4)
    """
    if warehouses < 1 or hubs < 1 or not stock > 0:
        raise ProblemError(
            f"fulfilment needs warehouses >= 1, hubs >= 1 and stock > 0, got {warehouses}, {hubs} and {stock}"
        )
    first_hub, others = 1 + warehouses, 1 + warehouses + hubs
    customer = others + 1
    edges = [(0, 1 + w) for w in range(warehouses)]
    edges += [(1 + w, first_hub + h) for w in range(warehouses) for h in range(hubs)]
    edges += [(first_hub + h, customer) for h in range(hubs)]
    edges += [(0, others), (others, customer)]
    hub_key, stock_key = jax.random.split(key)
    shares = jax.random.uniform(stock_key, (warehouses,), dtype=float, minval=0.5, maxval=1.5)
    hub_costs = jax.random.uniform(hub_key, (warehouses, hubs), dtype=float, minval=0.2, maxval=1.0)
    problem = Problem(
        ShortestPath(edges, source=0, sink=customer),
        _loss,
        _Stock(warehouses),
        constraints=warehouses,
        request=True,
        integral=True,
    )
    return Instance(problem, Sampler(_Orders(stock * shares / shares.sum(), hub_costs)), None, None)
