"""The interpreters of this machine."""

import glob
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SUPPORTED = ["3.11", "3.12", "3.13"]
_PLACES = [
    "{pyenv}/versions/{version}.*/bin/python{version}",
    "/usr/bin/python{version}",
    "/usr/local/bin/python{version}",
    "/opt/python*/bin/python{version}",
    "/opt/homebrew/bin/python{version}",
    "{home}/.local/share/uv/python/*-{version}.*/bin/python{version}",
    "{home}/miniconda3/envs/*/bin/python{version}",
]
_CHECK = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def found(versions: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """(an interpreter by version, the versions without one)."""
    here = {version: python for version in versions if (python := _find(version)) is not None}
    return here, [version for version in versions if version not in here]


def _find(version: str) -> str | None:
    home = Path.home()
    pyenv = os.environ.get("PYENV_ROOT", home / ".pyenv")
    patterns = [place.format(pyenv=pyenv, home=home, version=version) for place in _PLACES]
    known = [path for pattern in patterns for path in sorted(glob.glob(pattern), reverse=True)]
    on_path = shutil.which(f"python{version}")
    candidates = [*known, *([on_path] if on_path else [])]
    return next((path for path in candidates if _is_usable(path, version)), None)


def _is_usable(path: str, version: str) -> bool:
    """Whether it runs, is of this version, and can make environments."""
    done = subprocess.run([path, "-c", _CHECK], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version
