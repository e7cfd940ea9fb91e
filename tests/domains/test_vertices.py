"""Vertices that take little memory add up as their dense forms do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.core.compiling import one_kernel, own_program
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


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("count", [1, 5, 17])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_combination_is_that_of_the_dense_forms(name, count, lead, backend, monkeypatch):
    vertices = stacked(DOMAINS[name], count)
    weights = jax.random.normal(jax.random.key(9), (*lead, count))
    dense = AbstractVertex.combine(vertices, weights)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    close(vertices.combine(weights), dense)


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("name", ["one entry", "one entry of a matrix"])
def test_it_is_the_same_in_one_kernel(name, count):
    vertices, weights = stacked(DOMAINS[name], 5), jnp.linspace(-1.0, 1.0, 5)
    few = jax.tree.map(lambda leaf: leaf[:count], vertices)
    with own_program():
        found = one_kernel(lambda own, weights: own.combine(weights))(few, weights[:count])
    close(found, few.combine(weights[:count]))
