"""Arithmetic that is written so that CPUs compute it fast says the same as the plain one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocoax.core import tree
from cocoax.core.compiling import one_kernel, own_program


@pytest.mark.parametrize("size", [1, 16, 17, 33, 100])
def test_the_smallest_entry_and_its_place_are_those_of_numpy(size):
    x = np.random.default_rng(size).integers(0, 5, size).astype(float)  # with ties
    for entries in (x, x[::-1], -x):
        assert tree.smallest(jnp.asarray(entries)) == entries.min()
        assert tree.argmin(jnp.asarray(entries)) == entries.argmin()


def test_the_place_of_the_smallest_entry_exists_where_one_is_not_a_number():
    x = jnp.arange(40.0).at[7].set(jnp.nan)
    assert jnp.isnan(tree.smallest(x))
    assert 0 <= tree.argmin(x) < x.size


def test_an_entry_is_put_into_its_place_in_a_kernel_too():
    stack, value = jnp.arange(12.0).reshape(4, 3), jnp.array([-1.0, -2.0, -3.0])
    expected = np.asarray(stack)
    expected = np.concatenate([expected[:2], value[None], expected[3:]])
    with own_program():
        in_kernel = jax.jit(one_kernel(tree.put))(stack, jnp.asarray(2), value)
    np.testing.assert_array_equal(in_kernel, expected)
    np.testing.assert_array_equal(tree.put(stack, 2, value), expected)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="loops of CPUs")
@pytest.mark.parametrize(("size", "in_order", "plain"), [(100, True, True), (100, False, False), (4096, True, False)])
def test_inner_products_and_minima_are_plain_where_sums_are_one_loop(size, in_order, plain):
    x = jnp.asarray(np.random.default_rng(0).integers(-9, 9, size).astype(float))
    with own_program(in_order):
        products = jax.make_jaxpr(lambda x: tree.dots(x, [x, 2 * x]))(x)
        minimum = jax.make_jaxpr(lambda x: tree.smallest(x))(x)  # traced anew
        np.testing.assert_array_equal(tree.dots(x, [x, 2 * x]), [x @ x, 2 * (x @ x)])
        assert tree.smallest(x) == x.min()
    assert str(products).count("dot_general[") == (2 if plain else 1)  # else of a matrix
    assert (len(minimum.eqns) == 1) == plain
