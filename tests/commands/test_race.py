"""`cocoax race FILE`: what one may say beside the file, and code that runs only where it is allowed."""

import re

import polars as pl
import pytest
from cli_tools import refused, run

import cocoax as cx
from cocoax.lab import code

MINE = """
import cocoax as cx
class MomFW(cx.learners.Stay): pass
class Step(cx.primal.OGD): pass
class Hungry(cx.learners.Stay):
    def __init__(self, food): pass
momentum = MomFW()
three = 3
"""
TOML = """
horizons = [50]
seeds = 5
[problems.simplex]
name = "simplex"
n = 4
[learners."yours, with a comma"]
name = "mine:MomFW"
[learners.stay]
name = "Stay"
[learners.projected]
name = "OGD"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "race.toml").write_text(TOML)
    return tmp_path


def test_horizons_seeds_and_learners_are_chosen_on_the_command_line(folder):
    words = ["--horizons", "6,9", "--seeds", 2, "--allow-code", "--certify", "--out", folder / "out", "--quiet"]
    answer = run("race", folder / "race.toml", *words, "--learners", "yours, with a comma, Stay")
    assert answer.status == 0, answer.err
    table = pl.read_parquet(folder / "out" / "table.parquet")
    assert set(table["horizon"]) == {6, 9} and set(table["seed"]) == {0, 1}
    assert list(dict.fromkeys(table["learner"])) == ["yours, with a comma", "stay"]
    assert table.filter(learner="stay")["score"].equals(table.filter(learner="yours, with a comma")["score"])
    assert table["regret_bound"].is_finite().all()  # --certify
    assert "share the lowest score on simplex" in (folder / "out" / "report.html").read_text()


def test_toml_runs_code_only_where_that_is_allowed(folder):
    (folder / "mine.py").write_text("1 / 0\n")
    refused(run("race", folder / "race.toml", "--out", folder / "out"), "'mine:MomFW'", "--allow-code")
    refused(run("race", folder / "race.toml", "--out", folder / "out", "--allow-code"), "ZeroDivisionError")


@pytest.mark.parametrize(
    "text, parts",
    [
        ("none.py:MomFW", ["there is no file", "FILE.py:NAME"]),
        ("MomFW", ["FILE.py:NAME", "'MomFW'"]),
        ("mine.py", ["FILE.py:NAME", "'mine.py'", "say which name"]),
        ("mine.py:MomFv", ["did you mean 'MomFW'?"]),
        ("mine.py:three", ["must be a learner or a primal", "got int"]),
        ("mine.py:Hungry", ["needs arguments", "'food'", "mine = Hungry(...)"]),
    ],
)
def test_wrong_challengers_are_refused(folder, monkeypatch, text, parts):
    monkeypatch.chdir(folder)
    refused(run("race", "arena", "--challenger", text, "--out", folder / "out"), *parts)


def test_options_and_files_of_other_kinds_are_refused(folder):
    refused(run("race", "arena", "--allow-code", "--out", folder / "out"), "--allow-code is for TOML files")
    (folder / "rounds.csv").write_text("a,b\n")
    refused(run("race", folder / "rounds.csv", "--out", folder / "out"), "neither a .py nor a .toml file")


def test_a_challenger_is_a_learner_or_a_primal(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for text in ("mine.py:MomFW", "mine:momentum"):
        name, learner = code.learner_from(text)
        assert name == text.split(":")[1] and isinstance(learner, cx.learners.Stay)
    name, learner = code.learner_from("mine.py:Step")
    assert name == "Step" and isinstance(learner, cx.learners.PrimalDual) and type(learner.dual) is cx.dual.RobustPI


def test_options_that_belong_elsewhere_are_refused(folder):
    refused(run("race", folder / "race.toml", "--problems", "simplex"), "are for `cocoax race arena`")
    refused(run("race", folder / "race.toml", "--challenger", "mine.py:MomFW"), "are for `cocoax race arena`")
    refused(run("race", "arena", "--learners", "Auto"), "--learners is for files")
    refused(run("race", "requests", "--challenger", "mine.py:MomFW"), "--challenger for `cocoax race arena`")


def test_all_problems_are_built_before_the_first_is_played(folder):
    text = "\n".join(
        [
            "import functools, cocoax as cx",
            "problems = {'good': functools.partial(cx.problems.simplex, n=4), 'bad': lambda key: 1 / 0}",
            "learners, horizons, seeds = {'stay': cx.learners.Stay()}, [6], [0]",
        ]
    )
    (folder / "race.py").write_text(text)
    refused(run("race", folder / "race.py", "--out", folder / "out", "--quiet"), "'bad'", "ZeroDivisionError")
    assert not list((folder / "out" / "store").iterdir())


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("race", "problems learners challenger horizons seeds allow-code out resume quiet workers cluster certify"),
        ("reproduce", "quick learners horizons instances seed out resume quiet workers cluster certify"),
        ("theory", "learners horizons diameter lipschitz smoothness bound dimension beta"),
        ("list", "cite"),
        ("serve", "host port tokens body queue campaigns log-all"),
    ],
)
def test_help_shows_every_option_that_scripts_of_users_have(command, options, monkeypatch):
    """None may vanish or change its name; Typer's own are not ours to promise."""
    monkeypatch.setenv("COLUMNS", "200")
    shown = set(re.findall(r"--[a-z][\w-]*", run(command, "--help").out))
    assert {"--help", *(f"--{option}" for option in options.split())} <= shown
    assert not shown & {"--install-completion", "--show-completion"}
