"""Vertices that take little memory add up as their dense forms do."""

import jax
import numpy as np
import pytest

import cocoax as cx
from cocoax.domains.base import AbstractVertex

DOMAINS = {
    "one entry": cx.domains.ProbabilitySimplex(7),
    "one entry of a matrix": cx.domains.L1Ball((3, 4), 2.0),
    "signs": cx.domains.LinfBall(5, 2.0),
    "several entries": cx.domains.KSparse(6, 2, 3.0),
    "rank one": cx.domains.NuclearNormBall((3, 4), 2.0),
    "a product": cx.domains.Product({"a": cx.domains.ProbabilitySimplex(3), "b": cx.domains.LinfBall(2, 1.0)}),
}


def stacked(domain, count):
    """`count` of its vertices; among so many, some are the same."""
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape), float), domain.vertex().dense())
    leaves, structure = jax.tree.flatten(shapes)
    drawn = [jax.random.normal(jax.random.key(k), leaf.shape) for k, leaf in enumerate(leaves)]
    return jax.vmap(domain.lmo)(jax.tree.unflatten(structure, drawn))


def close(mine, theirs):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12), mine, theirs)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("count", [1, 5, 17])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_combination_is_that_of_the_dense_forms(name, count, lead):
    vertices = stacked(DOMAINS[name], count)
    weights = jax.random.normal(jax.random.key(9), (*lead, count))
    close(vertices.combine(weights), AbstractVertex.combine(vertices, weights))
