"""What can be done with the file of a session or a fleet without its problem: look, check, copy, move, free space.

All but `compact` and `import_file` only read, and work while the file is open elsewhere.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..core.files import sync_folder
from ..errors import SessionError
from . import transfer
from .storage import snapshots
from .storage.database import Damaged
from .storage.events import OBSERVED
from .storage.journal import DROPPED, Journal
from .storage.live import live_copy

_WITH_DATA = "SELECT count(*) FROM events WHERE kind = ? AND typeof(round) <> 'null'"  # reads no data, however long


@contextlib.contextmanager
def _opened(path: Path, folder: Path | None = None) -> Iterator[tuple[Journal, int | None]]:
    """(a copy of the journal, how many events were acknowledged)."""
    with live_copy(path, folder) as (copy, acknowledged):
        try:
            journal = Journal(copy, salvage=True)
        except SessionError as error:
            raise SessionError(str(error).replace(str(copy), str(path))) from None
        try:
            if journal.is_new:
                raise SessionError(f"{path} is empty; give the file of a session")
            yield journal, acknowledged
        except Damaged as damage:
            raise SessionError(f"{path} is damaged at {damage}; restore it from a backup") from None
        finally:
            journal.close()


def inspect(path: Path) -> dict:
    """What the file says of itself, as JSON. Nothing of it is checked but the checksums of what is shown."""
    with _opened(path) as (journal, acknowledged):
        signature = journal.fact("signature")
        if not isinstance(signature, dict):
            raise Damaged("its signature")
        settings = signature.get("settings") or {}
        counts = dict(journal.database.read("SELECT kind, count(*) FROM events GROUP BY 1 LIMIT 10", longest=0))
        kept = journal.database.read_row(_WITH_DATA, OBSERVED, longest=0)
        log = path.with_name(path.name + "-wal")
        return {
            "path": str(path),
            "kind": "fleet" if settings.get("fleet") else "session",
            "version": signature.get("version"),
            **{name: signature[name][0] for name in ("learner", "domain", "loss") if name in signature},
            "constraints": signature.get("constraints"),
            "settings": {name: value for name, value in settings.items() if value is not None},
            "round": journal.fact("round"),
            "request": journal.fact("request"),
            "events": counts,
            "rounds_with_data": (kept or (0,))[0],
            "last_event": _last_number(journal),
            "dropped_events": journal.dropped()[0],
            "acknowledged": acknowledged,
            "snapshots": journal.snapshots(),
            "bytes": {"file": path.stat().st_size, "log": log.stat().st_size if log.exists() else 0},
            "free_bytes": journal.database.free_bytes(),
        }


def verify(path: Path) -> dict:
    """Check every page, checksum and snapshot; an error says what is damaged or lost."""
    with _opened(path) as (journal, acknowledged):
        return _verified(journal, acknowledged, path)


def _verified(journal: Journal, acknowledged, path) -> dict:
    journal.database.check_pages()
    for name in (*transfer.FACTS, DROPPED):
        journal.fact(name)
    files = str(journal.path), f"{journal.path}-wal"
    size = sum(os.stat(file).st_size for file in files if os.path.exists(file))
    kept = journal.snapshots()
    for event in kept:
        _snapshot(journal, event, size)
    journal.rewind_to_first()
    events = sum(1 for _ in journal.follow(size))
    lost = 0 if acknowledged is None else acknowledged - journal.last
    if lost > 0:
        raise SessionError(f"{path} has lost the last {lost} acknowledged event(s); restore it from a backup")
    if not kept or kept[0] > journal.last:
        raise Damaged("its snapshots")
    return {"path": str(path), "events": events, "last_event": journal.last, "snapshots": kept}


def _last_number(journal: Journal) -> int:
    """Of the last event in the file, unchecked."""
    row = journal.database.read_row("SELECT max(number) FROM events", longest=0)
    return (row or (None,))[0] or journal.dropped()[0]


def _snapshot(journal: Journal, event: int, most: int) -> tuple[dict, bytes]:
    stored = snapshots.size(journal.database, event)
    if stored > most:
        raise Damaged(f"the snapshot after event {event}")
    return journal.rewind(event, lambda _: stored, most)


def backup(path: Path, to: Path) -> dict:
    """Write a checked copy, one file, which opens as the session would after a kill now."""
    if to.exists():
        raise SessionError(f"{to} exists already; give a new file for the backup")
    if not to.parent.is_dir():
        raise SessionError(f"there is no folder {to.parent}; make it first")
    with _opened(path, to.parent) as (journal, acknowledged):
        checked = _verified(journal, acknowledged, path)
        journal.close()  # SQLite moves its log into the file
        with open(journal.path or "", "rb") as file:
            os.fsync(file.fileno())
        os.rename(journal.path or "", to)
        sync_folder(to.parent)
    return {**checked, "backup": str(to), "bytes": to.stat().st_size}


def export(path: Path, to: Path) -> dict:
    """Write the state after the last event to a file of its own, if the newest snapshot has it."""
    with _opened(path) as (journal, _):
        last, size = _last_number(journal), path.stat().st_size
        newest = max(journal.snapshots(), default=-1)
        if newest != last:
            raise SessionError(
                f"{path} has events after its newest snapshot, which only its learner can play; open and close it in "
                "your program, or call its export(path) there"
            )
        notes, state = _snapshot(journal, newest, size + (1 << 20))
        transfer.write(to, {name: journal.fact(name) for name in transfer.FACTS}, notes, state)
    return {"path": str(path), "export": str(to), "last_event": last, "bytes": to.stat().st_size}


def import_file(source: Path, to: Path) -> dict:
    """A new file that goes on from an exported state. Its problem and learner are compared when it is opened."""
    state = transfer.read(source)
    transfer.create(state, to)
    return {"path": str(to), "bytes": to.stat().st_size, "version": state.facts.get("signature", {}).get("version")}


def compact(path: Path, *, forget_rounds: bool = False, forget_history: bool = False) -> dict:
    """Free the space of what was forgotten. Optionally forget all that the older snapshot does not need."""
    if not path.is_file():
        raise SessionError(f"there is no session in {path}; give the path of one")
    before, journal = path.stat().st_size, Journal(path)
    try:
        if journal.is_new:
            raise SessionError(f"{path} is empty; give the file of a session")
        older = min(journal.snapshots(), default=0)
        if forget_history:
            journal.drop(older)
        elif forget_rounds:
            if (journal.fact("signature") or {}).get("settings", {}).get("fleet"):
                raise SessionError("a fleet keeps rounds and outcomes together; give --forget-history")
            journal.forget(older)
        journal.database.compact()
    except Damaged as damage:
        raise SessionError(f"{path} is damaged at {damage}; restore it from a backup") from None
    finally:
        journal.close()
    return {"path": str(path), "bytes_before": before, "bytes": path.stat().st_size}
