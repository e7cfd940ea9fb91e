"""The arena: its problems are what they say, rivals are tuned on other seeds, and the standings count right."""

import functools
import itertools
import re
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from benchmarks.tuning import GRIDS, Units
from slow_tools import slow_but

import cocoax as cx
from cocoax import Comparator, cli, learners, problems
from cocoax.lab import Study, arena
from cocoax.lab.arena import tuning
from cocoax.lab.arena.problems import tuned_horizon
from cocoax.lab.arena.ranking import START
from cocoax.lab.arena.rivals import (
    FAMILIES,
    MOST,
    TunedAdaptivePDOGD,
    TunedDPP,
    TunedPDOGD,
    TunedTracked,
    tuned_rivals,
)
from cocoax.lab.sources import as_source
from cocoax.primal.steps import Constant

KEY = jax.random.key(5)
ROUNDS = 60
SMALL = {
    "completion, 200 x 200": functools.partial(problems.matrix_completion, rows=20, cols=20, rank=5, observed=16),
    "100,000 experts": functools.partial(problems.experts, n=1000),
}
UNBOUND = {"completion", "completion, rank 5", "completion, 200 x 200", "never binds"}
LATE = {"wakes late": 500, "pacing, prices double": 500, "3% of constraints seen": 500, "3% of all seen": 500}


@functools.cache
def drawn(name):
    made = as_source(name, SMALL.get(name, arena.ARENA[name])).draw(0, LATE.get(name, 0) + 4 * ROUNDS)
    return made, made.comparator(LATE.get(name, 0) + 4 * ROUNDS, 1e-5)


def test_there_are_enough_problems_of_every_kind():
    assert len(arena.ARENA) >= 50 and arena.HORIZONS.keys() == arena.ARENA.keys()
    assert len(arena.VERSION_1) == 27 and tuple(arena.ARENA)[:27] == arena.VERSION_1
    assert {name for name in arena.ARENA if tuned_horizon(name) != tuning.HORIZON} == {"100,000 experts"}
    assert all(tuned_horizon(name) in each for name, each in arena.HORIZONS.items())


# Of each kind of version 1 that no independent solver is asked for, below; of each other kind,
# tests/problems/test_mean_problems.py asks the same
ONE_OF_EACH = ["completion, binding", "linear, 3 constraints", "pacing, prices double", "l1 regression, absolute"]
ONE_OF_EACH += ["group sparsity", "never binds", "wakes late", "units of 1e-3"]


@pytest.mark.parametrize("name", slow_but(ONE_OF_EACH, arena.ARENA))
def test_every_problem_has_a_certified_comparator_and_something_to_learn(name):
    made, best = drawn(name)
    domain = made.problem.domain
    start = Comparator.fixed(made.problem, made.rounds, domain.start())
    score = start.value - best.value + best.price @ np.maximum(start.constraint.sum(0), 0)
    assert score > 0 and abs(float(best.gap)) <= 1e-3 * score
    assert np.isfinite(best.multiplier).all()
    assert (best.multiplier.max(initial=0.0) > 1e-12) == (made.problem.constraints > 0 and name not in UNBOUND)
    assert bool(domain.contains(jax.tree.map(jnp.asarray, best.x), 1e-5))
    expected = made.instance.expected_constraint
    mean = best.constraint.mean(0) if expected is None else np.asarray(expected(jnp.asarray(best.x)))
    values = np.concatenate([best.constraint, start.constraint])  # where all rounds are alike, the best has 0
    size = np.abs(values).max(0)
    assert np.all(mean <= 1e-4 * np.maximum(size, 1e-6))


@pytest.mark.parametrize("name", ["portfolio", "shortest path", "l1 regression", "online PCA"])
def test_new_problems_agree_with_an_independent_solver(name):
    """cvxpy minimises the same total loss over the set, written out again, under the expected constraint."""
    import cvxpy as cp

    made, best = drawn(name)
    r = {key: np.asarray(value, np.float64) for key, value in made.rounds.items()}
    sample = made.instance.environment.sample  # pyright: ignore[reportAttributeAccessIssue]
    if name == "portfolio":
        x = cp.Variable(10, nonneg=True)
        total, within = -cp.sum(cp.log(r["growth"] @ x)), [cp.sum(x) == 1]
        limit = np.asarray(sample.risk) @ x <= float(sample.limit)
    elif name == "shortest path":
        x = cp.Variable(24, nonneg=True)
        edges = np.asarray(made.problem.domain.edges)  # pyright: ignore[reportAttributeAccessIssue]
        balance = np.zeros((16, 24))
        balance[edges[:, 0], range(24)] += 1
        balance[edges[:, 1], range(24)] -= 1
        total, within = r["time"].sum(0) @ x, [balance[:-1] @ x == np.eye(16)[0, :-1]]
        limit = np.asarray(sample.speed) @ x <= float(sample.budget)
    elif name == "l1 regression":
        x = cp.Variable(50)
        total, within = 0.5 * cp.sum_squares(r["features"] @ x - r["answer"]), [cp.norm1(x) <= 1]
        limit = np.asarray(sample.drift) @ x <= float(sample.limit)
    else:
        x = cp.Variable((16, 16), symmetric=True)
        total = -cp.trace(np.einsum("ti,tj->ij", r["sample"], r["sample"]) @ x)
        within = [x >> 0, np.eye(16) - x >> 0, cp.trace(x) == 3]
        covariance = np.asarray(made.instance.expected_constraint.use)  # pyright: ignore[reportFunctionMemberAccess]
        limit = cp.trace(covariance @ x) <= float(sample.limit)
    program = cp.Problem(cp.Minimize(total), [*within, limit])
    program.solve(solver="CLARABEL")
    assert float(best.value) == pytest.approx(program.value, rel=1e-4)
    assert float(best.multiplier[0]) * len(best.loss) == pytest.approx(float(limit.dual_value), rel=2e-2)  # pyright: ignore[reportAttributeAccessIssue]


def test_other_units_scale_everything_exactly():
    original = problems.simplex(KEY, quadratic=True, constraints=2)
    units = {"loss": 1e-3, "constraint": 1e3, "geometry": 7.0}
    instance = problems.rescaled(original, **units)
    rounds = instance.rounds(80, KEY)
    jax.tree.map(np.testing.assert_array_equal, rounds, original.rounds(80, KEY))
    best, before = instance.comparator(rounds), original.comparator(rounds)
    np.testing.assert_allclose(best.x, 7 * before.x)
    np.testing.assert_allclose(best.multiplier, 1e-6 * before.multiplier)
    np.testing.assert_allclose(best.price, 1e-6 * before.price)
    np.testing.assert_allclose([best.value, best.lower_bound], 1e-3 * np.array([before.value, before.lower_bound]))
    own = cx.hindsight(instance.problem, rounds, expected_constraint=instance.expected_constraint, tol=1e-9)
    np.testing.assert_allclose(own.value, best.value, rtol=1e-5)  # solved in the new units
    np.testing.assert_allclose(own.multiplier, best.multiplier, rtol=1e-2)
    games = [cx.play(each.problem, cx.learners.Stay(), rounds, key=KEY) for each in (instance, original)]
    np.testing.assert_allclose(games[0].score(best), 1e-3 * games[1].score(before), rtol=1e-9)
    np.testing.assert_allclose(games[0].violation(), 1e3 * games[1].violation(), rtol=1e-9)


def test_constraints_wake_prices_double_and_losses_switch_when_they_should():
    asleep = problems.waking(problems.simplex(KEY, constraints=2), after=7)
    game = cx.play(asleep.problem, cx.learners.Stay(), asleep.rounds(12, KEY), key=KEY)
    assert np.array_equal(np.abs(game.constraint).max(1) > 0, np.arange(12) >= 7)
    dear, plain = (problems.pacing(KEY, doubles_at=age).rounds(12, KEY) for age in (5, None))
    ratio = np.asarray(dear["price"] / plain["price"])
    np.testing.assert_array_equal(ratio, np.repeat([1.0, 2.0], [5, 7])[:, None] * np.ones(10))
    cost = np.asarray(problems.simplex(KEY, adversarial=True, stretch=3).rounds(9, KEY)["cost"])
    np.testing.assert_array_equal(cost[:3], cost[6:])
    assert np.abs(cost[3:6] - cost[:3]).min() == pytest.approx(0.5)


def test_bad_sizes_are_refused():
    simplex = problems.simplex(KEY)
    for build, sentence in (
        (lambda: problems.portfolio(KEY, assets=1), "assets >= 2"),
        (lambda: problems.shortest_path(KEY, side=1), "side >= 2"),
        (lambda: problems.sparse_regression(KEY, n=5, nonzero=6), "nonzero must lie between 1 and n = 5"),
        (lambda: problems.group_sparsity(KEY, nonzero=0), "nonzero between 1 and groups"),
        (lambda: problems.online_pca(KEY, n=3, k=3), "k between 1 and n - 1 = 2"),
        (lambda: problems.simplex(KEY, stretch=5), "needs adversarial=True"),
        (lambda: problems.pacing(KEY, doubles_at=-1), "doubles_at must be at least 0"),
        (lambda: problems.rescaled(simplex, loss=0.0), "loss must be positive"),
        (lambda: problems.rescaled(simplex.problem), "rescaled needs an Instance"),
        (lambda: problems.waking(simplex, after=-1), "after must be at least 0"),
    ):
        with pytest.raises(cx.ProblemError, match=sentence):
            build()


def test_rivals_make_the_steps_that_they_were_told():
    """One round by hand, on a simplex where no projection is needed; then the multipliers of two rounds."""
    instance = problems.simplex(KEY, n=4, quadratic=True)
    rounds, T, step, dual_step = instance.rounds(2, KEY), 400, 0.01, 0.3
    problem, start = instance.problem, instance.problem.domain.start()
    first = jax.tree.map(lambda leaf: leaf[0], rounds)
    (of_loss, of_constraint), value = problem.gradients(start, first), problem.values(start, first)[1]
    moved = start - step / T**0.5 * (of_loss - of_loss.mean())  # the multiplier is 0
    after = {"ascent": max(0, dual_step / T**0.5 * value[0])}
    after["queue"] = max(0, dual_step / T**0.5 * (value[0] + of_constraint[0] @ (moved - start)))
    after["anytime"] = max(0, dual_step * value[0])
    for make, rate, multiplier in (
        (TunedPDOGD, 1.0, after["ascent"]),
        (TunedDPP, 1.0, after["queue"]),
        (TunedAdaptivePDOGD, T**0.5, after["anytime"]),
    ):
        game = cx.play(problem, make(step, dual_step), rounds, key=KEY, horizon=T, keep_decisions=True)  # pyright: ignore[reportCallIssue]
        np.testing.assert_allclose(game.decisions[1], start + rate * (moved - start), rtol=1e-9)
        np.testing.assert_allclose(game.multiplier[:, 0], [0, multiplier], rtol=1e-9)  # pyright: ignore[reportCallIssue]
    tracked = TunedTracked(step, dual_step)  # pyright: ignore[reportCallIssue]
    game = cx.play(problem, tracked, rounds, key=KEY, horizon=T)
    plain = cx.learners.PrimalDual(
        cx.primal.Tracked(Constant(step / T**0.5), atoms=8), tracked.rule(problem, jnp.asarray(T))
    )
    np.testing.assert_allclose(game.decision, cx.play(problem, plain, rounds, key=KEY, horizon=T).decision)


def test_tuned_numbers_are_there_for_every_problem_and_family():
    found, missing = tuning.tuned(), {}
    assert found.keys() == arena.ARENA.keys()
    for problem, results in found.items():
        kind = getattr(arena.ARENA[problem], "func", arena.ARENA[problem])
        missing[kind, frozenset(FAMILIES.keys() - results.keys())] = problem
        assert len(results) >= 3
        for family, result in results.items():
            assert result["numbers"].keys() == GRIDS[family](Units(1.0, 1.0)).keys()
    for (_, families), problem in missing.items():
        instance = SMALL.get(problem, arena.ARENA[problem])(KEY)
        rounds = jax.eval_shape(lambda instance=instance: instance.rounds(2, KEY))
        for family in families:
            learner = FAMILIES[family](**dict.fromkeys(GRIDS[family](Units(1.0, 1.0)), 1.0))
            with pytest.raises(cx.CocoaxError):  # it cannot play the problem
                jax.eval_shape(
                    lambda rounds, instance=instance, learner=learner: cx.play(
                        instance.problem, learner, rounds, key=KEY
                    ),
                    rounds,
                )
    chosen = tuned_rivals(found, found, FAMILIES)
    for problem, results in found.items():
        best = sorted(results, key=lambda family: results[family]["score"])[:MOST]
        assert {family for family in chosen if problem in chosen[family]} == {f"{each}, tuned" for each in best}


def test_baselines_make_the_steps_of_their_formulas():
    instance = problems.simplex(KEY, n=4, quadratic=True)
    problem, rounds, T = instance.problem, instance.rounds(3, KEY), 100
    entropic, by_coordinate = FAMILIES["exponentiated gradient"], FAMILIES["AdaGrad by coordinate (projected)"]
    game = cx.play(problem, entropic(0.7, 0.3), rounds, key=KEY, horizon=T, keep_decisions=True)
    own = cx.play(problem, by_coordinate(0.02, 0.3), rounds, key=KEY, horizon=T, keep_decisions=True)
    x, y, squares, by_x, by_y = problem.domain.start(), problem.domain.start(), jnp.zeros(4), 0.0, 0.0
    for t in range(3):
        r = jax.tree.map(lambda leaf, t=t: leaf[t], rounds)
        np.testing.assert_allclose(game.decisions[t], x, rtol=1e-9)
        np.testing.assert_allclose(own.decisions[t], y, rtol=1e-9)
        (of_loss, of_constraint), value = problem.gradients(x, r), problem.values(x, r)[1][0]
        x = x * jnp.exp(-0.7 / T**0.5 * (of_loss + by_x * of_constraint[0]))
        x, by_x = x / x.sum(), max(0.0, by_x + 0.3 / T**0.5 * value)
        (of_loss, of_constraint), value = problem.gradients(y, r), problem.values(y, r)[1][0]
        gradient = of_loss + by_y * of_constraint[0]
        squares += gradient**2
        y, by_y = problem.domain.project(y - 0.02 * gradient / squares**0.5), max(0.0, by_y + 0.3 / T**0.5 * value)
    with pytest.raises(cx.LearnerError, match="on a ProbabilitySimplex, got Box"):
        cx.play(problems.pacing(KEY).problem, entropic(1.0, 1.0), problems.pacing(KEY).rounds(2, KEY), key=KEY)


@pytest.fixture(scope="module")
def finished():
    names, challenger = ["quadratic", "shortest path"], cx.learners.Blocks(cx.primal.OCG(), theta_scale=1e-3)
    return arena.arena_study(seeds=range(3), horizons=[10, 20, 40], names=names, challenger=challenger).run(quiet=True)


def showing(study, table, **other):
    """The study with another table."""
    kept = {name: getattr(study, name) for name in ("learners", "sources", "seeds")}
    return SimpleNamespace(table=lambda: table, **{**kept, **other})


def test_rivals_play_the_problems_that_they_were_tuned_for(finished):
    for (problem, learner), games in finished.table().group_by("problem", "learner"):
        assert games["reason"].is_null().all() and len(games) == 9
        if learner.endswith(", tuned"):
            numbers = tuning.tuned()[problem][learner.removesuffix(", tuned")]["numbers"]
            for name, value in numbers.items():
                player = finished.learner(learner, problem)
                inner = player.dual if hasattr(player, "dual") and not hasattr(player, name) else player
                np.testing.assert_allclose(getattr(inner, name), value, rtol=1e-6)
    by_problem = finished.table().group_by("problem").agg(pl.col("learner").n_unique())
    assert by_problem["learner"].to_list() == [2 + MOST] * 2


def test_standings_are_what_the_table_says(finished):
    rows = arena.standings(finished)
    table = finished.table().to_dicts()

    def mean(problem, learner, horizon, figure="score"):
        games = [(row["problem"], row["learner"], row["horizon"]) for row in table]
        wanted = [row[figure] for row, game in zip(table, games) if game == (problem, learner, horizon)]
        return sum(wanted) / len(wanted)

    assert rows["problem"].to_list() == ["quadratic", "shortest path"]
    for row in rows.iter_rows(named=True):
        here = {each["learner"] for each in table if each["problem"] == row["problem"]}
        rivals = {name: mean(row["problem"], name, 40) for name in here if name.endswith(", tuned")}
        assert row["horizon"] == 40 and row["rival"] == min(rivals, key=rivals.__getitem__)
        assert row["rival_score"] == pytest.approx(min(rivals.values()))
        mine, start = ([mean(row["problem"], name, T) for T in (10, 20, 40)] for name in ("Blocks", START))
        assert (row["score"], row["start"]) == pytest.approx((mine[-1], start[-1]))
        assert row["against_start"] == pytest.approx(max(a / b for a, b in zip(mine, start)))
        assert row["safe"] == (row["against_start"] <= 1.05)
        assert row["within"] == (mine[-1] <= 2 * min(rivals.values()))
        assert row["ratio"] == pytest.approx(mine[-1] / min(rivals.values()))
        for figure, learner in itertools.product(("regret", "violation"), ("Blocks", row["rival"])):
            shown = row[figure if learner == "Blocks" else f"rival_{figure}"]
            assert shown == pytest.approx(mean(row["problem"], learner, 40, figure))
        if min(mine) > 0:
            assert row["slope"] == pytest.approx(np.polyfit(np.log([10, 20, 40]), np.log(mine), 1)[0])
            assert row["falls"] == (row["high"] < 1) or not np.isfinite(row["high"])
    text = arena.markdown(finished, "cocoax race arena")
    assert sum(line.startswith(("| quadratic |", "| shortest path |")) for line in text.splitlines()) == 2
    for demand, line in zip(("safe", "falls", "within"), text.strip().splitlines()[-3:]):
        assert f": {rows[demand].sum()} of 2" in line
        assert all((name in line) != good for name, good in zip(rows["problem"], rows[demand]))


def test_rivals_are_met_at_the_horizon_that_they_were_tuned_for(finished):
    longer = {10: 100, 20: tuning.HORIZON, 40: 4 * tuning.HORIZON}
    table = finished.table().with_columns(
        pl.col("horizon").replace_strict(longer), pl.col("score").abs() * (1 + 99 * (pl.col("horizon") == 40))
    )
    study = showing(finished, table)
    for row in arena.standings(study).iter_rows(named=True):
        here = table.filter((pl.col("problem") == row["problem"]) & (pl.col("horizon") == tuning.HORIZON))
        means = dict(here.group_by("learner").agg(pl.col("score").mean()).iter_rows())
        rivals = {name: score for name, score in means.items() if name.endswith(", tuned")}
        assert row["horizon"] == tuning.HORIZON and row["rival"] == min(rivals, key=rivals.__getitem__)
        assert (row["score"], row["start"]) == pytest.approx((means["Blocks"], means[START]))
        assert row["rival_score"] == pytest.approx(min(rivals.values()))
    assert f"at T = {tuning.HORIZON} " in arena.markdown(finished, "cocoax race arena")


def test_scores_that_are_not_positive_are_judged_by_what_they_are_a_round(finished):
    def with_scores(values):
        change = pl.col("horizon").replace_strict(dict(zip([10, 20, 40], values))) + 0.01 * pl.col("seed")
        table = finished.table().with_columns(
            pl.when(pl.col("learner") == "Blocks").then(change).otherwise(pl.col("score")).alias("score")
        )
        study = showing(finished, table)
        return arena.standings(study).row(0, named=True)

    falling, rising = with_scores([0.1, 0.0, -40.0]), with_scores([-5.0, 0.0, 40.0])
    assert np.isnan(falling["slope"]) and falling["falls"] and falling["within"] and falling["safe"]
    assert np.isnan(rising["slope"]) and not rising["falls"]
    assert with_scores([-5.0, -5.0, -4.0])["falls"]  # better than the comparator, by ever less a round


def test_where_no_trend_can_be_seen_none_is_claimed(finished):
    table = finished.table().filter((pl.col("seed") == 0) & (pl.col("horizon") < 40))
    study = showing(finished, table, seeds=[0])
    assert arena.standings(study)["falls"].null_count() == 2
    assert "falls as T grows, with the interval: not known with one horizon or one seed." in arena.markdown(study, "x")


def test_of_two_horizons_there_is_no_slope_but_a_fall_that_the_seeds_show(finished):
    table = finished.table().filter(pl.col("horizon") < 40)
    study = showing(finished, table)
    rows, text = arena.standings(study), arena.markdown(study, "x")
    assert rows["slope"].is_nan().all() and not rows["falls"].null_count()
    assert "Where there is no slope: from the smallest T to the largest" in text
    assert "Where there is no slope" not in arena.markdown(finished, "x")


def test_a_game_that_goes_bad_has_an_infinite_score(finished):
    def judged(learner):
        bad = (pl.col("learner") == learner) & (pl.col("seed") == 0)
        table = finished.table().with_columns(bad_round=pl.when(bad).then(3).otherwise(pl.col("bad_round")))
        study = showing(finished, table)
        return arena.standings(study).row(0, named=True), arena.markdown(study, "race")

    row, text = judged("Blocks")
    assert row["score"] == np.inf and np.isnan(row["slope"]) and "inf (inf, inf)" in text
    assert not (row["safe"] or row["falls"] or row["within"])
    best = arena.standings(finished).row(0, named=True)["rival"]
    assert judged(best)[0]["rival"] != best


def test_a_negative_score_must_keep_half_of_the_best_rivals_gain(finished):
    def judged(mine, rival):
        is_rival = pl.col("learner").str.ends_with(", tuned")
        score = pl.when(pl.col("learner") == "Blocks").then(mine).when(is_rival).then(rival).otherwise(pl.col("score"))
        table = finished.table().with_columns(score.cast(pl.Float64).alias("score"))
        study = showing(finished, table)
        row = arena.standings(study).row(0, named=True)
        return row["within"], row["ratio"]

    assert judged(3.0, 1.0) == (False, 3.0) and judged(1.5, 1.0) == (True, 1.5)
    without_ratio = {(-6.0, -10.0): True, (-4.0, -10.0): False, (0.5, -1.0): False, (-0.5, 1.0): True}
    for scores, within in without_ratio.items():
        assert judged(*scores) == (within, pytest.approx(np.nan, nan_ok=True))


def test_the_command_plays_and_writes_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learners, "Auto", lambda: cx.learners.Blocks(cx.primal.OCG(), theta_scale=1e-3), raising=False)
    # as `finished` above, so that little is left to be compiled
    (tmp_path / "mine.py").write_text("import cocoax as cx\nclass Still(cx.learners.Stay): pass\n")
    words = ["--problems", "quadratic; shortest path", "--horizons", "10,20,40", "--seeds", "3", "--quiet"]
    words += ["--challenger", f"{tmp_path}/mine.py:Still"]
    monkeypatch.setattr(sys, "argv", ["cocoax", "race", "arena", *words, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr().out
    assert not ended.value.code and (tmp_path / "report.html").exists()
    text = (tmp_path / "arena.md").read_text("utf-8")
    assert text in printed and "| shortest path | 40 |" in text and "cocoax race arena --problems" in text
    assert [text.index(f"| problem | T | {name} |") for name in ("Still", "Auto")] == sorted(
        found.start() for found in re.finditer(r"\| problem \| T", text)
    )  # the challenger's table, then Auto's: both play, and neither is the other's rival
    assert not re.findall(r"\| (?:Still|Auto) \|(?! start)", text)
    page = (tmp_path / "report.html").read_text()
    rivals = tuned_rivals(tuning.tuned(), ["shortest path"], FAMILIES)
    assert len(rivals) == MOST and all(f"{name}, shortest path" in page for name in rivals)


def test_nonsense_is_refused():
    with pytest.raises(cx.LabError, match="rivals were tuned on the seed 1000"):
        arena.arena_study(seeds=[5, 1000], challenger=cx.learners.Stay())
    with pytest.raises(cx.LabError, match="did you mean 'portfolio'"):
        arena.arena_study(names=["portfolios"], challenger=cx.learners.Stay())
    with pytest.raises(cx.LabError, match="'mine' must be one of"):
        Study({"simplex": problems.simplex}, {"mine": {"simplex": cx.primal.OCG()}}, [5])
    with pytest.raises(cx.LabError, match="the arena has a learner 'Auto'; give yours another name"):
        arena.arena_study(beside={"Auto": cx.learners.Stay()})
