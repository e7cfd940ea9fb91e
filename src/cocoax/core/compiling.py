"""Programs of whole games, compiled with options of XLA that give a first result sooner."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from . import tree
from .packing import forms, packed, unpacked
from .reductions import sums_are_short

_OPTIONS: dict[str, dict[str, Any]] = {
    "cpu": {
        "xla_cpu_use_fusion_emitters": False,  # the older ones make kernels that run as fast, in half the time
        "xla_cpu_parallel_codegen_split_count": 2,  # side by side; for many small kernels, more parts do not pay
    },
    "cpu, once": {"xla_backend_optimization_level": 1},  # draws rounds as fast, but plays up to a fifth slower
    "cpu, short sums": {
        "xla_disable_hlo_passes": "tree_reduction_rewriter",  # it makes three kernels of a sum that could be one
        # The default orders kernels so that they may run side by side: small ones have too little work to share.
        "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    },
    "gpu": {"xla_gpu_enable_while_loop_double_buffering": True},  # two rounds at once: nothing is copied between them
}
_REMEMBERED = 256  # forms of arguments


def quick_jit(function: Callable, *, once: bool = False, **arguments: Any) -> Callable:
    """`jax.jit(function, **arguments)`, which on CPUs compiles about twice as fast, to programs that run as fast; on
    GPUs it compiles a fifth slower, to programs whose loops run faster.

    With `once`, for what a game needs once, it compiles in half of that time again, to programs that may run slower.
    Under another transformation it is `jax.jit` itself: options belong to the outermost program.

    >>> quick_jit(lambda x, power: x**power, static_argnums=1)(3.0, 2).item()
    9.0
    """
    plain = jax.jit(function, **arguments)

    @functools.cache
    def own(in_order):
        @functools.wraps(function)
        def traced(*given):
            with own_program(in_order):
                return function(*given)

        return traced

    @functools.cache
    def program(in_order, options):
        return jax.jit(own(in_order), compiler_options=dict(options), **arguments)

    @functools.lru_cache(_REMEMBERED)
    def chosen(form):
        options = _options_once() if once else game_options(program(True, ()).trace(*form.given))
        return program(not once and options != quick_options(), tuple(options.items()))

    @functools.wraps(function)
    def call(*given):
        if tree.is_traced(given) or _is_under_jit() or not quick_options():
            return plain(*given)
        return chosen(_Form(given))(*given)

    return call


class _Form:
    """What a program is compiled for: to trace arguments of the same form again takes longer than a short game."""

    def __init__(self, given):
        leaves, structure = jax.tree.flatten(given)
        leaves = [_without_entries(leaf) if hasattr(leaf, "dtype") else leaf for leaf in leaves]
        self.given = jax.tree.unflatten(structure, leaves)
        self.key = structure, tuple((type(leaf), leaf) for leaf in leaves)

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return self.key == other.key


def _without_entries(array):
    of = jax.typeof(array)
    return jax.ShapeDtypeStruct(of.shape, of.dtype, weak_type=of.weak_type)


def game_options(traced: Any) -> dict[str, Any]:
    """The options with which `quick_jit` compiles a program, given `jax.jit(function).trace(...)` of it."""
    in_order = _on_cpu() and sums_are_short(traced.jaxpr)
    return quick_options() | (_known("cpu, short sums") if in_order else {})


def _options_once() -> dict[str, Any]:
    return quick_options() | _known("cpu, once") if _on_cpu() else {}


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def compiled_game(function: Callable, *given: Any, watch: Callable[[str], Any] = lambda step: None) -> Any:
    """A program that is compiled ahead as `quick_jit` would, for benchmarks; `watch` is told of each step's end."""
    for in_order in (True, False):
        with own_program(in_order):
            traced = jax.jit(lambda *given: function(*given)).trace(*given)  # a new one: traces are kept by function
        options = game_options(traced)
        if options != quick_options():
            break
    watch("trace")
    lowered = traced.lower()
    watch("lower")
    program = lowered.compile(compiler_options=options)
    watch("compile")
    return program


@contextlib.contextmanager
def own_program(in_order: bool = False) -> Iterator[None]:
    """Where a whole program is traced that cocoax compiles itself, and nobody transforms: `one_kernel` works there.

    `in_order`: it will be compiled with `game_options`, so that short sums are one loop.
    """
    outer = tree.in_own_program.set(True), tree.sums_in_order.set(in_order)
    try:
        yield
    finally:
        tree.in_own_program.reset(outer[0])
        tree.sums_in_order.reset(outer[1])


def quick_options() -> dict[str, Any]:
    """What `quick_jit` asks of XLA: nothing on devices but CPUs and GPUs, and nothing that this XLA does not know."""
    return _known(jax.default_backend())


@functools.cache
def _known(kind: str) -> dict[str, Any]:
    """All options of a kind, if this XLA knows them all: kernels of one call need the older ones."""
    options = _OPTIONS.get(kind, {})
    try:
        jax.jit(lambda: None, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options


def _is_under_jit() -> bool:
    """Also where no argument is traced."""
    return tree.is_traced(jax.device_put(np.float32(0)))


# The first is XLA's own, for small loops. Without the second, calls are inlined before kernels are made.
_MARKS = {"xla_cpu_small_call": "true", "inlineable": "false"}
_MOST = 512  # entries: to collect more would take longer than to launch kernels


def one_kernel(function: Callable) -> Callable:
    """`function`, which CPUs compute in one kernel: for a few numbers, to launch one takes longer than to run it.

    Only for arithmetic, entry by entry, and for sums and maxima of entries: products of matrices, sorts, scatters and
    callbacks cannot be compiled so. Arguments are PyTrees of arrays, of floats, booleans, or places of entries
    (integers up to 2^24, which a float holds). If they are large, or not stored entry by entry, it is `function`
    itself, and what it calls may be one kernel. It is also `function` itself outside of `own_program`: XLA ends the
    process where it cannot compile such a kernel, so users' transformations have none. Nor have modules whose class is
    not of cocoax, such as a user's subclass of a dual, unless the class itself says `arithmetic = True`.

    >>> with own_program():
    ...     one_kernel(lambda x, y: (x + y) / 2)(1.0, 2.0).item()
    1.5
    """

    def body(entries, structure, shapes):
        outer = tree.in_one_kernel.set(True)
        try:
            with set_xla_metadata(**dict.fromkeys(_MARKS)):  # what is inside has no marks
                return function(*jax.tree.unflatten(structure, unpacked(entries, shapes)))
        finally:
            tree.in_one_kernel.reset(outer)

    body.__name__ = function.__name__
    compiled = jax.jit(body, static_argnums=(1, 2))

    @functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
    def marked(entries, structure, shapes):
        with set_xla_metadata(**_MARKS):
            return compiled(entries, structure, shapes)

    @marked.defjvp
    def derivative(structure, shapes, primals, tangents):
        """Without marks: derivatives have more arguments than one."""
        return jax.jvp(lambda entries: body(entries, structure, shapes), primals, tangents)

    @functools.wraps(function)
    def call(*given):
        leaves, structure = jax.tree.flatten(given)
        may = tree.in_own_program.get() and _has_one_cpu() and _is_small(given) and all(map(_is_arithmetic, given))
        if tree.in_one_kernel.get() or not may:
            return function(*given)
        # One argument: if XLA finds that a kernel does not need one of several, it ends the process.
        return marked(packed(leaves), structure, forms(leaves))

    return call


def _has_one_cpu() -> bool:
    """Among several devices an array may be divided, and sums of its entries are then no arithmetic of one of them."""
    return _on_cpu() and jax.device_count() == 1


def _is_arithmetic(argument) -> bool:
    """Methods of users' classes may do what no kernel can."""
    kind = type(argument)
    return not isinstance(argument, eqx.Module) or vars(kind).get("arithmetic", kind.__module__.startswith("cocoax."))


def _is_small(given) -> bool:
    leaves = jax.tree.leaves(given, is_leaf=tree.is_element)
    return not any(map(tree.is_element, leaves)) and sum(map(jnp.size, leaves)) <= _MOST
