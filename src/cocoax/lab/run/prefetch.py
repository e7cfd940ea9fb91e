"""The parts of a study, each prepared while the part before it is played.

Beside an accelerator, threads draw instances and compile programs ahead. On CPUs everything is done in order.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax

from ..arguments import check_rounds, naming_problem
from ..sources import Drawn
from .batch import Batch, chunk_size, traced_for
from .progress import Reporter

if TYPE_CHECKING:
    from ..study import Study

_COMPILING, _DRAWING = 4, 4  # threads
_T = TypeVar("_T")
Seeds = tuple[int, ...]


class Planned(NamedTuple):
    """One game of a study, and the key of its result in the store."""

    problem: str
    learner: str
    horizon: int
    seed: int
    key: str


class Part(NamedTuple):
    """Instances of one problem that fit into memory together, and the games on them."""

    problem: str
    keys: dict[tuple[str, Seeds], dict[int, dict[int, str]]]  # of games: by (learner, seeds), horizon, and seed
    order: Iterator[tuple[str, Seeds]]  # in which they are played
    drawn: dict[int, Drawn]
    stacked: Callable[[Seeds], Batch]


def prefetch(items: Iterator[_T]) -> Iterator[_T]:
    """The same items; beside an accelerator, the next item is made while one is used."""
    if jax.default_backend() == "cpu":
        yield from items
        return
    with _pool(1) as pool:
        following = _submit(pool, lambda: next(items, None))
        while (item := following.result()) is not None:
            following = _submit(pool, lambda: next(items, None))
            yield item


def parts(study: "Study", missing: list[Planned], reporter: Reporter) -> Iterator[Part]:
    """The missing games by problem, and by as many instances as fit into memory."""
    for name in dict.fromkeys(game.problem for game in missing):
        games = [game for game in missing if game.problem == name]
        source, longest = study.sources[name], max(study.horizons[name])
        with naming_problem(name):
            first = source.draw(games[0].seed, longest)
        check_rounds(name, first, longest)
        size = chunk_size(first, longest)

        def draw(seed, first=first, first_seed=games[0].seed, source=source, longest=longest):
            return first if seed == first_seed else source.draw(seed, longest)

        for i in range(0, len(study.seeds), size):
            chunk = set(study.seeds[i : i + size])
            keys = _keys([game for game in games if game.seed in chunk])
            if not keys:
                continue
            jobs = {
                (learner, group): functools.partial(
                    traced_for, first, len(group), study.learner(learner, name), list(T)
                )
                for (learner, group), T in keys.items()
            }
            order, seeds = _compile_ahead(jobs), sorted({seed for _, group in keys for seed in group})
            reporter.now(f"{name}: drawing {len(seeds)} instances")
            with naming_problem(name):
                drawn = dict(zip(seeds, _draw_all(draw, seeds)))
            stacked = functools.cache(lambda chosen, drawn=drawn: Batch([drawn[seed] for seed in chosen], chosen))
            stacked(next(iter(keys))[1])  # stack the first batch ahead, too
            yield Part(name, keys, order, drawn, stacked)


def _keys(games: list[Planned]) -> dict[tuple[str, Seeds], dict[int, dict[int, str]]]:
    """As `Part` has them: the horizons of a learner that miss the same seeds share a batch."""
    by_learner_and_horizon: dict[tuple[str, int], dict[int, str]] = {}
    for game in games:
        by_learner_and_horizon.setdefault((game.learner, game.horizon), {})[game.seed] = game.key
    keys = {}
    for (learner, horizon), by_seed in by_learner_and_horizon.items():
        keys.setdefault((learner, tuple(sorted(by_seed))), {})[horizon] = dict(sorted(by_seed.items()))
    return keys


def _draw_all(draw: Callable[[int], _T], seeds: Iterable[int]) -> list[_T]:
    if jax.default_backend() == "cpu":
        return [draw(seed) for seed in seeds]
    with _pool(_DRAWING) as pool:
        return [job.result() for job in [_submit(pool, functools.partial(draw, seed)) for seed in seeds]]


def _compile_ahead(jobs: Mapping[Any, Callable[[], Callable[[], Any]]]) -> Iterator:
    """The names of the jobs, in the order in which they are compiled.

    A job traces a program and returns the function that compiles it, so that threads compile while this one traces. On
    CPUs nothing is compiled ahead.
    """
    if jax.default_backend() == "cpu":
        return iter(jobs)
    pool = ThreadPoolExecutor(_COMPILING)
    compiling = {_submit(pool, _trace(job)): name for name, job in jobs.items()}
    pool.shutdown(wait=False)
    return (compiling[done] for done in as_completed(compiling))


def _trace(job) -> Callable[[], Any]:
    try:
        return job()
    except Exception:  # will be raised again when it is played
        return lambda: None


@contextlib.contextmanager
def _pool(threads):
    """A caller that stops early does not wait for jobs that nobody needs any more."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _submit(pool, job) -> Future[Any]:
    """Run the job in a thread, under this thread's settings of JAX."""
    settings = [
        (jax.enable_x64, "jax_enable_x64"),
        (jax.default_device, "jax_default_device"),
        (jax.default_prng_impl, "jax_default_prng_impl"),
        (jax.threefry_partitionable, "jax_threefry_partitionable"),
        (jax.default_matmul_precision, "jax_default_matmul_precision"),
    ]
    here = [(setting, getattr(jax.config, name)) for setting, name in settings]

    def run():
        with contextlib.ExitStack() as stack:
            for setting, value in here:
                stack.enter_context(setting(value))
            return job()

    return pool.submit(run)
