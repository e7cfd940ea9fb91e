"""The arena for requests: its table says what was played, and its rivals were tuned on other seeds."""

import sys

import pytest

import cocoax as cx
from cocoax import cli
from cocoax.lab import arena
from cocoax.lab.arena import requests, tuning


def test_the_command_plays_and_writes_the_table(tmp_path, monkeypatch, capsys):
    words = ["--problems", "offers, budget 20%", "--horizons", "40,80", "--seeds", "2", "--quiet"]
    monkeypatch.setattr(sys, "argv", ["cocoax", "race", "requests", *words, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code and (tmp_path / "report.html").exists()
    text = (tmp_path / "requests.md").read_text("utf-8")
    assert text in capsys.readouterr().out and "cocoax race requests --problems" in text
    row = next(line for line in text.splitlines() if line.startswith("| offers, budget 20% | 80 |"))
    study = arena.requests_study(tmp_path, seeds=range(5000, 5002), horizons=[40, 80], names=["offers, budget 20%"])
    assert not study.missing()
    table = study.table().filter(learner="AutoPrice", horizon=80)
    score = 100 * (table["score"] / table["comparator"].abs()).mean()
    assert f"| {score:.2f} (" in row and "tuned" not in row and "none" not in row


def test_every_family_is_tuned_for_every_problem():
    found = requests.tuned()
    assert found.keys() == arena.REQUESTS.keys()
    for by_family in found.values():
        assert by_family.keys() == requests.FAMILIES.keys()


def test_nonsense_is_refused():
    with pytest.raises(cx.LabError, match=f"rivals were tuned on the seed {tuning.SEEDS[0]}"):
        arena.requests_study(seeds=[5, tuning.SEEDS[0]])
    with pytest.raises(cx.LabError, match="did you mean 'heavy tails'"):
        arena.requests_study(names=["heavy tail"])
