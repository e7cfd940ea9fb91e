"""The arena of 2026: series are frozen, rivals are tuned on their first part, and a learner of one's own can play."""

import re
import sys

import numpy as np
import pytest

import cocoax as cx
from cocoax import cli
from cocoax.lab import arena
from cocoax.lab.arena import series

CARS = "cars, carbon"  # the only real one that needs no download


def test_every_series_is_frozen_and_its_rivals_are_tuned():
    found = series.tuned()
    assert found.keys() == arena.SERIES.keys() == arena.REAL.keys() | arena.SYNTHETIC.keys()
    for name, entry in found.items():
        assert len(entry["hash"]) == 16 and len(entry["families"]) >= 2, name


def test_other_rounds_are_refused(monkeypatch):
    assert series.frozen(CARS).digest == series.tuned()[CARS]["hash"]
    changed = arena.SERIES[CARS]._replace(make=lambda: cx.problems.real.ev_charging(requests=False, budget=0.881))
    monkeypatch.setitem(series.SERIES, CARS, changed)
    with pytest.raises(cx.LabError, match="the series 'cars, carbon' is not the frozen one"):
        series.frozen(CARS)


def test_what_is_scored_is_what_was_not_tuned_on():
    one = series.series(CARS)
    study = arena.arena_2026_study(names=[CARS])
    rest = study.sources[CARS].rounds
    assert one.tuning == 277 and study.horizons[CARS] == [one.length - one.tuning] == [649]
    np.testing.assert_allclose(rest["missed"], one.rounds["missed"][277:])


def test_the_command_plays_a_learner_of_your_own_beside_auto(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text("import cocoax as cx\nmine = cx.learners.Stay()\n")
    words = ["--problems", CARS, "--challenger", f"{tmp_path / 'mine.py'}:mine", "--quiet", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["cocoax", "race", "arena-2026", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code and (tmp_path / "report.html").exists()
    text = (tmp_path / "arena-2026.md").read_text("utf-8")
    assert text in capsys.readouterr().out
    header, row = (line.split(" | ") for line in text.splitlines() if line.startswith(("| Real", f"| {CARS}")))
    assert header[1:5] == ["rounds", "Auto", "mine", "play the start"]
    assert row[1] == "649" and row[3] == row[4] and "none" not in row
    page = (tmp_path / "report.html").read_text("utf-8")
    (table,) = re.findall(r'<table data-table="own"><caption>Real</caption>.*?</table>', page, re.DOTALL)
    assert '<a href="#cars-carbon">cars, carbon</a>' in table and f">{row[2]}</td>" in table
    assert "Synthetic</caption>" not in page  # none of them was played


def test_missing_data_and_nonsense_are_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("COCOAX_DATA", str(tmp_path))
    with pytest.raises(cx.LabError, match="run `cocoax data fetch abilene adult arrests nyse_o sp500`"):
        arena.arena_2026_study()
    with pytest.raises(cx.LabError, match="did you mean 'cars, carbon'"):
        arena.arena_2026_study(names=["cars"])
    with pytest.raises(cx.LabError, match="cannot be called 'Auto'"):
        arena.arena_2026_study(names=[CARS], challengers={"Auto": cx.learners.Stay()})
