"""Compiled programs are kept between scripts, unless the user says otherwise."""

import os
import subprocess
import sys
import types

import pytest

from cocoax.core.compilation_cache import cache_folder, prune, settings

SCRIPT = """
import jax, jax.numpy as jnp
import cocoax as cx
assert jax.config.jax_compilation_cache_dir is None
problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x))
assert jax.config.jax_compilation_cache_dir is None  # importing and building set nothing
game = cx.play(problem, cx.learners.Auto(), jnp.ones((5, 3)), key=jax.random.key(0))
print(jax.config.jax_compilation_cache_dir, jax.config.jax_enable_x64)
"""


def config(**changed):
    usual = {
        "jax_enable_compilation_cache": True,
        "jax_compilation_cache_dir": None,
        "jax_persistent_cache_min_compile_time_secs": 1.0,
    }
    return types.SimpleNamespace(**usual | changed)


def run(home):
    removed = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    environment |= {"HOME": str(home)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    """The folder of the cache that a script used."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    folder, x64 = out.split()
    assert x64 == "False"
    return folder


@pytest.mark.slow
def test_scripts_beside_each_other_share_what_they_compile(tmp_path):
    both = [run(tmp_path) for _ in range(2)]
    folder = {ended(one) for one in both}.pop()
    assert folder.startswith(str(tmp_path))
    before = {name: os.stat(os.path.join(folder, name)).st_mtime for name in os.listdir(folder)}
    assert before
    ended(run(tmp_path))
    assert before.items() <= {name: os.stat(os.path.join(folder, name)).st_mtime for name in os.listdir(folder)}.items()


def test_a_cache_of_the_user_is_left_alone(tmp_path):
    home = {"HOME": str(tmp_path)}
    assert settings(home, config(jax_compilation_cache_dir="mine")) == {}
    assert settings(home, config(jax_enable_compilation_cache=False)) == {}
    for value in ("0", "off", "False", "no"):
        assert settings({**home, "COCOAX_CACHE": value}, config()) == {}
    assert not list(tmp_path.iterdir())


def test_settings_of_the_user_are_left_alone(tmp_path):
    home = {"HOME": str(tmp_path)}
    assert set(settings(home, config())) == set(vars(config())) - {"jax_enable_compilation_cache"}
    least = "jax_persistent_cache_min_compile_time_secs"
    assert least not in settings(home, config(**{least: 5.0}))
    said = {**home, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1"}
    assert "jax_persistent_cache_min_compile_time_secs" not in settings(said, config())


def test_a_home_that_cannot_be_written_to_has_no_cache(tmp_path):
    (tmp_path / "file").touch()
    assert settings({"HOME": str(tmp_path / "file")}, config()) == {}
    assert cache_folder({"HOME": "/proc"}) is None


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    folder = cache_folder({"HOME": str(tmp_path), "XDG_CACHE_HOME": "relative"})
    assert folder is not None and folder.is_relative_to(tmp_path) and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert cache_folder({"HOME": str(tmp_path)}) is None
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path / "other")}).is_relative_to(tmp_path / "other")


def test_the_oldest_programs_make_room(tmp_path):
    for age, size in enumerate([10, 10, 0, 10, 10]):
        (tmp_path / str(age)).write_bytes(bytes(size))
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    prune(tmp_path, 35)
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "3"]
    prune(tmp_path / "nowhere")
