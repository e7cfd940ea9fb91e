"""Tables on disk: those shipped as part of cocoax, and those fetched by the user."""

import contextlib
import functools
import hashlib
import io
import json
import os
import shutil
import uuid
from importlib import resources
from pathlib import Path

import numpy as np

from ..core.files import user_cache
from ..errors import DataError
from .parsers import Tables, columns
from .registry import dataset

_MANIFEST = "manifest.json"  # SHA-256 of each table's file


def cache_folder(folder: Path | str | None = None) -> Path:
    """Where fetched data are kept: `folder`, or COCOAX_DATA, or cocoax/data in the user's cache folder."""
    if folder is not None:
        return Path(folder)
    if os.environ.get("COCOAX_DATA"):
        return Path(os.environ["COCOAX_DATA"])
    return user_cache(os.environ) / "data"


def load(name: str, folder: Path | str | None = None) -> Tables:
    """The tables of a data set, each a dict of NumPy columns. Nothing is downloaded: `fetch` does that.

    >>> load("sioux_falls")["links"]["capacity"].shape
    (76,)
    """
    if dataset(name).shipped:
        return _shipped(name)
    where = place_of(name, folder)
    if not os.path.exists(where):  # unlike Path's, False where the folder may not be looked at
        raise DataError(f"the data {name!r} are not here; run `cocoax data fetch {name}`")
    return _read(name, where)


def is_here(name: str, folder: Path | str | None = None) -> bool:
    """Whether `load` needs no download: the data are shipped, or were fetched and are undamaged."""
    if dataset(name).shipped:
        return True
    where = place_of(name, folder)
    try:
        return os.path.exists(where) and bool(_checked(name, where))
    except DataError:
        return False


def place_of(name: str, folder: Path | str | None = None) -> Path:
    """The folder of one data set's tables. Its name changes with the bytes of the data."""
    return cache_folder(folder) / f"{name}-{dataset(name).key}"


def store(name: str, tables: Tables, folder: Path | str | None = None) -> Path:
    """Write tables as Parquet and return their folder.

    The folder appears complete or not at all, and replaces a damaged one.
    """
    polars = _polars()
    where = place_of(name, folder)
    hidden = _hidden_name(where)
    try:
        hidden.mkdir(parents=True)
    except OSError as error:
        raise DataError(f"cannot write into {where.parent}: {error.strerror}; give another folder") from None
    try:
        sums = {}
        for table, named in tables.items():
            buffer = io.BytesIO()
            polars.DataFrame(named).write_parquet(buffer, compression="zstd")
            (hidden / f"{table}.parquet").write_bytes(buffer.getvalue())
            sums[table] = hashlib.sha256(buffer.getvalue()).hexdigest()
        (hidden / _MANIFEST).write_text(json.dumps(sums, indent=1))
        _move_into_place(hidden, where, lambda: is_here(name, folder))
    except OSError as error:
        raise DataError(f"cannot write {where}: {error.strerror}; make room there, or give another folder") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return where


def _move_into_place(hidden, where, is_whole) -> None:
    """Rename the folder `hidden` to `where`.

    If `where` exists, it is kept when `is_whole()` (another process was faster), and otherwise removed.
    """
    for last in (False, False, True):  # other processes may be writing it too
        try:
            hidden.rename(where)
            return
        except OSError:
            if is_whole():
                return
            if last:
                raise
        old = _hidden_name(where)
        with contextlib.suppress(OSError):
            where.rename(old)  # a folder, a file, or a link: never what it leads to
            old.unlink() if old.is_symlink() or old.is_file() else shutil.rmtree(old, ignore_errors=True)


def _hidden_name(where) -> Path:
    """A hidden path in the same folder, with a random part that no other process has."""
    return where.with_name(f".{where.name}-{uuid.uuid4().hex}")


def _read(name, where) -> Tables:
    """The tables in the folder of a fetched data set; raises `DataError` if they are damaged."""
    polars = _polars()
    try:
        return {
            table: {column.name: column.to_numpy() for column in polars.read_parquet(io.BytesIO(data))}
            for table, data in _checked(name, where).items()
        }
    except polars.exceptions.PolarsError:
        raise _damaged(name, where) from None


def _checked(name, where) -> dict[str, bytes]:
    """The bytes of each table's file; raises `DataError` unless their hashes are the manifest's."""
    try:
        sums = dict(json.loads((where / _MANIFEST).read_text()))
        data = {table: (where / f"{table}.parquet").read_bytes() for table in sums}
    except (OSError, ValueError, TypeError, RecursionError):
        sums = data = {}
    if not sums or any(hashlib.sha256(data[table]).hexdigest() != wanted for table, wanted in sums.items()):
        raise _damaged(name, where)
    return data


def _damaged(name, where) -> DataError:
    return DataError(f"{where} is damaged; run `cocoax data fetch {name}` again")


@functools.cache
def _shipped(name) -> Tables:
    """The tables of a data set that is part of cocoax."""
    folder = resources.files("cocoax.data").joinpath("shipped", name)
    return {
        file.name.partition(".")[0]: _arrays(file) if file.name.endswith(".npz") else columns(file.read_text("utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith((".csv", ".npz"))
    }


def _arrays(file) -> dict[str, np.ndarray]:
    with file.open("rb") as opened, np.load(opened) as stored:
        return dict(stored)


def _polars():
    """The module polars, or a `DataError` that says how to install it."""
    try:
        import polars
    except ModuleNotFoundError:
        raise DataError('polars is missing; fetched data need it: pip install "cocoax[lab]"') from None
    return polars
