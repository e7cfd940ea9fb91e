"""Tables on disk: those that are a part of cocoax, and those that were fetched."""

import functools
import hashlib
import io
import json
import os
import shutil
import tempfile
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
    if not where.exists():
        raise DataError(f"the data {name!r} are not here; run `cocoax data fetch {name}`")
    return _read(name, where)


def is_here(name: str, folder: Path | str | None = None) -> bool:
    """Whether `load` needs no download: the data are shipped, or were fetched and are whole."""
    if dataset(name).shipped:
        return True
    where = place_of(name, folder)
    try:
        return where.exists() and bool(_checked(name, where))
    except DataError:
        return False


def place_of(name: str, folder: Path | str | None = None) -> Path:
    """The folder of one data set's tables; another one for other bytes."""
    return cache_folder(folder) / f"{name}-{dataset(name).key}"


def store(name: str, tables: Tables, folder: Path | str | None = None) -> Path:
    """Write tables as Parquet; the folder appears whole or not at all, and takes the place of an older one."""
    polars = _polars()
    where = place_of(name, folder)
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        hidden = Path(tempfile.mkdtemp(prefix=f".{where.name}-", dir=where.parent))
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
        shutil.rmtree(where, ignore_errors=True)
        hidden.rename(where)
    except OSError as error:
        raise DataError(f"cannot write {where}: {error.strerror}; free some space, and fetch again") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return where


def _read(name, where) -> Tables:
    polars = _polars()
    return {
        table: {column.name: column.to_numpy() for column in polars.read_parquet(io.BytesIO(data))}
        for table, data in _checked(name, where).items()
    }


def _checked(name, where) -> dict[str, bytes]:
    """The bytes of each table, as they were written."""
    try:
        sums = json.loads((where / _MANIFEST).read_text())
        data = {table: (where / f"{table}.parquet").read_bytes() for table in sums}
    except (OSError, ValueError):
        data, sums = {}, {"": ""}
    if any(hashlib.sha256(data.get(table, b"")).hexdigest() != wanted for table, wanted in sums.items()):
        raise DataError(f"{where} is damaged; run `cocoax data fetch {name}` again")
    return data


@functools.cache
def _shipped(name) -> Tables:
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
    try:
        import polars
    except ModuleNotFoundError:
        raise DataError('polars is missing; fetched data need it: pip install "cocoax[lab]"') from None
    return polars
