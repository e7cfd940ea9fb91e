"""A flipped bit in a store is found, and what the file held is computed again."""

import numpy as np
import polars as pl
import pytest

import cocoax as cx
from cocoax.lab.results.store import Store, packed

ROWS = pl.DataFrame({"key": ["a", "b"], "regret": [1.0, 2.0]})


def _flips(data, count):
    rng = np.random.default_rng(0)
    for at in rng.choice(len(data), min(count, len(data)), replace=False):
        yield data[:at] + bytes([data[at] ^ (1 << rng.integers(8))]) + data[at + 1 :]
    yield data[:-1]
    yield b""


def test_every_flipped_bit_is_found(tmp_path):
    Store(tmp_path / "store").append("game", packed(ROWS))
    (part,) = (tmp_path / "store").iterdir()
    data = part.read_bytes()
    for changed in _flips(data, 300):
        part.write_bytes(changed)
        with pytest.raises(cx.LabError, match="is damaged"):
            Store(tmp_path / "store").read("game")
    part.write_bytes(data)
    assert Store(tmp_path / "store").read("game").equals(ROWS)


def test_a_damaged_part_is_set_aside_and_computed_again(tmp_path):
    store = Store(tmp_path / "store")
    store.append("game", packed(ROWS))
    store.append("game", packed(pl.DataFrame({"key": ["c"], "regret": [3.0]})))
    part = next(part for part in store._parts("game") if part.stat().st_size and b"c" in part.read_bytes())
    part.write_bytes(next(_flips(part.read_bytes(), 1)))
    again = Store(tmp_path / "store")
    with pytest.warns(UserWarning, match="set aside"):
        left = again.keys("game")
    assert left in ({"a", "b"}, {"c"}) and set(again.read("game")["key"]) == left
    again.append("game", packed(ROWS if "c" in left else pl.DataFrame({"key": ["c"], "regret": [3.0]})))
    assert dict(Store(tmp_path / "store").read("game").sort("key").iter_rows()) == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_what_other_code_stored_is_not_read(tmp_path, monkeypatch):
    Store(tmp_path).append("game", packed(ROWS))
    monkeypatch.setattr("cocoax.lab.results.store.library", lambda: "other code")
    assert not Store(tmp_path).keys("game") and not len(Store(tmp_path).read("game"))
    monkeypatch.undo()
    assert Store(tmp_path).keys("game") == {"a", "b"}
