"""Dask clusters for the command line: processes on this machine, or a scheduler elsewhere."""

import concurrent.futures
import contextlib
import functools
import importlib.util
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...errors import LabError

_LOOPBACK = "127.0.0.1"
_SHARED = (  # settings of JAX that workers take over, beside those that results depend on
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
)
DEVICE_LOCK = "COCOAX_DEVICE_LOCK"  # environment variable: the file that processes lock which share an accelerator
_FASTER = {  # by default Dask gives memory back after every batch, and looks 100 times a second at what workers do
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26,  # what glibc itself adapts to
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
    "distributed.worker.profile.enabled": False,
}


@contextlib.contextmanager
def started(workers: int | None, address: str | None) -> Iterator[Callable[[], Any]]:
    """A function that returns a Dask client, or None where this process works alone.

    The cluster starts in the background, while the caller loads the study. When the function is called, the workers of
    one's own cluster get the settings that JAX has then.
    """
    devices = gpus()
    if workers is not None and address is not None:
        raise LabError("give --workers or --cluster, not both")
    if address is None and workers is None and devices and _cores() > 3 and _is_installed():
        workers = _cores() - 1
    if address is None and (workers or 1) == 1:
        yield lambda: None
        return
    if not _is_installed():
        raise LabError('Dask is missing; --workers and --cluster need it: pip install "cocoax[cluster]"')
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(1) as background:
        if address is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cocoax-")))
            starting = background.submit(_local, stack, list(_options(workers, devices, folder)), folder)
            if devices:  # which are the workers'
                os.environ["JAX_PLATFORMS"] = "cpu"
        else:
            starting = background.submit(_connected, stack, address)
        try:
            yield lambda: starting.result() if address else _alike(starting.result())
        finally:
            concurrent.futures.wait([starting])


def _alike(client: Any) -> Any:
    """Give the workers of one's own cluster, and those that come later, the settings of this process."""
    import jax

    from .workbench import SETTINGS

    settings = {name: getattr(jax.config, name) for name in (*SETTINGS, *_SHARED)}
    client.register_worker_callbacks(functools.partial(_set_up, settings, list(sys.path)))
    return client


def _set_up(settings: dict[str, Any], path: list[str]) -> None:
    import jax

    with contextlib.suppress(ValueError):  # Ctrl-C is for the command, which stops its workers
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    for name, value in settings.items():
        jax.config.update(name, value)


def gpus() -> list[str]:
    """The GPUs that JAX may use, as CUDA_VISIBLE_DEVICES names them. To ask JAX would take a second, and memory."""
    if importlib.util.find_spec("jax_plugins") is None or os.environ.get("JAX_PLATFORMS") == "cpu":
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    here = [file.name.removeprefix("nvidia") for file in sorted(Path("/dev").glob("nvidia[0-9]*"))]
    return here if visible is None else [name for name in visible.split(",") if name]


def _connected(stack, address):
    from distributed import Client

    _hush()
    try:
        return stack.enter_context(Client(address, set_as_default=False))
    except (OSError, ValueError) as error:
        raise LabError(
            f"there is no Dask scheduler at {address} ({' '.join(str(error).split()):.120}); start one with dask "
            "scheduler, or correct --cluster"
        ) from None


def _local(stack, options, folder):
    """Processes of one thread each, which listen on the loopback interface alone."""
    from dask import config
    from distributed import Client, Nanny, Scheduler, SpecCluster
    from distributed.system import MEMORY_LIMIT

    _hush()
    common = {"host": _LOOPBACK, "nthreads": 1, "memory_limit": MEMORY_LIMIT // len(options), "dashboard": False}
    common |= {"preload": ["cocoax.lab.run.workbench"], "local_directory": str(folder)}
    common |= {"silence_logs": logging.CRITICAL}  # a worker whose scheduler stops before it does logs a trace
    workers = {i: {"cls": Nanny, "options": common | own} for i, own in enumerate(options)}
    scheduler = {"host": _LOOPBACK, "port": 0, "dashboard": True, "dashboard_address": f"{_LOOPBACK}:0"}
    quiet: Any = logging.ERROR
    with config.set(_FASTER):
        cluster = SpecCluster(workers, {"cls": Scheduler, "options": scheduler}, silence_logs=quiet)
    stack.enter_context(cluster)
    return stack.enter_context(Client(cluster, set_as_default=False))


def _options(workers, devices, folder) -> Iterator[dict[str, Any]]:
    """Of each worker. Beside GPUs, half of the workers hold one each, and the others work on the CPU.

    Tracing and compiling takes longer than playing, so several processes may share a device, and take turns.
    """
    playing = -(-workers // 2) if devices else 0
    for i in range(workers):
        env = {"NPROC": str(max(2, _cores() // workers)), "JAX_PLATFORMS": "cpu"}  # NPROC: threads of XLA
        if i >= playing:
            yield {"env": env}
            continue
        device = devices[i % len(devices)]
        env |= {"CUDA_VISIBLE_DEVICES": device, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        env |= {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cuda,cpu")}
        if playing > len(devices):
            env |= {DEVICE_LOCK: str(folder / f"device-{device}.lock")}
        yield {"env": env, "resources": {"GPU": 1}}


def _hush():
    """What goes wrong is said in one sentence, without the traces that Dask logs."""
    parts = ("client", "core", "scheduler", "diskutils")
    for name in ("tornado", "distributed", *(f"distributed.{part}" for part in parts)):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_installed() -> bool:
    return importlib.util.find_spec("distributed") is not None
