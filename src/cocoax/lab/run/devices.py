"""Games over all devices: each plays its share, and waits for no other."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

_SPLIT, _WHOLE = PartitionSpec("games"), PartitionSpec()


class Spread(NamedTuple):
    """Games stacked along a leading axis, which is split over the devices of the mesh, if there is one."""

    games: Any
    number: int  # of games; those after them repeat the last, so that all devices have equally many
    mesh: Mesh | None


def spread(games: list) -> Spread:
    """Over as many devices as make it faster; over one under `jax.default_device`."""
    devices = jax.local_devices() if jax.config.jax_default_device is None else [None]  # pyright: ignore
    each = -(-len(games) // len(devices))
    used = -(-len(games) // each)
    repeated = games + [games[-1]] * (used * each - len(games))
    stacked = jax.tree.map(_stacked, *repeated)
    mesh = None if used == 1 else Mesh(np.array(devices[:used]), "games")
    return Spread(placed(stacked, None, mesh)[0], len(games), mesh)


def _stacked(*leaves):
    """Plain arrays in NumPy, for which nothing is compiled."""
    return jnp.asarray(np.stack(leaves)) if all(map(_plain, leaves)) else jnp.stack(leaves)


def _plain(leaf):
    return isinstance(leaf, jax.Array) and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended) and not leaf.weak_type


def placed(games, shared, mesh: Mesh | None):
    """The games split over the devices, and what they share on all of them."""
    return (games, shared) if mesh is None else jax.device_put((games, shared), _shardings(mesh))


def by_device(function, mesh: Mesh | None):
    """`function(games, shared)`, called on each device with the games that lie there."""
    if mesh is None:
        return jax.jit(function)
    share = jax.shard_map(function, mesh=mesh, in_specs=(_SPLIT, _WHOLE), out_specs=_SPLIT, check_vma=False)
    return jax.jit(share, in_shardings=_shardings(mesh))


def _shardings(mesh):
    return NamedSharding(mesh, _SPLIT), NamedSharding(mesh, _WHOLE)
