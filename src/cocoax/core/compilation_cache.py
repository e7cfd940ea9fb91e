"""JAX's persistent compilation cache, on by default: what one script compiled, the next one loads.

It is turned on by the first game, session, study or `hindsight`, never by an import. What the user says of JAX's cache,
in code or in the environment, is left alone; `COCOAX_CACHE=0` turns it off.
"""

import contextlib
import functools
import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from .files import user_cache

_OFF = ("0", "off", "false", "no")
_LEAST = "jax_persistent_cache_min_compile_time_secs"  # of compilations that are worth keeping
_MOST_BYTES = 1 << 30


@functools.cache
def use_compilation_cache() -> None:
    """Keep compiled programs in the user's cache folder, unless there is a cache already or none is wanted."""
    wanted = settings(os.environ, jax.config)
    for name, value in wanted.items():
        jax.config.update(name, value)
    if wanted:
        prune(Path(wanted["jax_compilation_cache_dir"]))


def settings(environment: Mapping[str, str], config: Any) -> dict[str, Any]:
    """What to set in JAX's `config`; nothing, if the cache is off, is the user's, or has no place."""
    if environment.get("COCOAX_CACHE", "").lower() in _OFF or not config.jax_enable_compilation_cache:
        return {}
    if config.jax_compilation_cache_dir is not None or (folder := cache_folder(environment)) is None:
        return {}
    is_usual = _LEAST.upper() not in environment and getattr(config, _LEAST) == 1.0
    return {"jax_compilation_cache_dir": str(folder), **({_LEAST: 0.1} if is_usual else {})}


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """A folder that only this user can write to, of this kind of processor; None if it cannot be made.

    JAX runs the programs in it, so no other user may write there. Programs for another processor might not run.
    """
    try:
        folder = user_cache(environment) / f"programs-{_processor()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except (OSError, RuntimeError):  # no home, or one that cannot be written to
        return None
    is_own = not hasattr(os, "geteuid") or (facts.st_uid == os.geteuid() and not facts.st_mode & 0o022)
    return folder if is_own and os.access(folder, os.W_OK | os.X_OK) else None


def prune(folder: Path, most: int = _MOST_BYTES) -> None:
    """Delete the oldest programs beyond this many bytes, and those of which nothing was written.

    JAX could do so itself, but it then takes a lock for each program, for which home folders on a network are too slow.
    """
    with contextlib.suppress(OSError):
        entries = [(file.stat(), file.path) for file in os.scandir(folder) if file.is_file()]
        for facts, path in sorted(entries, key=lambda entry: -entry[0].st_mtime):
            most -= facts.st_size
            if most < 0 or facts.st_size == 0:
                with contextlib.suppress(OSError):  # another process was faster
                    os.unlink(path)


def _processor() -> str:
    facts = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:  # Linux
        facts += [line for _, line in zip(range(64), file) if line.startswith(("model name", "flags", "Features"))]
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=4).hexdigest()
