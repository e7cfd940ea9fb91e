"""Facts of a journal by name, as JSON with a checksum."""

import json
from typing import Any

from .database import Damaged, Database, Statement, checksum

_LONGEST = 1 << 22  # characters


def insertions(facts: dict[str, Any], *, replace: bool = False) -> list[Statement]:
    """The statements that store facts."""
    texts = {name: json.dumps(value, sort_keys=True) for name, value in facts.items()}
    insert = f"INSERT {'OR REPLACE ' if replace else ''}INTO facts VALUES (?, ?, ?)"
    return [(insert, (name, text, checksum(name, text))) for name, text in texts.items()]


def read(database: Database, name: str) -> Any:
    """The value of a fact, or None if there is none."""
    row = database.read_row("SELECT value, checksum FROM facts WHERE name = ?", name, longest=_LONGEST)
    if row is None:
        return None
    value, recorded = row
    if not isinstance(value, str) or recorded != checksum(name, value):
        raise Damaged(f"its record of the {name}")
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise Damaged(f"its record of the {name}") from None
