"""Wheel and sdist, built twice from copies that differ in all that must not matter."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path


def reproducible(root: Path, folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist; exits if the bytes of two builds differ, or those of a wheel from the sdist."""
    builder = folder / "builder"
    subprocess.run([sys.executable, "-m", "venv", builder], check=True)
    pip = [builder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "hatchling"]
    subprocess.run(pip, check=True)
    first = _build(builder, _copy(root, folder / "one", umask=0o022), folder / "first")
    second = _build(builder, _copy(root, folder / "a longer name", umask=0o077), folder / "second")
    for one, other in zip(first, second):
        if _digest(one) != _digest(other):
            sys.exit(f"{one.name} differs between two builds: {_digest(one)} and {_digest(other)}")
    with tarfile.open(first[1]) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    from_sdist = _build(builder, unpacked, folder / "third")[0]
    if _digest(from_sdist) != _digest(first[0]):
        sys.exit(f"{first[0].name} differs when it is built from {first[1].name}")
    return first


def _copy(root, target, umask):
    """The tracked files, with the times of now and other permissions."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target / name)
            (target / name).chmod(0o666 & ~umask)
    return target


def _build(builder, source, target) -> tuple[Path, Path]:
    """(wheel, sdist). All files in them get one time, SOURCE_DATE_EPOCH or 2026-01-01."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "1767225600")}
    command = [(builder / "bin" / "python").absolute(), "-m", "hatchling", "build", "-d", target.absolute()]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    return next(target.glob("*.whl")), next(target.glob("*.tar.gz"))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
