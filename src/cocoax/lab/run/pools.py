"""Where tasks run: in this process, in an executor of concurrent.futures, or on the workers of a Dask client."""

import concurrent.futures
import contextlib
import functools
import queue
import time
import uuid
import weakref
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from ...core import check
from ...errors import LabError
from ...learners.base import AbstractLearner
from ..arguments import error_text
from . import workbench
from .workbench import Workbench

_LOOK = 2.0  # seconds between two looks at which workers are there
_Task = TypeVar("_Task")


def pool_of(client: Any = None, executor: Any = None) -> "Here":
    """Where to work: at most one of the two is given."""
    if client is not None and executor is not None:
        raise LabError("give client= or executor=, not both")
    if client is not None:
        return Dask(client)
    if executor is None:
        return Here()
    needed = "executor must be one of concurrent.futures"
    return Executor(check.instance(executor, concurrent.futures.Executor, LabError, needed))


def completed(
    pool: "Here",
    take: Callable[[], _Task | None],
    submit: Callable[[_Task], Any],
    gone: Callable[[str], Any] = lambda name: None,
) -> Generator[tuple[_Task, Any]]:
    """Tasks with their futures, in the order in which they are done.

    `take` returns the next task that can begin, if there is one now. `gone` gets the names of workers that went away.
    """
    running, done = {}, queue.SimpleQueue()
    looked = time.monotonic()
    try:
        while True:
            while len(running) < pool.room and (task := take()) is not None:
                future = submit(task)
                running[future] = task
                future.add_done_callback(done.put)
            if not running:
                return
            with contextlib.suppress(queue.Empty):
                future = done.get(timeout=_LOOK)
                yield running.pop(future), future
            if time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                for name in pool.gone():
                    gone(name)
    finally:
        pool.cancel(running)


class Here:
    """This process, one task after the other."""

    room = 1  # tasks at a time
    split: int | None = None  # seeds whose comparators are one task

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """Of the processes that play, which are alike."""
        return workbench.facts()

    def submit(self, bench: Workbench, lane: int, what: str, *arguments: Any) -> Any:
        """A future of one task. Tasks of one lane share compiled programs."""
        return self.call(getattr(bench, what), *arguments)

    def call(self, function: Callable, *arguments: Any) -> Any:
        """A future of any function."""
        future = concurrent.futures.Future()
        future.set_result(function(*arguments))
        return future

    def share(self, data: Any) -> Any:
        """What stands for data in several calls; it travels once."""
        return data

    def gone(self) -> list[str]:
        """Names of workers that went away since the last call."""
        return []

    def death(self, error: BaseException) -> str | None:
        """What to say of a task if its workers died one after the other."""
        return None

    def cancel(self, futures: Iterable[Any]) -> None:
        """Give up what is still running."""


class Executor(Here):
    """An executor of concurrent.futures."""

    room, split = 256, 5

    def __init__(self, executor: Any):
        context = getattr(executor, "_mp_context", None)  # of a ProcessPoolExecutor
        if context is not None and context.get_start_method() == "fork":
            raise LabError(
                "processes that are forked wait for ever in JAX; give "
                'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
            )
        self._executor, self._expected = executor, workbench.settings()
        self._sent = weakref.WeakKeyDictionary[Workbench, Any]()  # what stands for a problem in tasks
        self._learner = functools.lru_cache(maxsize=64)(self.share)  # and for the bytes of a learner

    @functools.cached_property
    def facts(self):
        try:
            facts = self._executor.submit(workbench.facts).result()
        except Exception as error:
            raise LabError(f"the executor cannot work for cocoax: {error_text(error)}") from error
        workbench.check_settings(self._expected, facts, facts["host"])
        return facts

    def submit(self, bench, lane, what, *arguments):
        if bench not in self._sent:
            self._sent[bench] = self.share(_pickled(bench))
        # comparators are found on the CPU, so any worker may do that
        expected = self._expected | ({} if what == "compare" else {"device": self.facts["device"]})
        arguments = [self._learner(_pickled(part)) if isinstance(part, AbstractLearner) else part for part in arguments]
        return self._submit(lane, what, workbench.work, expected, self._sent[bench], what, *arguments)

    def call(self, function, *arguments):
        return self._submit(None, "call", function, *arguments)

    def _submit(self, lane, what, *arguments):
        options = self._placed(lane, what)
        try:
            return self._executor.submit(*arguments, **options)
        except Exception as error:  # it was shut down, or a process of its pool died
            raise LabError(
                f"the executor takes no more tasks: {error_text(error)}; what was finished is kept"
            ) from error

    def _placed(self, lane: int | None, what: str) -> dict[str, Any]:
        """What else the executor is told of a task."""
        return {}

    def cancel(self, futures):
        for future in futures:
            future.cancel()


class Dask(Executor):
    """The workers of a Dask client. Each lane has a worker that is asked first; others may take its tasks over."""

    room = 1000

    def __init__(self, client: Any):
        if not hasattr(client, "submit"):
            raise LabError(f"client must be that of a Dask cluster, got {client!r:.80}")
        super().__init__(client)
        self._client, self._names = client, {}
        self._players: list[str] = []  # addresses
        self._others: list[str] = []
        self._resources: dict[str, float] = {}

    @functools.cached_property
    def facts(self):
        """Of the workers that there are now. Those that come later are checked by their first task."""
        self._client.submit(workbench.settings, pure=False).result()  # an adaptive cluster starts a worker
        workers = self._workers()
        found = self._client.run(workbench.facts, workers=list(workers), on_error="return")
        for address, there in found.items():
            name = self._names[address]
            if isinstance(there, Exception):
                raise LabError(f"the worker {name} cannot work for cocoax: {error_text(there)}")
            workbench.check_settings(self._expected, there, name)
        with_gpu = [address for address in found if workers[address]["resources"].get("GPU")]
        self._resources = {"GPU": 1} if with_gpu else {}
        self._players = with_gpu or list(found)
        self._others = [address for address in found if address not in with_gpu] or self._players
        playing = [found[address] for address in self._players]
        if len({there["device"] for there in playing}) > 1:
            raise LabError(
                "some workers have an accelerator and others have none; start the first with --resources GPU=1"
            )
        limits = [workers[address]["memory_limit"] or playing[0]["bytes"] * 2 for address in self._players]
        return playing[0] | {"bytes": min(min(there["bytes"] for there in playing), min(limits) // 2)}

    def _placed(self, lane, what):
        _ = self.facts  # finds the workers
        first = self._players if what == "play" else self._others
        return {
            "key": f"{what}-{uuid.uuid4().hex}",
            "workers": first if lane is None else [first[lane % len(first)]],
            "allow_other_workers": True,
            "resources": self._resources if what == "play" else None,
            "priority": 1 if what == "compare" else 0,
        }

    def share(self, data):
        """To the scheduler, once; workers pass it on."""
        from dask import config

        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # Dask warns from 10 MB on
            return self._client.submit(_same, data, key=f"shared-{uuid.uuid4().hex}")

    def gone(self):
        before = self._names
        with contextlib.suppress(OSError):  # the scheduler is gone: the futures will tell
            self._workers()
        return [name for address, name in before.items() if address not in self._names]

    def _workers(self) -> dict[str, dict[str, Any]]:
        """What the scheduler knows of its workers, by address. (What the client keeps of them is empty for moments.)"""
        workers = self._client.sync(self._client.scheduler.identity)["workers"]
        self._names = {
            address: address if worker["name"] == address else f"{worker['name']} ({address})"
            for address, worker in workers.items()
        }
        return workers

    def death(self, error):
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            number = error.allowed_failures + 1
            return f"{number} workers died while they played it, the last was {error.last_worker.address}"
        if isinstance(error, concurrent.futures.CancelledError):
            raise LabError(
                "the scheduler of the cluster is gone; what was finished is kept, and a new run goes on (--resume)"
            ) from None
        return None

    def cancel(self, futures):
        if futures and self._client.status == "running":
            self._client.cancel(list(futures), force=True)


def _same(data):
    return data


def _pickled(part):
    """Problems and learners are pickled here, so that a worker knows one again by its bytes."""
    from .pickling import pickled  # which an executor needs, and this process alone does not

    return pickled(part)
