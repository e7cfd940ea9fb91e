"""Studies: the same games as `play` plays, stored so that nothing is lost or repeated."""

import functools
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from scipy import stats

import cocoax as cx
from cocoax.lab import Study
from cocoax.lab.results import statistics
from cocoax.lab.results.store import Store, packed
from cocoax.lab.run import batch, tasks
from cocoax.lab.run.batch import capacity_of
from cocoax.lab.run.progress import Reporter
from cocoax.lab.sources import learner_key

PROBLEM = functools.partial(cx.problems.simplex, n=4)
LEARNERS = {"stay": cx.learners.Stay(), "OCG": cx.learners.Blocks(cx.primal.OCG()), "PDMFW": cx.learners.PDMFW()}


def small(out=None, **changes):
    given = {"problems": {"simplex": PROBLEM}, "learners": LEARNERS, "horizons": [8, 20], "seeds": range(3)}
    return Study(**{**given, **changes}, out=out)


@pytest.fixture(scope="session")
def finished():
    return small().run(quiet=True)


def test_games_are_those_of_play(finished):
    source = finished.sources["simplex"]
    rows = finished.table().filter(pl.col("seed") == 2)
    for row in rows.iter_rows(named=True):
        T, drawn = row["horizon"], source.draw(2, 20)
        rounds = jax.tree.map(lambda leaf, T=T: leaf[:T], drawn.rounds)
        horizon = cx.Horizon(T, capacity_of(T))
        game = cx.play(drawn.problem, LEARNERS[row["learner"]], rounds, key=learner_key(2), horizon=horizon)
        best = drawn.instance.comparator(rounds, tol=finished.tol)
        np.testing.assert_allclose(row["regret"], game.regret(best)[-1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(row["violation"], game.violation()[-1].max(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(row["score"], game.score(best)[-1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(row["lmo_calls"], game.lmo_calls.mean())
        np.testing.assert_allclose(row["gradient_calls"], game.gradient_calls.mean())
        np.testing.assert_allclose(row["multiplier"], game.multiplier.max(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(row["hard_violation"], game.hard_violation()[-1].max(), rtol=1e-9)
        np.testing.assert_allclose(row["regret_upper"], game.regret_bounds(best)[1][-1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(row["loss"], game.loss.sum(), rtol=1e-9)
        assert 0 <= row["gap"] <= finished.tol * max(1, abs(float(best.value)))


def test_a_shorter_horizon_meets_the_same_rounds(finished):
    source = finished.sources["simplex"]
    short, long = source.draw(1, 5).rounds, source.draw(1, 20).rounds
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[:5]), short, long)


def test_curves_end_at_the_figures(finished):
    last = finished.curves().group_by("learner", "horizon", "seed", maintain_order=True).last()
    joined = last.join(finished.table(), on=["learner", "horizon", "seed"], suffix="_table")
    assert len(joined) == len(finished.table())
    np.testing.assert_array_equal(joined["round"], joined["horizon"])
    np.testing.assert_array_equal(joined["regret"], joined["regret_table"])
    np.testing.assert_array_equal(joined["violation"], joined["violation_table"])


def test_accelerators_play_several_horizons_in_one_call(monkeypatch):
    horizons, learners = [3, 8, 9, 13, 20, 25, 31], {"OCG": LEARNERS["OCG"], "DPP": cx.learners.DPP()}
    with jax.enable_x64(True):
        alone = small(horizons=horizons, learners=learners).run(quiet=True).table()
        before = batch._program.cache_info().misses
        monkeypatch.setattr(jax, "default_backend", lambda: "an accelerator")
        together = small(horizons=horizons, learners=learners).run(quiet=True).table()
        assert batch._program.cache_info().misses == before + len(learners)
    assert alone["reason"].null_count() == together["reason"].null_count() == len(alone) == 42
    for figure in ("regret", "violation", "score", "loss", "multiplier", "lmo_calls", "gradient_calls", "bad_round"):
        np.testing.assert_allclose(together[figure], alone[figure], rtol=1e-9, atol=1e-9)


def test_horizons_of_one_call_share_seeds_and_capacity():
    keys = {T: dict.fromkeys([0] if T == 8 else [0, 1], "key") for T in (3, 8, 9, 13, 20, 25, 31, 2000)}
    assert [list(call) for call in tasks._calls(keys, "gpu")] == [[2000], [31, 25, 20, 13, 9], [8], [3]]
    assert [list(call) for call in tasks._calls(keys, "cpu")] == [[2000], [31], [25], [20], [13], [9], [8], [3]]


def test_games_but_not_comparators_depend_on_the_device():
    here, there = small(), small()
    there.device = "another"
    assert not {game.key for game in here.plan} & {game.key for game in there.plan}
    assert here.comparator_keys("simplex", [0], [8]) == there.comparator_keys("simplex", [0], [8])


def test_a_plan_follows_whether_games_are_certified():
    study = small()
    plain = study.plan
    study.certify = True
    assert not {game.key for game in plain} & {game.key for game in study.plan}
    assert study.plan == small(certify=True).plan
    study.certify = False
    assert study.plan == plain


def test_one_compilation_serves_all_horizons():
    study = small(learners={"OCG": LEARNERS["OCG"]}).run(quiet=True)
    before = batch._program.cache_info().misses
    Study(study.sources, study.learners, [9, 11, 17], range(3)).run(quiet=True)
    assert batch._program.cache_info().misses == before


def test_learners_that_cannot_play_are_named(finished):
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x))  # no constants
    study = small(problems={"bare": (problem, jnp.ones((20, 3)))}, seeds=[0], horizons=[5]).run(quiet=True)
    reasons = dict(zip(study.table()["learner"], study.table()["reason"]))
    assert "lipschitz" in reasons["OCG"] and reasons["stay"] is None


def test_what_play_refuses_a_study_refuses():
    unsafe = cx.learners.Capped(cx.learners.Stay(), safe=2 * np.ones(4), limit=1.0, bound=1.0)
    study = small(learners={"stay": LEARNERS["stay"], "unsafe": unsafe}, seeds=[0], horizons=[5]).run(quiet=True)
    reasons = dict(zip(study.table()["learner"], study.table()["reason"]))
    assert "safe must lie in the domain" in reasons["unsafe"] and reasons["stay"] is None


def test_a_problem_that_cannot_be_met_has_no_regret_but_a_violation():
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(2), lambda x, r: jnp.vdot(r, x), lambda x, r: 1.0 + 0 * jnp.sum(x)
    )
    study = small(problems={"never": (problem, jnp.ones((20, 2)))}, learners={"stay": cx.learners.Stay()}, seeds=[0])
    row = study.run(quiet=True).table().row(0, named=True)
    assert np.isnan(row["regret"]) and row["violation"] == row["horizon"]


def test_a_seed_without_a_comparator_is_left_out_of_regret_alone(finished):
    unknown = pl.when(pl.col("seed") == 0).then(np.nan)
    table = finished.table().with_columns(unknown.otherwise(pl.col(x)).alias(x) for x in ("regret", "score"))
    row = statistics.summary(table).row(0, named=True)
    games = table.filter(pl.col("learner") == row["learner"], pl.col("horizon") == row["horizon"])
    np.testing.assert_allclose(row["regret_mean"], games["regret"].to_numpy()[1:].mean())
    np.testing.assert_allclose(row["violation_mean"], games["violation"].mean())
    low, high = stats.t.interval(0.95, 1, scale=stats.sem(games["regret"].to_numpy()[1:]))
    np.testing.assert_allclose(row["regret_half"], (high - low) / 2)
    assert (statistics.differences(table).filter(pl.col("figure") == "regret")["games"] == 2).all()


@pytest.mark.parametrize("change", ["code", "backend", "width", "tol"])
def test_keys_hold_what_else_determines_a_game(monkeypatch, change):
    before = small().plan[0].key
    match change:
        case "code":
            monkeypatch.setattr("cocoax.lab.study.library", lambda: "other code")
        case "backend":
            monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
        case "width":
            monkeypatch.setattr(jnp, "result_type", lambda *_: "float16")
    assert small(tol=1e-2 if change == "tol" else 1e-3).plan[0].key != before


def test_chunks_and_unlike_instances_change_nothing(finished, monkeypatch):
    monkeypatch.setattr(batch, "_MOST_BYTES", 1)  # one game a call
    apart = small().run(quiet=True).table()
    assert apart["seed"].equals(finished.table()["seed"])
    for name in ("regret", "violation", "multiplier"):
        np.testing.assert_allclose(apart[name], finished.table()[name], rtol=1e-9, atol=1e-9)

    def unlike(key):
        return cx.problems.pacing(key, segments=2 + int(jax.random.bits(key) % 2))

    study = small(problems={"unlike": unlike}, learners={"stay": cx.learners.Stay()}, horizons=[5], seeds=range(5)).run(
        quiet=True
    )
    sizes = [study.sources["unlike"].draw(seed, 5).problem.domain.dimension for seed in study.seeds]
    assert len(set(sizes)) == 2 and len(study.table()) == len(sizes)
    for seed, loss in zip(study.seeds, study.table()["loss"]):
        drawn = study.sources["unlike"].draw(seed, 5)
        game = cx.play(drawn.problem, cx.learners.Stay(), drawn.rounds, key=learner_key(seed))
        np.testing.assert_allclose(loss, game.loss.sum(), rtol=1e-9, atol=1e-12)


def test_bad_rounds_are_told():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, r: jnp.vdot(r, x))
    rounds = jnp.ones((20, 2)).at[6, 0].set(jnp.nan)
    learners = {"stay": cx.learners.Stay()}
    study = small(problems={"bad": (problem, rounds)}, learners=learners, horizons=[5, 10], seeds=[0])
    assert study.run(quiet=True).table()["bad_round"].to_list() == [-1, 6]


class Needy(cx.learners.Stay):
    def init(self, problem, *, key, horizon=None, start=None):
        if "COCOAX_TEST_READY" not in os.environ:
            raise ValueError("something is missing")
        return super().init(problem, key=key, horizon=horizon, start=start)


def test_refusals_stop_nobody_and_are_tried_again(tmp_path, monkeypatch):
    learners = {"needy": Needy(), "stay": cx.learners.Stay()}
    first = small(tmp_path, learners=learners, horizons=[6]).run(quiet=True).table()
    assert first["reason"].to_list() == ["ValueError: something is missing"] * 3 + [None] * 3
    monkeypatch.setenv("COCOAX_TEST_READY", "1")
    assert small(tmp_path, learners=learners, horizons=[6]).run(quiet=True).table()["reason"].is_null().all()


def test_a_full_disk_is_said_and_leaves_nothing_half(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    small(tmp_path, horizons=[8], learners={"stay": cx.learners.Stay()}).run(quiet=True)
    before = sorted(path.name for path in (tmp_path / "store").iterdir())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(cx.LabError, match="No space left on device; what was stored before is safe"):
        small(tmp_path, horizons=[9], learners={"stay": cx.learners.Stay()}).run(quiet=True)
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == before


def test_estimates_begin_sensibly(monkeypatch):
    """Comparators that came before the first game are not taken for idle time, and those to come are counted."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with Reporter(1000, 1, quiet=True, compared=300) as reporter:
        assert reporter._left(1.0) == "time left not known yet"
        clock[0] = 30.0
        reporter.advance_comparators(100, 30.0)
        clock[0] = 31.0
        reporter.advance("lane", 100, 1, 1.0, 1.0)
        # 900 rounds at 1 s for 100, and comparators of 200 rounds at 30 s for 100, one after the other
        assert reporter._left(31.0) == "69 s left"


def test_progress_in_plain_logs(capsys, monkeypatch):
    """The first batch of a lane compiles, which is not taken for the speed of its rounds."""
    monkeypatch.setattr("cocoax.lab.run.progress._SECONDS", 0)
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with Reporter(1000, 2) as reporter:
        reporter.now("first")
        clock[0] = 11.0  # seconds: 10 of compilation, then 1 for a tenth of the rounds
        reporter.advance("lane 1", 100, 2, 11.0, 1.0)
        reporter.now("second")
        reporter.advance("lane 1", 400, 8, 4.0, 4.0)
        clock[0] = 15.0
        reporter.now("third")
        clock[0] = 16.0
        reporter.say("the worker a is gone")
    assert capsys.readouterr().err.splitlines() == [
        "  0%, 0 batches, 0 games a second, time left not known yet: first",
        " 10%, 1 batch, 0.182 games a second, 19 s left: second",
        " 50%, 2 batches, 0.667 games a second, 15 s left: third",
        "the worker a is gone",
    ]


def test_what_is_stored_is_not_played_again(tmp_path, finished, monkeypatch):
    small(tmp_path, horizons=[8]).run(quiet=True)
    played = []
    append = Store.append
    monkeypatch.setattr(
        Store, "append", lambda self, kind, batch: (played.append((kind, len(batch.rows()))), append(self, kind, batch))
    )
    study = small(tmp_path).run(quiet=True)
    assert {kind: sum(n for k, n in played if k == kind) for kind in ("game", "comparator")} == {
        "game": 9,
        "comparator": 3,
    }
    assert study.table().equals(finished.table())
    played.clear()
    assert small(tmp_path).run(quiet=True).table().equals(finished.table()) and not played
    another = {"theta x 2": cx.learners.Blocks(cx.primal.OCG(), theta_scale=2.0)}
    small(tmp_path, learners=another).run(quiet=True)
    assert played == [("game", 3), ("game", 3)]  # against the comparators that are stored


OF_OTHER_CODE = """
import sys
import jax
import cocoax as cx
from cocoax.lab import Study
problem = cx.problems.simplex(jax.random.key(0), n=3)
study = Study({"simplex": problem}, {"DPP": cx.learners.DPP()}, [20], [0], out=sys.argv[1])
print(len(study.missing()), study.run(quiet=True).table()["regret"].item(), len(study.missing()))
"""


def test_games_of_other_code_are_not_shown(tmp_path):
    """The weight of a constraint in the library times 100; then a comment."""
    package = tmp_path / "cocoax"
    shutil.copytree(Path(cx.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    queue = package / "dual" / "virtual_queue.py"
    before = queue.read_text()

    def played():
        command = [sys.executable, "-c", OF_OTHER_CODE, tmp_path / "out"]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        missing, regret, left = answer.stdout.split()
        return int(missing), float(regret), int(left)

    first = played()
    assert first[0] == 1 and played() == (0, first[1], 0)
    old = "return jnp.maximum(state + moved.linearised(), 0)"
    assert old in before
    queue.write_text(before.replace(old, old.replace("moved", "100 * moved")))
    other = played()
    assert other[0] == 1 and other[1] != first[1]
    queue.write_text(f"# a comment\n{before}")
    assert played() == (0, first[1], 0)


USERS = """
import jax, jax.numpy as jnp
import numpy as np
import cocoax as cx
PRICE = 1.0
def loss(x, r): return PRICE * jnp.vdot(r["cost"], x)
def rounds(key): return {"cost": 2.0 * jax.random.normal(key, (3,))}
class Learner(cx.learners.Stay):
    def decision(self, state): return 0.5 * super().decision(state)
def problem(key):
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), loss)
    return cx.problems.Instance(problem, cx.Sampler(rounds), None, None)
def on_the_host(key):
    cost = 3.0 * np.random.default_rng(int(jax.random.bits(key) % 1000)).standard_normal(3)
    return cx.problems.Instance(problem(key).problem, cx.Sampler(lambda key: {"cost": jnp.asarray(cost)}), None, None)
def from_data(key):
    return cx.problems.Instance(problem(key).problem, Data(np.linspace(0.0, 4.0, 60).reshape(20, 3)), None, None)
class Data(cx.Environment):
    cost: jax.Array
    def init(self, key): return jnp.zeros((), int)
    def emit(self, state, decision, key): return state + 1, {"cost": self.cost[state]}
"""
CHANGES = {
    "a comment": ("PRICE = 1.0", "# of a unit\nPRICE = 1.0", set()),
    "a name": ("PRICE", "RATE", set()),
    "a loss": ("PRICE = 1.0", "PRICE = 3.0", {"problem", "on_the_host", "from_data"}),
    "rounds": ("2.0 *", "2.5 *", {"problem"}),
    "a learner": ("0.5 * super", "0.25 * super", {"Learner"}),
    "rounds on the host": ("3.0 *", "3.5 *", {"on_the_host"}),
    "data": ("4.0", "5.0", {"from_data"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_games_are_known_by_what_users_code_computes(change):
    def keys(text):
        exec(text, names := {"__name__": "race"})
        problems = {name: names[name] for name in ("problem", "on_the_host", "from_data")}
        learners = {"stay": cx.learners.Stay(), "Learner": {"problem": names["Learner"]()}}
        return {(game.problem, game.learner): game.key for game in small(problems=problems, learners=learners).plan}

    old, new, changed = CHANGES[change]
    before, after = keys(USERS), keys(USERS.replace(old, new))
    assert {pair for pair in before if before[pair] != after[pair]} == {pair for pair in before if changed & set(pair)}


def test_the_answers_of_a_users_domain_belong_to_every_game_on_it():
    def key(factor):
        domain = cx.domains.from_lmo(lambda direction: factor * jnp.sign(direction), start=jnp.zeros(2), diameter=9.0)
        problem = cx.Problem(domain, lambda x, r: jnp.vdot(r, x))
        return small(problems={"own": (problem, jnp.ones((20, 2)))}).plan[0].key

    assert key(-1.0) == key(-1.0) != key(-2.0)


SCRIPT = """
import functools, sys
import jax
jax.config.update("jax_enable_x64", True)
import cocoax as cx
from cocoax.lab import Study
learners = {"stay": cx.learners.Stay(), "OCG": cx.learners.Blocks(cx.primal.OCG()), "DPP": cx.learners.DPP()}
problem = functools.partial(cx.problems.simplex, n=4)
study = Study({"simplex": problem}, learners, [5, 6, 7, 8, 20], range(3), out=sys.argv[1])
study.run(quiet=True)
study.table().write_parquet(sys.argv[2])
"""


def start(tmp_path, out, table):
    script = tmp_path / "script.py"
    if not script.exists():  # another process may be about to read it
        script.write_text(textwrap.dedent(SCRIPT))
    return subprocess.Popen([sys.executable, script, tmp_path / out, tmp_path / table])


@pytest.mark.parametrize("kills", [(4,), pytest.param((1, 4, 8), marks=pytest.mark.slow)])
def test_killed_at_any_moment_and_two_at_once(tmp_path, kills):
    """Kills after so many parts; the last two processes run side by side into the same store."""
    for parts in kills:
        process = start(tmp_path, "store", "none.parquet")
        while process.poll() is None and len(list((tmp_path / "store" / "store").glob("*.parquet"))) < parts:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    both = [start(tmp_path, "store", f"resumed{i}.parquet") for i in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert start(tmp_path, "whole", "whole.parquet").wait() == 0
    whole = pl.read_parquet(tmp_path / "whole.parquet")
    assert len(whole) == 45
    for i in range(2):
        assert pl.read_parquet(tmp_path / f"resumed{i}.parquet").equals(whole)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"problems": {}}, "problems must be a dict of at least one problem"),
        ({"problems": {"x": 3}}, "the problem 'x' must be a function key -> Instance"),
        ({"learners": {"OCG": cx.primal.OCG()}}, "'OCG' must be one of cocoax.learners"),
        ({"learners": {"stay": cx.learners.Stay}}, r"Stay is a class; write Stay\(...\)"),
        ({"horizons": [0]}, "horizons must be at least 1, got 0"),
        ({"horizons": {"other": [1]}}, "none for 'simplex'"),
        ({"horizons": 5}, "horizons must be a list"),
        ({"seeds": []}, "seeds must hold at least one number"),
    ],
)
def test_bad_studies_are_refused(changes, message):
    with pytest.raises(cx.CocoaxError, match=message):
        small(**changes)


def test_too_few_rounds_are_refused():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x))
    with pytest.raises(cx.ProblemError, match="has 10 rounds, but a horizon of 20"):
        small(problems={"short": (problem, jnp.ones((10, 3)))}).run(quiet=True)


def test_stores_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(cx.LabError, match="cannot write into"):
        Store(tmp_path / "file" / "store")
    store = Store(tmp_path / "torn")
    store.append("game", packed(pl.DataFrame({"key": ["a"]})))
    next(store.folder.iterdir()).write_bytes(b"PAR1 not really")
    with pytest.raises(cx.LabError, match="damaged"):
        store.read("game")


def test_rows_are_read_once_each_whatever_their_columns(tmp_path):
    store = Store(tmp_path / "a[1]*")
    store.append("game", packed(pl.DataFrame({"key": ["a", "b"], "x": [1.0, 2.0]})))
    store.append("game", packed(pl.DataFrame({"key": ["b", "c"], "x": [2.0, 3.0]})))
    assert dict(store.read("game").sort("key").iter_rows()) == {"a": 1, "b": 2, "c": 3}
    store.append("game", packed(pl.DataFrame({"key": ["d"], "y": [4]})))
    found = store.read("game").sort("key")
    assert found["key"].to_list() == ["a", "b", "c", "d"] and found["y"].to_list() == [None, None, None, 4]
    assert store.keys("game") == {"a", "b", "c", "d"}


def test_a_study_prints_who_leads_and_never_fails_to_print():
    learners = {"stay": cx.learners.Stay(), "DPP": cx.learners.DPP()}
    study = Study({"pacing": lambda key: cx.problems.pacing(key, segments=3)}, learners, [5], seeds=range(2))
    assert str(study).splitlines() == [
        "Study of 2 learners on 1 problem, 2 seeds: 0 of 4 games played",
        "  pacing  T = 5",
    ]
    study.run(quiet=True)
    scores = study.table().group_by("learner").agg(pl.col("score").mean()).sort("score")
    ranked = ", ".join(f"{name} {score:.4g}" for name, score in scores.iter_rows())
    assert str(study).splitlines()[1] == f"  pacing  mean score at T = 5, lowest first: {ranked}"
    assert "4 of 4 games played" in study._repr_html_()
    broken = Study({"pacing": lambda key: (cx, open)[0]}, {"stay": cx.learners.Stay()}, [5], seeds=[0])
    assert str(broken).startswith("Study of 1 learner on 1 problem, 1 seed: 0 of 1 game")
