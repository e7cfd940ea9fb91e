"""What was run is kept until what it depends on changes: its code, the library, the version of JAX, or fetched data."""

import hashlib
import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from cocoax.data.stored import cache_folder

from . import ROOT, STAGE


def key_of(source: Path) -> str:
    """Changes with the source, with anything in src/cocoax, with versions, and with which real data are here."""
    digest = hashlib.sha256()
    for path in [source, *sorted((ROOT / "src" / "cocoax").rglob("*"))]:
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    digest.update("".join(version(name) for name in ("jax", "matplotlib", "nbclient")).encode())
    folder = cache_folder()
    digest.update(" ".join(sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []).encode())
    return digest.hexdigest()[:16]


def kept(source: Path, run: Callable[[Path], dict]) -> tuple[dict, Path]:
    """The results of `run(folder)`, and its folder; from an earlier build where nothing has changed."""
    home = STAGE / "runs" / source.stem
    folder = home / key_of(source)
    results = folder / "results.json"
    if not results.exists():
        shutil.rmtree(home, ignore_errors=True)  # what it was before
        folder.mkdir(parents=True)
        found = run(folder)
        results.write_text(json.dumps(found))
    return json.loads(results.read_text()), folder
