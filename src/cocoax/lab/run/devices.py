"""Games over all devices. Each device plays its share, without communication."""

import contextlib
import os
from typing import Any, NamedTuple

import filelock
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .cluster import DEVICE_LOCK

_SPLIT, _WHOLE = PartitionSpec("games"), PartitionSpec()


class Spread(NamedTuple):
    """Games stacked along a leading axis, which is split over the devices of the mesh, if there is one."""

    games: Any
    number: int  # of games; further ones repeat the last, so that all devices have equally many
    mesh: Mesh | None


def spread(games: list) -> Spread:
    """Over as many devices as help; over one device under `jax.default_device`."""
    devices = jax.local_devices() if jax.config.jax_default_device is None else [None]  # pyright: ignore
    per_device = -(-len(games) // len(devices))
    used = -(-len(games) // per_device)
    padded = games + [games[-1]] * (used * per_device - len(games))
    stacked = jax.tree.map(_stack, *padded)
    mesh = None if used == 1 else Mesh(np.array(devices[:used]), "games")
    return Spread(placed(stacked, None, mesh)[0], len(games), mesh)


def _stack(*leaves):
    """Plain arrays are stacked by NumPy, for which nothing is compiled."""
    return jnp.asarray(np.stack(leaves)) if all(map(_is_plain, leaves)) else jnp.stack(leaves)


def _is_plain(leaf):
    return isinstance(leaf, jax.Array) and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended) and not leaf.weak_type


def placed(games, shared, mesh: Mesh | None):
    """Put the games on the devices, split, and what they share on every device."""
    return (games, shared) if mesh is None else jax.device_put((games, shared), _shardings(mesh))


def by_device(function, mesh: Mesh | None):
    """`function(games, shared)`, compiled; each device calls it with its own games."""
    if mesh is None:
        return jax.jit(function)
    share = jax.shard_map(function, mesh=mesh, in_specs=(_SPLIT, _WHOLE), out_specs=_SPLIT, check_vma=False)
    return jax.jit(share, in_shardings=_shardings(mesh))


def _shardings(mesh):
    return NamedSharding(mesh, _SPLIT), NamedSharding(mesh, _WHOLE)


def device_turn():
    """One process at a time: an accelerator that several use at once is slower than one after the other."""
    file = os.environ.get(DEVICE_LOCK)
    return filelock.FileLock(file, poll_interval=0.002) if file else contextlib.nullcontext()
