"""Threads beside an accelerator: what the next games need is made while it plays. On CPUs everything has its turn."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

import jax

_COMPILING, _DRAWING = 4, 4
_T = TypeVar("_T")


def ahead(items: Iterator[_T]) -> Iterator[_T]:
    """The same items, the next of which is made meanwhile."""
    if jax.default_backend() == "cpu":
        yield from items
        return
    with _pool(1) as pool:
        following = _submitted(pool, lambda: next(items, None))
        while (item := following.result()) is not None:
            following = _submitted(pool, lambda: next(items, None))
            yield item


def all_drawn(draw: Callable[[int], _T], seeds: Iterable[int]) -> list[_T]:
    """Several at a time."""
    if jax.default_backend() == "cpu":
        return [draw(seed) for seed in seeds]
    with _pool(_DRAWING) as pool:
        return [job.result() for job in [_submitted(pool, functools.partial(draw, seed)) for seed in seeds]]


def compiled_first(jobs: Mapping[Any, Callable[[], Callable[[], Any]]]) -> Iterator:
    """The names of jobs, each of which traces a program and returns what compiles it, as they are compiled.

    Programs are compiled while others are traced. On CPUs nothing is done.
    """
    if jax.default_backend() == "cpu":
        return iter(jobs)
    pool = ThreadPoolExecutor(_COMPILING)
    compiling = {_submitted(pool, _traced(job)): name for name, job in jobs.items()}
    pool.shutdown(wait=False)
    return (compiling[done] for done in as_completed(compiling))


def _traced(job) -> Callable[[], Any]:
    try:
        return job()
    except Exception:  # will be met again when it is played
        return lambda: None


@contextlib.contextmanager
def _pool(threads):
    """Whoever stops early does not wait for what nobody needs any more."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _submitted(pool, job) -> Future[Any]:
    """The job under this thread's settings of JAX."""
    settings = [
        (jax.enable_x64, "jax_enable_x64"),
        (jax.default_device, "jax_default_device"),
        (jax.default_prng_impl, "jax_default_prng_impl"),
        (jax.threefry_partitionable, "jax_threefry_partitionable"),
        (jax.default_matmul_precision, "jax_default_matmul_precision"),
    ]
    here = [(setting, getattr(jax.config, name)) for setting, name in settings]

    def done():
        with contextlib.ExitStack() as stack:
            for setting, value in here:
                stack.enter_context(setting(value))
            return job()

    return pool.submit(done)
