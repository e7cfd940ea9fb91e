"""Tests run in float64, with compilations kept between runs and the same hypothesis examples every time."""

import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one test process a core: its threads would only wait

import hypothesis
import jax
import pytest

jax.config.update("jax_enable_x64", True)
if jax.config.jax_compilation_cache_dir is None:  # JAX_COMPILATION_CACHE_DIR=$(mktemp -d) times a cold run
    jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent.parent / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

hypothesis.settings.register_profile("cocoax", deadline=None, derandomize=True)
hypothesis.settings.load_profile("cocoax")

MOST_MAPPINGS = 20_000  # of the 65,530 that Linux allows a process


@pytest.fixture(autouse=True)
def few_programs_in_memory():
    """Every compiled program maps memory, and a process that runs out of mappings is killed: forget in time."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and mappings.read_text().count("\n") > MOST_MAPPINGS:
        jax.clear_caches()
