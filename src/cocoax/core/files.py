"""Durable file helpers (fsync, atomic rename), and the user's cache folder."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path


def user_cache(environment: Mapping[str, str]) -> Path:
    """$XDG_CACHE_HOME/cocoax if that is an absolute path, else ~/.cache/cocoax; it need not exist."""
    given = Path(environment.get("XDG_CACHE_HOME", ""))
    home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    return (given if given.is_absolute() else home / ".cache") / "cocoax"


def write_file(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all, and that is durable when this returns."""
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(hidden, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, path)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, where the system can open folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def identity(path) -> tuple[int, int] | None:
    """Device and inode of a file; None if there is no such file."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def links(path) -> int:
    """How many names a file has; 0 if there is no such file."""
    try:
        return os.stat(path).st_nlink
    except OSError:
        return 0


def has_bytes(path) -> bool:
    """Whether there is such a file and it is not empty."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False
