"""An empty environment with the wheel and its core dependencies, and what must work in it."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

SMOKE = Path(__file__).parent / "smoke.py"


def passes(name: str, python: str, wheel: Path, folder: Path, root: Path, tests: Sequence[str], oldest: bool) -> bool:
    """Whether the wheel installs, and the smoke test and these tests pass."""
    place = folder / re.sub(r"\W+", "-", name.lower())
    own = place / "bin" / "python"
    steps = [
        ("an environment", [python, "-m", "venv", "--clear", place]),
        ("installing", [*_pip(own), wheel.absolute(), *(lowest(root) if oldest else [])]),
        ("its dependencies", [own, "-m", "pip", "check", "--disable-pip-version-check"]),
        ("the smoke test", [own, "-I", SMOKE.absolute()]),
    ]
    if tests:
        pinned = lowest(root) if oldest else []
        steps += [
            ("installing what tests need", [*_pip(own), f"{wheel.absolute()}[dev]", *pinned]),
            ("tests", [own, "-m", "pytest", "-m", "not slow", "-o", "filterwarnings=default", *tests]),
        ]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    environment["XLA_FLAGS"] = ""  # a JAX ends the process at flags that it does not know
    said = ""
    for what, command in steps:
        is_test = what == "tests"
        done = subprocess.run(
            list(map(str, command)),
            cwd=root if is_test else folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            print(f"{name}: {what} failed\n{done.stdout[-4000:]}", file=sys.stderr)
            return False
        said = done.stdout.strip().split("\n")[-1]
    print(f"{name}: passed ({said})", flush=True)
    return True


def lowest(root: Path) -> list[str]:
    """The oldest versions that pyproject.toml allows, exactly."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", text) for text in project["dependencies"]]
    pinned = [f"{bound[1]}=={bound[2]}{'.0' * (2 - bound[2].count('.'))}" for bound in bounds if bound]
    return [*pinned, *(text.replace("jax==", "jaxlib==") for text in pinned if text.startswith("jax=="))]


def _pip(python):
    return [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
