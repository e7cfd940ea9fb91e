"""A state in a file of its own, to be taken to another machine or a newer version of cocoax.

The file is one line of JSON, then the bytes of all arrays (little-endian), then 16 bytes: BLAKE2b of all before. The
line has `format`, `bytes` (how many the arrays have), `notes` (tickets, counts) and `facts`: the signature, which names
the version, the learner and the problem, and the schemas of rounds and requests.
"""

import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ..core.files import write_file
from ..errors import SessionError
from .storage.journal import Journal

FACTS = "signature", "programs", "round", "request"
_FORMAT, _DIGEST, _LONGEST_LINE = "cocoax state 1", 16, 1 << 28


class State(NamedTuple):
    facts: dict
    notes: dict
    data: bytes


def write(path: Path, facts: dict, notes: dict, data: bytes):
    """Write a new file, whole or not at all."""
    if path.exists():
        raise SessionError(f"{path} exists already; give a new file to export to")
    if sys.byteorder != "little":
        raise SessionError("states are exported on little-endian machines alone")
    facts = {name: value for name, value in facts.items() if value is not None}
    line = json.dumps({"format": _FORMAT, "bytes": len(data), "notes": notes, "facts": facts}, sort_keys=True)
    content = line.encode() + b"\n" + data
    try:
        write_file(path, content + _digest(content))
    except OSError as error:
        raise SessionError(f"{path} was not written: {error.strerror}; give a file in a writable folder") from None


def read(path: Path) -> State:
    """What was exported; an error if a byte of it has changed."""
    damaged = SessionError(f"{path} is not a state that cocoax exported, or is damaged; export it again")
    try:
        with open(path, "rb") as file:
            line = file.readline(_LONGEST_LINE)
            header = json.loads(line)
            size = os.fstat(file.fileno()).st_size - len(line) - _DIGEST
            parts = header["notes"], header["facts"]
            if header["format"] != _FORMAT or header["bytes"] != size:
                raise damaged
            data, recorded = file.read(size), file.read()
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}; give a file of session.export") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise damaged from None
    if recorded != _digest(line + data) or not all(isinstance(part, dict) for part in parts):
        raise damaged
    return State(parts[1], parts[0], data)


def create(state: State, path: Path):
    """A new session file that goes on from a state. It is checked when it is opened."""
    if path.exists():
        raise SessionError(f"{path} exists already; import into a new file")
    journal = Journal(path)
    try:
        journal.create(state.facts, state.notes, state.data)
    finally:
        journal.close()


def imported(kind: type, source: Path, problem: Any, learner: Any, path: Path, options: dict) -> Any:
    """`Session.import_` and `Fleet.import_`."""
    state = read(source)
    create(state, path)
    try:
        return kind(problem, learner, path, other_rounding=True, **_settings(state, source) | options)
    except BaseException:
        discard(path)
        raise


def discard(path: Path):
    """Delete a session's files."""
    for suffix in ("", "-wal", "-acknowledged"):
        with contextlib.suppress(OSError):
            os.unlink(path.with_name(path.name + suffix))


def _settings(state: State, source: Path) -> dict:
    """The arguments that it was started with."""
    try:
        settings = dict(state.facts["signature"]["settings"])
    except (TypeError, KeyError, ValueError):
        raise SessionError(f"{source} has no signature of a session; it was not written by cocoax") from None
    names = "pending", "copies", "expires", "horizon", "certify"
    late = ("copies", "expires") if not settings.get("pending") else ()
    return {name: settings[name] for name in names if settings.get(name) and name not in late}


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
