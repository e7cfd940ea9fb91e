"""Calls to the host keep what they were promised: dtypes and all 64 bits, on whatever thread they run."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from cocoax.core import host


def test_shapes_and_dtypes_under_vmap():
    answer = jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct((2,), jnp.float32)

    def on_host(x, i):
        assert x.dtype == np.float64 and i.dtype == np.int64
        return np.float32(x.sum(-1) + i), np.stack([x[..., 0], x[..., 0]], -1)

    def call(x, i):
        return host.callback(on_host, answer, x, i, vmap_method="expand_dims")

    x, i = jnp.arange(6.0).reshape(2, 3), jnp.array([10, 20])
    one, many = jax.jit(call)(x[0], i[0]), jax.jit(jax.vmap(call))(x, i)
    assert [leaf.dtype for leaf in one] == [leaf.dtype for leaf in many] == [jnp.float64, jnp.float32]
    assert one[0].shape == () and float(one[0]) == 13.0
    np.testing.assert_array_equal(many[0], [13.0, 32.0])
    np.testing.assert_array_equal(many[1], [[0, 0], [3, 3]])


SCRIPT = """
import jax, jax.numpy as jnp, numpy as np, cocoax as cx
edges, count = [[0, 1], [0, 2], [1, 3], [2, 3], [1, 2]], 24
domain = cx.domains.Product([cx.domains.Flow(edges, source=0, sink=3)] * count)
problem = cx.Problem(domain, lambda x, r: jnp.sum(r["cost"] * (sum(x) / count) ** 2))
rounds = {"cost": jnp.ones((3, 5))}
game = cx.play(problem, cx.learners.PrimalDual(cx.primal.AdaOFW(), cx.dual.PI()), rounds, key=jax.random.key(0))
assert game.loss.dtype == jnp.float32 and bool(jnp.isfinite(game.loss).all())
with jax.enable_x64(True):
    near = np.array([1.0, 1.0 + 1e-9, 1.0, 1.0, 5.0])  # float32 cannot see which path is shorter
    ways = [jax.tree.map(jnp.asarray, [way] * count) for way in (near, near[[1, 0, 3, 2, 4]])]
    paths = [jax.jit(lambda way: domain.lmo(way).dense())(way) for way in ways]
    assert all(block.dtype == jnp.float64 for block in paths[0])
    assert all(a[0] == 1 and b[1] == 1 for a, b in zip(*paths))
best = cx.hindsight(problem, rounds)
assert best.gap <= 1e-6 and best.x[0].dtype == np.float64
"""


def test_a_default_process_plays_a_product_of_24_flows_and_solves_it_in_float64():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
