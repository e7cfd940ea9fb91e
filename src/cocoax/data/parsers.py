"""Parse downloaded files into tables of columns. Nothing in them is run or unpickled."""

import csv
import gzip
import io
import json
import zipfile
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

VERSION = "2"  # changes when the tables of the same bytes do: cached ones are then made again
Tables = dict[str, dict[str, np.ndarray]]
"""Columns by name, in tables by name."""

_CENSUS = ("age", "workclass", "weight", "education", "education_years", "marital_status", "occupation", "relationship")
_CENSUS += ("race", "sex", "capital_gain", "capital_loss", "hours", "country", "income")
_GZIP = b"\x1f\x8b"
_MONTH, _DAYS, _PER_HOUR = (2019, 5), 31, 12


def columns(text: str, delimiter: str = ",") -> dict[str, np.ndarray]:
    """Parse a CSV text with a header; each column becomes integers, else floats, else strings.

    >>> columns("name,flow\\na,1\\nb,2.5\\n")["flow"].tolist()
    [1.0, 2.5]
    """
    header, *rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    return {name: _column(cells) for name, cells in zip(header, zip(*rows, strict=True))}


def _column(cells) -> np.ndarray:
    """The cells as an array of integers, else of floats, else of strings."""
    for kind in (np.int64, np.float64):
        try:
            return np.array([kind(cell) for cell in cells])
        except ValueError:
            continue
    return np.array(cells, dtype=str)


def ratings(data: bytes) -> Tables:
    """Parse MovieLens: a table `ratings` with `user`, `item`, `rating` and `time` (seconds), stably sorted by time."""
    table = columns(data.decode(), "\t")
    named = {name.partition(":")[0].removesuffix("_id"): column for name, column in table.items()}
    order = np.argsort(named["timestamp"], kind="stable")
    user, item, time = (named[name][order].astype(np.int64) for name in ("user", "item", "timestamp"))
    return {"ratings": {"user": user, "item": item, "rating": named["rating"][order].astype(float), "time": time}}


def prices(data: bytes) -> Tables:
    """Parse a CSV file, plain or gzipped: a table `prices` with one column per asset, and `Date` where it is known."""
    return {"prices": columns((gzip.decompress(data) if data[:2] == _GZIP else data).decode())}


def network(data: bytes) -> Tables:
    """Parse a network of TopoHub (JSON) into three tables.

    `nodes`: name, longitude, latitude. `links`: source, target, length in km. `demands`: source, target, amount.
    """
    found = json.loads(data)
    nodes = sorted(found["nodes"], key=lambda node: node["id"])
    links = found["edges"]
    demands = [
        (int(source), int(target), float(amount))
        for source, targets in found["graph"]["demands"].items()
        for target, amount in targets.items()
    ]
    source, target, amount = map(np.array, zip(*sorted(demands)))
    return {
        "nodes": {
            "name": np.array([node["name"] for node in nodes]),
            "longitude": np.array([node["pos"][0] for node in nodes], float),
            "latitude": np.array([node["pos"][1] for node in nodes], float),
        },
        "links": {
            "source": np.array([link["source"] for link in links]),
            "target": np.array([link["target"] for link in links]),
            "length": np.array([link["dist"] for link in links], float),
        },
        "demands": {"source": source, "target": target, "amount": amount},
    }


def census(*files: bytes) -> Tables:
    """Parse the files of Adult, training rows before test rows, into the table `people`.

    It has 14 columns and `above_50k`: 1 for an income above 50,000 dollars, else 0.
    """
    rows = []
    for data in files:
        lines = data.decode().splitlines()
        rows += [line.rstrip(".").replace(", ", ",") for line in lines if line and not line.startswith("|")]
    table = columns("\n".join([",".join(_CENSUS), *rows]))
    table["above_50k"] = (table.pop("income") == ">50K").astype(np.int64)
    return {"people": table}


def arrests(data: bytes) -> Tables:
    """Parse the zipped CSV file into the table `arrests`, in the order of the file.

    Columns: released, colour, year, age, sex, employed, citizen, checks.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (name,) = archive.namelist()
        return {"arrests": columns(archive.read(name).decode())}


def charging(sessions: bytes, carbon: bytes) -> Tables:
    """Parse one month of charging sessions and of the grid's emissions, both from gzipped CSV.

    Times are hours since the month's first local midnight, energy is in kWh, carbon in kg of CO2 per kWh.

    - `sessions`: arrival, departure, energy (as requested), station.
    - `carbon`: one row per hour, with the marginal emissions `carbon`, and the forecasts `ahead_1` to `ahead_3` for
      that hour and the next two, made at the start of the hour.
    """
    zone = ZoneInfo("America/Los_Angeles")
    midnight = datetime(*_MONTH, 1, tzinfo=zone)

    def hours(moments):
        return np.array([(datetime.fromisoformat(moment) - midnight).total_seconds() / 3600 for moment in moments])

    cars = columns(gzip.decompress(sessions).decode())
    arrival, departure = hours(cars["arrival"]), hours(cars["departure"])
    kept = arrival < 24 * _DAYS
    grid = columns(gzip.decompress(carbon).decode())
    rows = np.flatnonzero((hours(grid["time"]) >= 0) & (hours(grid["time"]) < 24 * _DAYS))
    firsts = rows[::_PER_HOUR]  # one row in five minutes
    means = {"carbon": grid["moer"][rows].reshape(-1, _PER_HOUR).mean(1)}
    for hour in (1, 2, 3):
        names = [f"f{step}" for step in range(_PER_HOUR * (hour - 1) + 1, _PER_HOUR * hour + 1)]
        means[f"ahead_{hour}"] = np.mean([grid[name][firsts] for name in names], axis=0)
    return {
        "sessions": {
            "arrival": arrival[kept].round(3),
            "departure": departure[kept].round(3),
            "energy": cars["requested_energy (kWh)"][kept].round(3),
            "station": cars["station_id"][kept],
        },
        "carbon": {name: column.round(5) for name, column in means.items()},
    }
