"""Small problems that every learner must be able to play."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..core import tree
from ..domains.base import AbstractDomain
from ..domains.composed.product import Product
from ..domains.matrices.nuclear_norm import NuclearNormBall
from ..domains.vectors.simplices import ProbabilitySimplex
from ..problem.problem import Problem, Regularity, Round


class Small(NamedTuple):
    """A problem and its rounds."""

    problem: Problem
    rounds: Round


def loss(x, round):
    """|x - target|^2 / 2 + <cost, x>."""
    round = tree.astype(round, tree.dtype(x))
    apart = tree.sub(x, round["target"])
    return tree.dot(apart, apart) / 2 + tree.dot(round["cost"], x)


def constraint(x, round):
    """<use_i, x> - budget_i for each i."""
    round = tree.astype(round, tree.dtype(x))
    return jax.vmap(lambda use: tree.dot(use, x))(round["use"]) - round["budget"]


def tracking(domain: AbstractDomain, *, key, rounds: int, constraints: int = 1) -> Small:
    """A problem with the `loss` and `constraint` above: follow random targets, within budgets that the start exceeds.

    Its regularity holds in the l2 and the linf norm if the domain contains the origin or is a simplex.
    """
    target_key, cost_key, use_key = jax.random.split(key, 3)
    data = {
        "target": _uniform(target_key, domain, rounds),
        "cost": _uniform(cost_key, domain, rounds),
        "use": _uniform(use_key, domain, rounds, constraints),
        "budget": jnp.full((rounds, constraints), -0.2),
    }
    entries, width = domain.dimension**0.5, domain.diameter(2)
    regularity = (
        Regularity(width + 2 * entries, 1.0, width * entries + 0.2),
        Regularity(width + 2, 1.0, width * entries + 0.2, norm=float("inf")),
    )
    return Small(Problem(domain, loss, constraint, constraints=constraints, regularity=regularity), data)


def simplex(*, key, rounds: int) -> Small:
    """`tracking` on a simplex in four dimensions, with one constraint."""
    return tracking(ProbabilitySimplex(4), key=key, rounds=rounds)


def nuclear(*, key, rounds: int) -> Small:
    """`tracking` on 5 x 4 matrices, with two constraints."""
    ball = NuclearNormBall((5, 4), radius=2.0, method="exact")
    return tracking(ball, key=key, rounds=rounds, constraints=2)


def product(*, key, rounds: int) -> Small:
    """`tracking` on pairs of a distribution and a matrix, with two constraints."""
    matrix = NuclearNormBall((3, 2), radius=2.0, method="exact")
    domain = Product({"matrix": matrix, "weights": ProbabilitySimplex(3)})
    return tracking(domain, key=key, rounds=rounds, constraints=2)


SMALL = {"simplex": simplex, "nuclear": nuclear, "product": product}


def _uniform(key, domain, *batch):
    """An array of entries uniform in [-1, 1], of shape (*batch, *domain.shape); a PyTree for a PyTree of shapes."""
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    keys = jax.random.split(key, len(shapes))
    drawn = [jax.random.uniform(k, (*batch, *shape), minval=-1.0) for k, shape in zip(keys, shapes)]
    return jax.tree.unflatten(structure, drawn)
