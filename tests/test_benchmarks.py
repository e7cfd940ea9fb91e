"""`python -m benchmarks` runs in small, and its page says what was measured."""

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import cocoax as cx
from cocoax.lab import arena
from cocoax.lab.arena import series

ROOT = Path(__file__).parent.parent


@pytest.fixture
def module(monkeypatch):
    """A module of benchmarks/, which is no installed package."""
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module


def run(*arguments):
    env = {**os.environ, "MPLBACKEND": "agg"}
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_a_quick_run_writes_a_table_a_plot_and_its_figures(tmp_path):
    done = run("--quick", "--only", "lmos,throughput", "--out", str(tmp_path))  # these take least
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "cpu.json").read_text())
    assert list(found["sections"]) == ["lmos", "throughput"]
    page = (tmp_path / "benchmarks.md").read_text()
    for section in found["sections"].values():
        assert section["command"] == "python -m benchmarks --device cpu --quick --only lmos,throughput"
        assert section["versions"]["jax"] == jax.__version__
        measured = [row for row in section["rows"] if "skipped" not in row]
        assert measured and all(0 < row["low"] <= row["median"] <= row["high"] for row in measured)
        assert all(row["way"] in page and row["case"] in page for row in section["rows"])
    assert str(tmp_path) not in page
    assert (tmp_path / "benchmarks.png").stat().st_size > 1000


@pytest.mark.slow
def test_every_section_runs(tmp_path):
    done = run("--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_unknown_sections_and_quick_figures_in_the_docs_are_refused():
    assert "there is no section 'speed'" in run("--only", "speed").stderr
    assert "leave out --write-docs" in run("--quick", "--write-docs").stderr


def test_real_tables_print_the_rows_of_the_page(module, capsys):
    """The one of shipped data; the others are printed by the same lines."""
    real = module("benchmarks.real")
    real.main(["charging"])
    page = (ROOT / "docs" / "real_data.md").read_text()
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(table) == 3 and all(line in page for line in table)
    with pytest.raises(SystemExit):
        real.main(["cars"])
    assert "there is no table 'cars'; there are portfolios, telecom" in capsys.readouterr().err


def some_result(rows, name="rounds"):
    made = {"command": "python -m benchmarks", "date": "2026-01-02", "versions": {"jax": "1.2.3"}, "sources": "abc"}
    return {"device": "cpu", "sections": {name: {**made, "machine": "2 cores", "about": "About.", "rows": rows}}}


def test_a_page_has_medians_quartiles_targets_and_what_was_left_out(module, tmp_path):
    timing, render = module("benchmarks.timing"), module("benchmarks.render")
    ours, theirs = [0.001, 0.002, 0.003], [0.1, 0.2, 0.6]
    rows = [
        timing.row("9 x 9", "Auto", ours, size=9),
        timing.row("9 x 9", "projection", theirs, over="Auto", ours=ours, size=9),
        timing.row("9 x 9", "SVD / Auto", timing.ratios(theirs, ours), unit="x", target=(">=", 99.0), size=9),
        timing.row("9 x 9", "Auto / floor", [3.0], unit="x", target=("<=", 2.0), size=9),
        timing.skipped("9 x 9", "CVXPY", "not installed"),
    ]
    results = {"cpu": some_result(rows), "gpu": some_result(rows[:2])}
    assert "latest changes, and to be measured again: gpu lmos." in render.page(results, ["gpu lmos"])
    page = render.page(json.loads(json.dumps(results)))
    assert "measured again" not in page
    for said in (
        "| CPU | SVD / Auto, 9 x 9 | 100x (100x to 150x) | at least 99x | yes |",
        "| CPU | Auto / floor, 9 x 9 | 3x | at most 2x | **no** |",
        "| 9 x 9 | 2 ms (1.5 ms to 2.5 ms) | 200 ms (150 ms to 400 ms) | 100x (100x to 150x) | 3x |",
        "* not measured: CVXPY (9 x 9): not installed",
        "### GPU: 2 cores",
        "`python -m benchmarks`, 2026-01-02, jax 1.2.3, sources abc.",
    ):
        assert said in page
    assert render.plot(results, tmp_path / "plot.png")
    assert not render.plot({"cpu": some_result(rows, "lmos")}, tmp_path / "none.png")


def test_ratios_are_taken_turn_by_turn_or_over_the_median_of_what_was_repeated(module):
    timing = module("benchmarks.timing")
    assert timing.ratios([2.0, 6.0, 9.0, 1.0], [1.0, 2.0, 3.0]) == [2.0, 3.0, 3.0]
    assert timing.ratios([8.0], [1.0, 2.0, 9.0]) == [4.0]
    assert timing.ratios([1.0, 2.0, 9.0], [4.0]) == [0.5]


def test_long_calls_are_made_once_and_others_in_turn(module):
    timing, made = module("benchmarks.timing"), []
    calls = {name: lambda name=name: made.append(name) for name in "ab"}
    spent = timing.in_turn(calls, 4, long=-1.0, compiled=True)
    assert made == ["a", "b"] and all(len(each) == 1 for each in spent.values())
    monitored = timing.in_turn({**calls, "c": lambda: made.append("c")}, 2, compiled=True)
    assert all(len(each) == 2 for each in monitored.values())
    order = [name for name, before in zip(made[2:], [None, *made[2:]]) if name != before]
    assert order == list("abc") * 3  # once to warm up, then two turns


def test_the_plain_loop_is_algorithm_2_fed_with_the_same_coins(module):
    paper, count = module("benchmarks.sections.paper"), 20
    made, key, learner = cx.problems.matrix_completion(jax.random.key(0)), jax.random.key(2), cx.learners.PDMFW()
    exact = cx.domains.NuclearNormBall((50, 50), paper.RADIUS, method="exact")
    problem = eqx.tree_at(lambda each: each.domain, made.problem, exact)
    rounds = made.rounds(count, jax.random.key(1))
    game = cx.play(problem, learner, rounds, key=key)

    @jax.jit
    def draw(t):
        coins = jax.random.fold_in(jax.random.split(key)[0], t)
        coins = jnp.where(t == 0, jax.random.key_data(coins), jax.random.key_data(jax.random.split(coins)[1]))
        keys = jax.random.split(jax.random.wrap_key_data(coins), 5)  # K = ceil(sqrt(20))
        return jax.vmap(lambda each: learner.primal.noise.draw(each, jnp.zeros((50, 50))))(keys)

    noise = [np.asarray(draw(t), np.float32) for t in range(count)]
    arrays = {name: np.asarray(leaf, None if name == "entries" else np.float32) for name, leaf in rounds.items()}
    losses = paper.algorithm_2(arrays, paper.by_lapack, count, count, lambda t, k: noise[t][k])
    np.testing.assert_allclose(losses, game.loss, rtol=1e-6)  # NumPy's are in float32


def test_the_arena_is_tuned(tmp_path, monkeypatch, capsys, module):
    """Families that cannot play a problem are left out."""
    tune = module("benchmarks.tune")
    small = {"horizon": 20, "seeds": range(1000, 1002), "screened": 1, "finalists": 1, "thin": 5}
    names, family = ["curvatures 1, 10, 100", "two items, from nothing"], "exponentiated gradient"
    monkeypatch.setattr(tune, "FAMILIES", {family: tune.FAMILIES[family]})
    monkeypatch.setattr(tune, "COARSE", dict.fromkeys(names, small))
    for name in names:
        tune.keep("arena", {name: tune.tune_problem(name)}, tmp_path)
    found = json.loads((tmp_path / "tuned.json").read_text())["problems"]
    assert found.keys() == arena.ARENA.keys()
    assert found["curvatures 1, 10, 100"][family]["score"] > 0
    assert found["two items, from nothing"] == {}
    sentence = f"two items, from nothing: {family}: ExponentiatedGradient plays on a ProbabilitySimplex"
    assert sentence in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("benchopt") is None, reason='pip install "cocoax[benchopt]"')
def test_benchopt_runs_our_learners_on_our_series(tmp_path):
    """Its score is that of a game."""
    shutil.copytree(ROOT / "benchmarks" / "benchopt", tmp_path / "benchmark")
    assert sum(len(file.read_text().splitlines()) for file in tmp_path.rglob("*.py")) < 200
    chosen = ["-d", "arena-2026[series='cars, carbon',rounds=100]", "-s", "untuned[learner=Stay]"]
    chosen += ["-s", "tuned[family=['Tracked with ascent']]", "-n", "1", "-r", "1"]
    command = [sys.executable, "-m", "benchopt", "run", ".", *chosen, "--no-plot", "--no-html", "--output", "tiny"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path / "benchmark", env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    table = pl.read_parquet(tmp_path / "benchmark" / "outputs" / "tiny.parquet")
    scores = dict(zip(table["solver_name"], table["objective_value"]))
    assert set(scores) == {"untuned[learner=Stay]", "tuned[family=Tracked with ascent]"}
    one = series.frozen("cars, carbon")
    rounds = jax.tree.map(jnp.asarray, one.part(one.tuning, one.tuning + 100))
    game = cx.play(one.problem, cx.learners.Stay(), rounds, key=jax.random.key(0))
    expected = game.score(cx.hindsight(one.problem, rounds, tol=1e-4, progress=False))[-1]
    np.testing.assert_allclose(scores["untuned[learner=Stay]"], expected, rtol=1e-3)  # float32 there
