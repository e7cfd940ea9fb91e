"""Calls of NumPy code on the host, out of compiled programs."""

import jax
import jax.numpy as jnp
import numpy as np


def callback(function, answer, *arguments, vmap_method):
    """`jax.pure_callback` that keeps 64 bits: `function` receives NumPy arrays, and its answer is cast to `answer`.

    XLA calls the host on threads of its own, where `jax.enable_x64`, which is local to a thread, is not set: JAX
    would round arguments and answers to 32 bits there. So 64-bit numbers travel as pairs of 32-bit ones.
    """
    leaves, structure = jax.tree.flatten(arguments)
    dtypes = [np.dtype(leaf.dtype) if _is_wide(leaf) else None for leaf in leaves]

    def call(*received):
        decoded = [_from_pairs(np.asarray(leaf), dtype) for leaf, dtype in zip(received, dtypes)]
        results = function(*jax.tree.unflatten(structure, decoded))
        return jax.tree.map(_to_promised, results, answer)

    sent = [
        leaf if dtype is None else jax.lax.bitcast_convert_type(leaf, jnp.uint32) for leaf, dtype in zip(leaves, dtypes)
    ]
    promised = jax.tree.map(_as_pairs, answer)
    returned = jax.pure_callback(call, promised, *sent, vmap_method=vmap_method)
    return jax.tree.map(
        lambda leaf, like: jax.lax.bitcast_convert_type(leaf, like.dtype) if _is_wide(like) else leaf, returned, answer
    )


def _is_wide(leaf):
    return str(leaf.dtype) in ("float64", "int64", "uint64")


def _as_pairs(like):
    return jax.ShapeDtypeStruct((*like.shape, 2), jnp.uint32) if _is_wide(like) else like


def _from_pairs(leaf, dtype):
    return leaf if dtype is None else np.ascontiguousarray(leaf).view(dtype)[..., 0]


def _to_promised(leaf, like):
    leaf = np.array(leaf, like.dtype, order="C")
    return leaf[..., None].view(np.uint32) if _is_wide(like) else leaf
