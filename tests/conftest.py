"""Tests run in float64, with strict promotion of types and ranks, with compilations kept between runs and the same
hypothesis examples every time."""

import collections
import gc
import importlib.metadata
import itertools
import os
from pathlib import Path

# Most of the suite's time is compilation: these flags make it cheaper (CPU seconds of `play(Auto)`: 4.0 -> 0.8), and
# what is compiled once is kept. At optimisation level 0 a session and a game differ in the last bits, and Capped sees
# NaN: a defect of that level, not seen at level 1 or with the default flags.
# All are defaults, taken over by processes that tests start. XLA_FLAGS="" tests the programs that users run (make
# test-all does); JAX_COMPILATION_CACHE_DIR=$(mktemp -d) times a run without a cache.
# jaxlib 0.12 does not know the flag for fusion, and ends a process with a flag that it does not know.
os.environ.update(
    {
        "OPENBLAS_NUM_THREADS": "1",  # one test process a core: its threads would only wait
        "XLA_FLAGS": "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true "
        "--xla_cpu_parallel_codegen_split_count=1"
        + " --xla_cpu_use_fusion_emitters=false"
        * (tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) < (0, 11)),
        "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parent.parent / ".jax_cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",  # programs need not know which lines they come from
    }
    | os.environ
)

import hypothesis
import jax
import pytest

jax.config.update("jax_enable_x64", True)
# The library casts and broadcasts by itself, for users who ask for this. Tests of losses that do not: free_promotion
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile("cocoax", deadline=None, derandomize=True)
hypothesis.settings.load_profile("cocoax")

gc.set_threshold(100_000, 50, 100)  # tracing makes many small objects, and little of it is garbage

MOST_MAPPINGS, MOST_MAPPINGS_IN_A_FILE = 35_000, 55_000  # of the 65,530 that Linux allows a process
HEAVY = Path(__file__).parent / "tools" / "heavy.txt"  # written by make heavy
HEAVY_SECONDS = 0.8  # without a cache
SLOW_SECONDS = 3600  # a slow test may take; the others have the `timeout` of pyproject.toml
tests_run = itertools.count(1)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="one case of every test that is not heavy (make quick)")
    parser.addoption("--record-heavy", action="store_true", help="write down which tests are heavy (make heavy)")


def pytest_configure(config):
    if config.getoption("--record-heavy") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


class Recorder:
    """Writes down the tests of which some case takes long."""

    def __init__(self):
        self.seconds = collections.Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        heavy = {case.split("[")[0] for case, seconds in self.seconds.items() if seconds > HEAVY_SECONDS}
        HEAVY.write_text("".join(f"{name}\n" for name in sorted(heavy)))


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    if not config.getoption("--quick"):
        return
    seen, chosen, others = set(HEAVY.read_text().split()), [], []
    for item in items:
        function = item.nodeid.split("[")[0]
        (others if function in seen or item.get_closest_marker("slow") else chosen).append(item)
        seen.add(function)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_collection_finish():
    gc.freeze()


@pytest.fixture
def free_promotion():
    """For tests whose own losses mix dtypes or ranks, as those of most users do."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def pytest_runtest_teardown(item, nextitem):
    """Every compiled program maps memory, and a process that runs out of mappings is killed: forget in time.

    After the last test of a file, if it can be: some programs that a file keeps for its tests cannot be called again.
    """
    is_last = nextitem is None or nextitem.path != item.path
    most = MOST_MAPPINGS if is_last else MOST_MAPPINGS_IN_A_FILE
    mappings = Path("/proc/self/maps")
    if (is_last or next(tests_run) % 20 == 0) and mappings.exists() and mappings.read_text().count("\n") > most:
        jax.clear_caches()
