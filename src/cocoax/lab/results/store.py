"""Results on disk: Parquet files that are written once, whole, and never changed.

Each finished batch is one file, which appears by a rename. A process that is killed loses only the batch that was
running. Two processes that write into one store can at worst do the same work twice. The name of a file ends with a
checksum of its bytes: one that was damaged is set aside, and its batch is played again.
"""

import hashlib
import io
import uuid
import warnings
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ...core.files import write_file
from ...core.fingerprint import library
from ...errors import LabError


class Packed(NamedTuple):
    """Rows as the bytes of a Parquet file, and the checksum of these."""

    data: bytes
    checksum: str

    def is_whole(self) -> bool:
        """Whether the bytes are those that were packed."""
        return _checksum(self.data) == self.checksum

    def rows(self) -> pl.DataFrame:
        return _rows(self.data)


def packed(rows: pl.DataFrame) -> Packed:
    """Rows as they are stored."""
    buffer = io.BytesIO()
    rows.write_parquet(buffer, compression="zstd")
    return Packed(buffer.getvalue(), _checksum(buffer.getvalue()))


class _Damaged(LabError):
    """A file that is not what was written."""


class Store:
    """A folder of files. Rows are looked up by their column `key`, a hash of everything that determines them.

    What other code of cocoax stored there stays, and is not read.
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self._keys: dict[Path, set[str]] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (probe := self.folder / f".probe-{uuid.uuid4().hex}").touch()
            probe.unlink()
        except OSError as error:
            raise LabError(f"cannot write into {self.folder}: {error.strerror}; give another folder") from None

    def append(self, kind: str, batch: "Packed"):
        """Store a batch; it is durable when this returns."""
        path = self.folder / f"{library():.12}-{kind}-{uuid.uuid4().hex}-{batch.checksum}.parquet"
        try:
            write_file(path, batch.data)
        except OSError as error:
            raise LabError(f"cannot write {path}: {error.strerror}; what was stored before is safe") from None

    def read(self, kind: str) -> pl.DataFrame:
        """All rows of a kind, one for each key; empty if there are none."""
        data = [_checked(part) for part in self._parts(kind)]
        try:
            return together([pl.read_parquet([io.BytesIO(each) for each in data])] if data else [])  # faster
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # their columns differ
            return together([_rows(each) for each in data])

    def keys(self, kind: str) -> set[str]:
        """The keys of all rows. A file is read once, and set aside if it is damaged."""
        for part in self._parts(kind):
            if part not in self._keys:
                try:
                    self._keys[part] = set(_rows(_checked(part), ["key"])["key"])
                except _Damaged as error:
                    part.rename(part.with_name(part.name + ".damaged"))
                    warnings.warn(f"{error}; it is set aside, and what it held is computed again", stacklevel=2)
        return set().union(*(self._keys[part] for part in self._parts(kind) if part in self._keys))

    def _parts(self, kind):
        return sorted(self.folder.glob(f"{library():.12}-{kind}-*.parquet"))


def _checksum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _checked(part: Path) -> bytes:
    """The bytes of a file, as they were written."""
    try:
        data = part.read_bytes()
    except OSError as error:
        raise LabError(f"cannot read {part}: {error.strerror}; delete it and run again with --resume") from None
    if part.stem.rpartition("-")[2] != _checksum(data):
        raise _Damaged(f"{part} is damaged: run again with --resume")
    return data


def _rows(data: bytes, columns=None) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(data), columns=columns)


def together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all frames, one for each key."""
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pl.DataFrame()
    return pl.concat(frames, how="diagonal_relaxed").unique("key", keep="first", maintain_order=True)


class Memory:
    """A store in memory."""

    def __init__(self):
        self.parts: dict[str, list[pl.DataFrame]] = {}

    def append(self, kind, batch):
        self.parts.setdefault(kind, []).append(batch.rows())

    def read(self, kind):
        return together(self.parts.get(kind, []))

    def keys(self, kind):
        return set().union(*(part["key"] for part in self.parts.get(kind, [])))
