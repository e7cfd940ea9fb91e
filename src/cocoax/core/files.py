"""Files, as those need them who must not lose any."""

import os
from pathlib import Path


def sync_folder(folder: Path):
    """New names in it are there to stay when this returns, where folders can be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def identity(path) -> tuple | None:
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def has_bytes(path) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False
