"""The parts of `make release-check` that need no network."""

import subprocess
import sys
import tomllib
from pathlib import Path

import cocoax as cx
from release import environments, pythons

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_oldest_of_every_dependency_is_tried_but_of_three_extras():
    core = environments.lowest(ROOT)
    assert {"jax==0.8.0", "jaxlib==0.8.0"} <= set(core)
    assert len(core) == len(PROJECT["project"]["dependencies"]) + 1
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(extras) - set(environments.tried(ROOT)) == {"cuda", "docs", "dev"}
    needs = {text for name in environments.tried(ROOT) for text in extras[name] if not text.startswith("cocoax[")}
    asked = environments.lowest(ROOT, *environments.tried(ROOT))
    assert len(set(asked) - set(core)) == len(needs) and asked[: len(core) - 1] == core[:-1]


def test_oldest_versions_are_no_older_than_what_works():
    """polars: `join(maintain_order=)`; optax: rows of an assignment by column; typer: options that are `str | None`."""
    asked = dict(text.split("==") for text in environments.lowest(ROOT, *environments.tried(ROOT)))
    known = {"polars": (1, 17), "optax": (0, 2, 5), "typer": (0, 15, 4), "matplotlib": (3, 8, 4)}
    assert all(tuple(map(int, asked[name].split("."))) >= first for name, first in known.items())


def test_this_python_is_found_and_others_are_said_to_be_missing():
    here, missing = pythons.found([f"{sys.version_info[0]}.{sys.version_info[1]}", "3.99"])
    assert len(here) == 1 and missing == ["3.99"]
    assert PROJECT["project"]["requires-python"] == f">={pythons.SUPPORTED[0]}"


def test_the_smoke_test_refuses_an_environment_with_extras():
    done = subprocess.run([sys.executable, ROOT / "release" / "smoke.py"], capture_output=True, text=True)
    assert done.returncode and "an extra is installed" in done.stderr


def test_the_version_is_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/cocoax/__init__.py"
    written = [path for path in (ROOT / "src").rglob("*.py") if f'"{cx.__version__}"' in path.read_text()]
    assert [path.name for path in written if path.parent.name == "cocoax"] == ["__init__.py"]
