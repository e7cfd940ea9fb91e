"""An empty environment: what must work with the core dependencies, then with every extra that a user may want."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
NOT_TRIED = ("cuda", "docs", "dev")  # extras


def passes(name: str, python: str, wheel: Path, folder: Path, root: Path, tests: Sequence[str], oldest: bool) -> bool:
    """Whether the wheel installs, and the smoke tests and these tests pass."""
    place = folder / re.sub(r"\W+", "-", name.lower())
    own = place / "bin" / "python"
    names = tried(root)
    extras = f"{wheel.absolute()}[{','.join(names)}]"
    steps = [
        ("an environment", [python, "-m", "venv", "--clear", place]),
        ("installing", [*_pip(own), wheel.absolute(), *(lowest(root) if oldest else [])]),
        ("its dependencies", [own, "-m", "pip", "check", "--disable-pip-version-check"]),
        ("the smoke test", [own, "-I", HERE.absolute() / "smoke.py"]),
        ("installing extras", [*_pip(own), extras, *(lowest(root, *names) if oldest else [])]),
        ("their dependencies", [own, "-m", "pip", "check", "--disable-pip-version-check"]),
        ("the smoke test of extras", [own, "-I", HERE.absolute() / "smoke_extras.py"]),
    ]
    if tests:
        steps += [
            ("installing what tests need", [*_pip(own), f"{wheel.absolute()}[dev]"]),
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


def tried(root: Path) -> list[str]:
    """The extras that a user may want on any machine."""
    return [name for name in _project(root)["optional-dependencies"] if name not in NOT_TRIED]


def lowest(root: Path, *extras: str) -> list[str]:
    """The oldest versions that pyproject.toml allows, exactly: of the core, and of these extras."""
    project = _project(root)
    texts = [*project["dependencies"], *(text for name in extras for text in project["optional-dependencies"][name])]
    bounds = [re.match(r"([\w-]+)>=([\d.]+)", text) for text in dict.fromkeys(texts)]
    pinned = [f"{bound[1]}=={bound[2]}{'.0' * (2 - bound[2].count('.'))}" for bound in bounds if bound]
    return [*pinned, *(text.replace("jax==", "jaxlib==") for text in pinned if text.startswith("jax=="))]


def _project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def _pip(python):
    return [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
