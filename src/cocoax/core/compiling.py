"""Programs of whole games, compiled with options of XLA that give a first result sooner."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from . import tree

_OPTIONS: dict[str, dict[str, Any]] = {
    "cpu": {"xla_cpu_use_fusion_emitters": False},  # the older ones make kernels that run as fast, in half the time
    "cpu, once": {"xla_backend_optimization_level": 1},  # draws rounds as fast, but plays up to a fifth slower
    "cpu, short sums": {
        "xla_disable_hlo_passes": "tree_reduction_rewriter",  # it makes three kernels of a sum that could be one
        # The default orders kernels so that they may run side by side: small ones have too little work to share.
        "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    },
    "gpu": {"xla_gpu_enable_while_loop_double_buffering": True},  # two rounds at once: nothing is copied between them
    # A search for the fastest kernels takes longer than it saves in a game that is short.
    "gpu, once": {"xla_gpu_autotune_level": "0", "xla_gpu_enable_triton_gemm": "False"},
}
SHORT = 4095  # numbers: in float32, one loop then errs by 1.2 half units in the last place, a tree by 0.7 (30 seeds)


def quick_jit(
    function: Callable, *, once: bool = False, size: Callable[..., int] | None = None, **arguments: Any
) -> Callable:
    """`jax.jit(function, **arguments)`, which on CPUs compiles about twice as fast, to programs that run as fast; on
    GPUs it compiles a fifth slower, to programs whose loops run faster.

    With `once`, for what a game needs once, it compiles in half of that time again, to programs that may run slower.
    `size(*inputs)` is how many numbers a decision has: if they are few, each sum becomes one loop. Under another
    transformation it is `jax.jit` itself: options belong to the outermost program.

    >>> quick_jit(lambda x, power: x**power, static_argnums=1)(3.0, 2).item()
    9.0
    """
    plain = jax.jit(function, **arguments)

    @functools.cache
    def program(few):
        return jax.jit(function, compiler_options=options(once=once, short_sums=few), **arguments)

    @functools.wraps(function)
    def call(*inputs):
        if tree.is_traced(inputs) or _is_under_jit():
            return plain(*inputs)
        return program(size is not None and size(*inputs) <= SHORT)(*inputs)

    return call


def options(*, once: bool = False, short_sums: bool = False) -> dict[str, Any]:
    """What `quick_jit` asks of XLA: nothing on devices but CPUs and GPUs, and nothing that this XLA does not know."""
    device = jax.default_backend()
    of_once = _known(f"{device}, once") if once else {}
    of_sums = _known(f"{device}, short sums") if short_sums else {}
    return _known(device) | of_once | of_sums


@functools.cache
def _known(kind: str) -> dict[str, Any]:
    """All options of a kind, if this XLA knows them all."""
    asked = _OPTIONS.get(kind, {})
    try:
        jax.jit(lambda: None, compiler_options=asked).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return asked


def _is_under_jit() -> bool:
    """Also where no argument is traced."""
    return tree.is_traced(jax.device_put(np.float32(0)))
