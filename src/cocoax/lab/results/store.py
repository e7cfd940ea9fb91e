"""Results on disk: Parquet files that are written once, whole, and never changed.

Each finished batch is one file, which appears by a rename. A process that is killed loses only the batch that was
running. Two processes that write into one store can at worst do the same work twice.
"""

import io
import uuid
from pathlib import Path

import polars as pl

from ... import __version__
from ...core.files import write_file
from ...errors import LabError


class Store:
    """A folder of files. Rows are looked up by their column `key`, a hash of everything that determines them."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self._keys: dict[Path, set[str]] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (probe := self.folder / f".probe-{uuid.uuid4().hex}").touch()
            probe.unlink()
        except OSError as error:
            raise LabError(f"cannot write into {self.folder}: {error.strerror}; give another folder") from None
        for part in self.folder.glob("*.parquet"):
            if not part.name.startswith(f"{__version__}-"):
                other = part.name.split("-")[0]
                raise LabError(
                    f"{self.folder} holds results of cocoax {other}, this is {__version__}; give another folder"
                )

    def append(self, kind: str, rows: pl.DataFrame):
        """Store rows; they are durable when this returns."""
        buffer = io.BytesIO()
        rows.write_parquet(buffer, compression="zstd")
        path = self.folder / f"{__version__}-{kind}-{uuid.uuid4().hex}.parquet"
        try:
            write_file(path, buffer.getvalue())
        except OSError as error:
            raise LabError(f"cannot write {path}: {error.strerror}; what was stored before is safe") from None

    def read(self, kind: str) -> pl.DataFrame:
        """All rows of a kind, one for each key; empty if there are none."""
        parts = self._parts(kind)
        try:
            return together([pl.read_parquet(parts, glob=False)] if parts else [])  # one call is faster
        except (pl.exceptions.PolarsError, OSError):  # their columns differ, or one is damaged
            return together([_read(part) for part in parts])

    def keys(self, kind: str) -> set[str]:
        """The keys of all rows. A file is read once."""
        parts = self._parts(kind)
        for part in parts:
            if part not in self._keys:
                self._keys[part] = set(_read(part, ["key"])["key"])
        return set().union(*(self._keys[part] for part in parts))

    def _parts(self, kind):
        return sorted(self.folder.glob(f"{__version__}-{kind}-*.parquet"))


def _read(part, columns=None):
    try:
        return pl.read_parquet(part, columns=columns, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        text = str(error).split("\n")[0]
        raise LabError(f"{part} is damaged ({text[:80]}); delete it and run again with --resume") from None


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

    def append(self, kind, rows):
        self.parts.setdefault(kind, []).append(rows)

    def read(self, kind):
        return together(self.parts.get(kind, []))

    def keys(self, kind):
        return set().union(*(part["key"] for part in self.parts.get(kind, [])))
