"""Tests run in float64, with compilations kept between runs and the same hypothesis examples every time."""

import os
from pathlib import Path

# Most of the suite's time is compilation: these flags make it five times cheaper, and what is compiled once is kept.
# All are defaults, taken over by processes that tests start. XLA_FLAGS="" tests the programs that users run (make
# test-all does); JAX_COMPILATION_CACHE_DIR=$(mktemp -d) times a run without a cache.
os.environ.update(
    {
        "OPENBLAS_NUM_THREADS": "1",  # one test process a core: its threads would only wait
        "XLA_FLAGS": "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true "
        "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
        "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parent.parent / ".jax_cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    | os.environ
)

import hypothesis
import jax
import pytest

jax.config.update("jax_enable_x64", True)

hypothesis.settings.register_profile("cocoax", deadline=None, derandomize=True)
hypothesis.settings.load_profile("cocoax")

MOST_MAPPINGS = 20_000  # of the 65,530 that Linux allows a process


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="the first case of every test function only (make quick)")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--quick"):
        return
    seen, first, others = set(), [], []
    for item in items:
        function = item.nodeid.split("[")[0]
        waits = item.get_closest_marker("slow") or item.get_closest_marker("heavy")
        (others if waits or function in seen else first).append(item)
        seen.add(function)
    config.hook.pytest_deselected(items=others)
    items[:] = first


@pytest.fixture(autouse=True)
def few_programs_in_memory():
    """Every compiled program maps memory, and a process that runs out of mappings is killed: forget in time."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and mappings.read_text().count("\n") > MOST_MAPPINGS:
        jax.clear_caches()
