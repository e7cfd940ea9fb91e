"""A study's report says what the stored table says, and works as a page."""

import inspect
import itertools
import json
import pickle
import re
import types
from html.parser import HTMLParser

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
import scipy.stats
from browser_tools import LOOKS, SCREENSHOTS, browser

import cocoax as cx
from cocoax.lab import Study
from cocoax.lab.report.data import ReportData
from cocoax.lab.report.figures import draw_horizons, styles
from cocoax.lab.report.games import plot
from cocoax.lab.report.learner_facts import as_code, other_parameters
from cocoax.lab.report.write import _images, write_report
from cocoax.lab.results import statistics
from cocoax.lab.results.rows import FIGURES
from cocoax.lab.run.batch import Batch
from cocoax.primal import perturbation

HORIZONS, SEEDS = [10, 20, 40], [0, 1, 2, 3]
RATES = {"regret": {"DPP": 0.25, "PDOGD, tuned": 0.5}, "violation": {"DPP": 0.5, "PDOGD, tuned": 0.75}}
WRITTEN = [
    cx.learners.LyapStoch(cx.primal.AdaGrad(), scale=0.5),
    cx.learners.LyapHard(),
    cx.learners.PDMFW(beta=0.25, perturbation="centred"),
    cx.learners.Auto(memory=50),
    cx.learners.Anytime(cx.baselines.Liakopoulos(window=3), first=8),
    cx.baselines.Castiglioni(0.25, cx.primal.Tracked(cx.primal.steps.Distance(weighted=False), atoms=4)),
    cx.baselines.FWCSOA(0.5, margin_scale=0.125),
    cx.learners.Blocks(cx.primal.FTPL("cube"), cx.dual.RegularizedAscent(0.5, 0.25)),
    cx.learners.PrimalDual(cx.primal.SFTPL(smooth=True), cx.dual.DriftPotential(0.5, 0.25, 2.0)),
    cx.learners.PrimalDual(cx.primal.OFW(0.5, 2.0), cx.dual.Hard(cx.dual.ExponentialPotential(0.25))),
]


def pacing(key):
    return cx.problems.pacing(key, segments=3, budget=0.3)


def unconstrained(key):
    """Without constants, too."""
    given = cx.problems.simplex(key, n=3, quadratic=True)
    return cx.problems.Instance(cx.Problem(given.problem.domain, given.problem.loss), given.environment, None, None)


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    learners = {
        "stay": cx.learners.Stay(),
        "DPP": cx.learners.DPP(),
        "PDOGD, tuned": cx.baselines.PDOGD(theta_scale=0.125),
    }
    problems = {"pacing": pacing, "no constraint": unconstrained}
    return Study(problems, learners, HORIZONS, SEEDS, out=tmp_path_factory.mktemp("study")).run(quiet=True)


@pytest.fixture(scope="session")
def report(study):
    slopes = {"DPP": (0.25, 0.5), "PDOGD, tuned": cx.theory.Rates(0.5, 0.75, 0.5, 0, 0)}
    return study.report(title="A < B", command="cocoax race here.py", slopes=slopes, notes=["Two & two."])


@pytest.fixture(scope="session")
def stored(report):
    return pl.read_parquet(report.parent / "table.parquet")


@pytest.fixture(scope="session")
def cells(report):
    """{(table, problem): {learner: {column: attributes}}}, as a reader of the page finds it."""
    return read_cells(report)


@pytest.fixture(scope="session")
def plots(report):
    """What the page gives to its script, by the plot's address."""
    return json.loads(re.findall(r'<script type="application/json" id="plots">(.*?)</script>', report.read_text())[0])


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.table, self.row = {}, None, None

    def handle_starttag(self, tag, attributes):  # pyright: ignore[reportIncompatibleMethodOverride]
        given = {name: value or "" for name, value in attributes}
        if tag == "table":
            self.table = self.found.setdefault((given["data-table"], given.get("data-problem")), {})
        elif tag == "tr" and self.table is not None:
            self.row = self.table.setdefault(given["data-learner"], {}) if "data-learner" in given else {}
        elif tag == "td" and self.row is not None:
            numbers = {k[5:]: float(v or "nan") for k, v in given.items() if k.startswith("data-") and "col" not in k}
            self.row[given["data-column"]] = numbers


def read_cells(page):
    parser = Cells()
    parser.feed(page.read_text().split("<script", 1)[0])
    return parser.found


def read_verdicts(page):
    return re.findall(r'<tr data-learner="([^"]*)">.*data-column="clear"[^>]*>(\w+)</td></tr>', page.read_text())


def values(table, problem, learner, figure, horizon=HORIZONS[-1]):
    at = {"problem": problem, "learner": learner, "horizon": horizon}
    return table.filter(**at).sort("seed")[figure].to_numpy()


def pairs_played(table):
    return table.filter(pl.col("reason").is_null()).select("problem", "learner").unique(maintain_order=True).iter_rows()


def t_interval(sample):
    """(mean, half-width), by SciPy."""
    low, high = scipy.stats.t.interval(0.95, len(sample) - 1, sample.mean(), scipy.stats.sem(sample))
    return sample.mean(), (high - low) / 2


def made(learners, horizons=(10, 100, 1000), seeds=range(4), problem="made"):
    """A table with the regrets and violations of functions of (horizon, seed)."""
    rows = [
        dict.fromkeys(FIGURES, 0.0)
        | {"problem": problem, "learner": name, "horizon": T, "seed": seed, "bad_round": -1, "reason": None}
        | {"regret": float(of(T, seed)), "violation": float(of(T, seed)), "score": float(of(T, seed))}
        for name, of in learners.items()
        for T in horizons
        for seed in seeds
    ]
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String, "bad_round": pl.Int64})


# --- the page's claims -------------------------------------------------------------------------------------------


def test_final_figures_are_those_of_the_stored_table(study, stored, cells):
    shown = {(problem, learner) for (kind, problem), rows in cells.items() if kind == "final" for learner in rows}
    assert shown == set(pairs_played(stored)) and len(shown) == 5
    for problem, learner in shown:
        row = cells["final", problem][learner] | cells["cost", problem][learner]
        assert row["games"]["value"] == len(SEEDS)
        for figure in ("regret", "violation", "score"):
            sample = values(stored, problem, learner, figure)
            mean, half = t_interval(sample) if np.ptp(sample) else (sample[0], 0.0)
            np.testing.assert_allclose([row[figure]["value"], row[figure]["half"]], [mean, half], rtol=1e-10)
        for figure in ("multiplier", "lmo_calls", "gradient_calls"):
            assert row[figure]["value"] == pytest.approx(values(stored, problem, learner, figure).mean(), rel=1e-12)
        (seconds,) = values(study.seconds().with_columns(seed=0), problem, learner, "seconds")
        assert row["time"]["value"] == pytest.approx(1e6 * seconds, rel=1e-12)


def fitted_slope(means):
    return np.polyfit(np.log(HORIZONS), np.log(means), 1)[0]


def test_slopes_are_those_of_the_stored_table(stored, cells):
    finite = 0
    for problem, learner in pairs_played(stored):
        for figure in ("regret", "violation"):
            sample = np.stack([values(stored, problem, learner, figure, T) for T in HORIZONS], 1)
            sample = np.maximum(sample, 0) if figure == "violation" else sample
            shown = cells["cost", problem][learner][f"slope_{figure}"]
            if (sample.mean(0) <= 0).any():
                assert np.isnan(shown["value"])
                continue
            finite += 1
            assert shown["value"] == pytest.approx(fitted_slope(sample.mean(0)))
            picks = np.random.default_rng(0).integers(len(SEEDS), size=(2000, len(SEEDS)))
            resampled = np.stack([sample[pick].mean(0) for pick in picks])
            if (resampled > 0).all():
                low, high = np.quantile([fitted_slope(means) for means in resampled], [0.025, 0.975])
                np.testing.assert_allclose([shown["low"], shown["high"]], [low, high], atol=2e-3)
    assert finite >= 4
    for figure, by_learner in RATES.items():
        shown = {learner: row[f"slope_{figure}"].get("theorem") for learner, row in cells["cost", "pacing"].items()}
        assert shown == {"stay": None, **by_learner}


def test_differences_are_paired_and_from_the_best_score(stored, cells, report):
    verdicts = {}
    for problem in ("pacing", "no constraint"):
        played = [learner for where, learner in pairs_played(stored) if where == problem]
        best = min(played, key=lambda learner: values(stored, problem, learner, "score").mean())
        shown = cells["differences", problem]
        assert set(shown) == set(played) - {best}
        for learner, figure in itertools.product(shown, ("regret", "violation", "score")):
            pair = [values(stored, problem, each, figure) for each in (learner, best)]
            difference = pair[0] - pair[1]
            mean, half = t_interval(difference) if np.ptp(difference) else (difference[0], 0.0)
            np.testing.assert_allclose([*shown[learner][figure].values()], [mean, half], rtol=1e-9, atol=1e-12)
            if figure == "score":
                verdicts[problem, learner] = "yes" if abs(mean) > half else "no"
    assert read_verdicts(report) == [(learner, verdict) for (_, learner), verdict in verdicts.items()]


def certificates(text):
    return "".join(re.findall(r'<table data-table="certificate".*?</table>', text, re.DOTALL)).replace("\n", "")


def check_certificates(table, page):
    """Of the stored table: the comparators' values and gaps."""
    text = page.read_text().split("<script", 1)[0]
    for problem in ("pacing", "no constraint"):
        games = table.filter(pl.col("problem") == problem, pl.col("reason").is_null())
        rows = games.unique(["horizon", "seed"], keep="last").sort("horizon", "seed")
        last = rows.filter(horizon=HORIZONS[-1])
        assert f'data-column="gap" data-value="{max(last["gap"])!r}"' in text
        assert f'data-column="gap_ever" data-value="{max(rows["gap"])!r}"' in text
        shown = re.findall(rf'data-problem="{problem}".*?data-column="value" data-value="(.*?)"', certificates(text))
        assert float(shown[0]) == pytest.approx(last["comparator"].to_numpy().mean(), rel=1e-12)


def test_standings_begin_with_the_best_and_the_headline_names_it(stored, report, cells):
    text = report.read_text()
    best = {}
    for problem in ("pacing", "no constraint"):
        learners = list(cells["final", problem])
        scores = [values(stored, problem, learner, "score").mean() for learner in learners]
        assert scores == sorted(scores)
        best[problem] = learners[0]
        assert f'<tr data-learner="{learners[0]}" class="best">' in text
    headline = re.findall(r'<div class="headline"><p>(.*?)</p>', text)[0]
    assert all(name in headline for name in best.values()) and "lowest score" in headline
    assert "3 numbers in a set of the kind Box, 1 constraint a round, 40 rounds." in text


def test_a_certificate_is_shown_only_where_a_gap_could_be_seen(stored, report):
    """Here gaps are far below the digits of any regret; `check_certificates` sees larger ones."""
    regrets = [abs(values(stored, name, who, "regret").mean()) for name, who in pairs_played(stored)]
    assert 0 < stored["gap"].fill_nan(0).max() < 1e-3 * min(regrets)
    assert "certificate" not in report.read_text().split("<script", 1)[0].split('id="words"')[0]


def test_few_lines_are_shown_at_first(study, tmp_path):
    """The best of each group in turn."""
    copies = {f"stay {i}": study.learners["stay"] for i in range(9)}
    rows = study._stored().filter(learner="stay")
    rows = pl.concat([rows.with_columns(learner=pl.lit(name)) for name in copies])
    kept = {key: getattr(study, key) for key in ("sources", "horizons", "seeds", "tol", "played_on")}
    altered = types.SimpleNamespace(**kept, learners=copies, _stored=lambda: rows, out=tmp_path)
    text = write_report(altered, groups={"odd ones": ["stay 7", "stay 8"]}).read_text()  # type: ignore[arg-type]
    pressed = re.findall(r'aria-pressed="true" data-learner="(.*?)"', text)
    assert pressed[:8] == ["stay 7", "stay 8", *(f"stay {i}" for i in range(6))] and len(pressed) == 16
    assert text.count('class="extra" hidden') == 2 and text.count("Show 1 more") == 4
    assert ">Odd ones<" in text and ">Others<" in text
    assert 'id="pacing-round-regret"' in text and 'id="pacing-round-regret_bound"' not in text
    assert "stay 0, stay 1, stay 2 and 6 others share the lowest score on both problems." in text


def test_regret_in_the_table_is_that_of_a_game(study, stored):
    """The rounds of seed 1, drawn again, at the start for ever; every round that the curve keeps."""
    drawn = study.sources["pacing"].draw(1, HORIZONS[-1])
    best = drawn.comparator(HORIZONS[-1], study.tol)
    x = np.asarray(drawn.problem.domain.start())
    rounds = jax.tree.map(np.asarray, drawn.rounds)
    regret = np.cumsum(-(rounds["value"] @ x) - best.loss)
    violation = np.cumsum(rounds["price"] @ x - rounds["budget"])
    score = regret[-1] + best.price[0] * max(violation[-1], 0)
    found = [values(stored, "pacing", "stay", figure)[1] for figure in ("regret", "violation", "score")]
    np.testing.assert_allclose(found, [-(rounds["value"] @ x).sum() - best.value, violation[-1], score], rtol=1e-9)
    curve = study.curves().filter(problem="pacing", learner="stay", horizon=HORIZONS[-1], seed=1)
    at = curve["round"].to_numpy() - 1
    assert at[0] == 0 and at[-1] == HORIZONS[-1] - 1 and len(at) > 20 and (np.diff(at) > 0).all()
    np.testing.assert_allclose(curve.select("regret", "violation"), np.stack([regret, violation], 1)[at], rtol=1e-9)


def test_curves_are_those_of_the_games(study):
    """The same batch again, which is compiled already."""
    drawn = [study.sources["pacing"].draw(seed, HORIZONS[-1]) for seed in SEEDS]
    games = Batch(drawn, SEEDS).play(study.learners["DPP"], HORIZONS[-1])[0].games
    assert np.ptp(games.multiplier) > 0
    for seed, constraint, multiplier in zip(SEEDS, games.constraint, games.multiplier):
        curve = study.curves().filter(problem="pacing", learner="DPP", horizon=HORIZONS[-1], seed=seed)
        expected = np.concatenate([np.cumsum(constraint, 0), multiplier], 1)[curve["round"].to_numpy() - 1]
        np.testing.assert_allclose(curve.select("violation", "multiplier"), expected, rtol=1e-9, atol=1e-12)


def test_plots_show_the_stored_table(study, stored, plots):
    curves, last = study.curves(), HORIZONS[-1]
    for problem, address, count in (("pacing", "pacing", 4), ("no constraint", "no-constraint", 1)):
        learners = [learner for where, learner in pairs_played(stored) if where == problem]
        for figure in ("regret", "violation", "score", "multiplier")[:count]:
            samples = {
                learner: {
                    "horizon": [values(stored, problem, learner, figure, T) for T in HORIZONS],
                    "round": curves.filter(problem=problem, learner=learner, horizon=last)
                    .sort("round", "seed")[figure]
                    .reshape((-1, len(SEEDS)))
                    .to_numpy(),
                }
                for learner in learners
            }
            rounds = curves.filter(problem=problem, horizon=last)["round"].unique().sort().to_list()
            for against, x in (("horizon", HORIZONS), ("round", rounds)):
                if (against, figure) == ("horizon", "multiplier"):
                    continue
                lines = plots[f"{address}-{against}-{figure}"]["lines"]
                assert [line["learner"] for line in lines] == learners and all(line["x"] == x for line in lines)
                for line in lines:
                    sample = np.asarray(samples[line["learner"]][against])
                    expected = [sample.mean(1), *np.quantile(sample, [0.1, 0.9], axis=1)]
                    shown = [line[part] for part in ("mean", "low", "high")]
                    np.testing.assert_allclose(shown, expected, rtol=1e-9, atol=1e-12)
    assert len(plots) == 7 + 2


def test_a_theorems_line_has_its_exponent(stored, plots):
    """Through the first mean that is positive, in the page and in the figure for papers."""
    drawn, looks = set(), styles(["stay", "DPP", "PDOGD, tuned"])
    for problem, figures in (("pacing", ("regret", "violation")), ("no constraint", ("regret",))):
        rows = statistics.summary(stored).filter(problem=problem)
        axes = draw_horizons(rows, looks, RATES, constrained=len(figures) > 1).axes
        assert [axis.get_ylabel() for axis in axes] == [*figures, "score"][: len(axes)]
        for axis, figure in zip(axes, figures):
            spec = plots[f"{problem.replace(' ', '-')}-horizon-{figure}"]
            means = {line["learner"]: np.array(line["mean"]) for line in spec["lines"]}
            on_paper = {line.get_label(): line.get_ydata() for line in axis.lines}
            for learner, mean in means.items():
                np.testing.assert_allclose(on_paper[learner], mean, rtol=1e-12)  # pyright: ignore[reportCallIssue]
            references = {each["learner"]: each for each in spec["references"]}
            rates = RATES[figure]
            assert references.keys() == {name for name in rates.keys() & means if (means[name][:-1] > 0).any()}
            for learner, each in references.items():
                first, x = np.argmax(means[learner] > 0), np.array(each["x"])
                assert x[0] == HORIZONS[first] and x[-1] == pytest.approx(HORIZONS[-1])
                expected = means[learner][first] * (x / HORIZONS[first]) ** rates[learner]
                np.testing.assert_allclose(each["y"], expected, rtol=1e-9)
                mine = [line.get_ydata() for line in axis.lines if line.get_color() == looks[learner].colour]
                np.testing.assert_allclose(mine[-1], expected, rtol=1e-9)  # pyright: ignore[reportCallIssue]
                drawn.add((figure, rates[learner]))
    assert drawn >= {("regret", 0.25), ("violation", 0.5), ("violation", 0.75)}


def test_what_is_special_is_visible(report):
    text = report.read_text().split("<script", 1)[0]
    assert "<b>theta_scale = 0.125</b>" in text and "theta_scale=0.125)</code>" in text
    assert "Could not be played" in text and "needs lipschitz in the l2 norm" in text
    assert text.count("This problem has no constraint") == 1
    assert "<h1>A &lt; B</h1>" in text and "Two &amp; two." in text
    for fact in ("cocoax race here.py", cx.__version__, jax.__version__, "float64", "10, 20, 40", "0, 1, 2, 3"):
        assert f">{fact}<" in text or f">{fact}, " in text


def test_changed_parameters_are_found_in_parts():
    learners = cx.learners
    assert (
        other_parameters(learners.Blocks(cx.primal.OCG()))
        == other_parameters(learners.PDMFW())
        == other_parameters(learners.Stay())
        == {}
    )
    assert other_parameters(learners.Blocks(cx.primal.OCG(), theta_scale=0.5, beta=0.125)) == {
        "beta": "0.125",
        "theta_scale": "0.5",
    }
    assert other_parameters(learners.PDMFW(perturbation="centred")) == {"perturbation": "Centred()"}
    assert other_parameters(learners.LyapStoch(scale=0.5)) == {"scale": "0.5"}
    assert other_parameters(learners.Auto(memory=50)) == {"memory": "50"}
    other = eqx.tree_at(lambda each: each.dual.gain, learners.Auto(), jnp.asarray(0.5))
    assert other_parameters(other) == {"dual.gain": "0.5"} and "gain=0.5" in as_code(other)
    pair = learners.PrimalDual(cx.primal.OCG(), cx.dual.RegularizedAscent(theta=0.5, mu=0.25))
    assert other_parameters(pair) == {"dual.theta": "0.5", "dual.mu": "0.25"}


@pytest.mark.parametrize("learner", WRITTEN)
def test_learners_are_described_as_one_writes_them(learner):
    modules = cx.learners, cx.baselines, cx.primal, cx.primal.steps, perturbation, cx.dual
    again = eval(as_code(learner), {name: each for part in modules for name, each in inspect.getmembers(part)})
    assert eqx.tree_equal(again, learner)


def test_files_beside_the_page(study, report, stored):
    folder = report.parent
    assert stored.equals(study.table())
    assert pl.read_csv(folder / "table.csv").height == stored.height == 2 * 3 * len(HORIZONS) * len(SEEDS)
    starts = {".png": b"\x89PNG", ".pdf": b"%PDF"}
    drawn = sorted((folder / "figures").iterdir())
    names = [f"{problem}-{of}" for problem in ("no-constraint", "pacing") for of in ("horizons", "rounds")]
    assert [path.stem for path in drawn] == [name for name in names for _ in starts]
    assert all(path.read_bytes().startswith(starts[path.suffix]) for path in drawn)
    tex = (folder / "table.tex").read_text()
    assert tex.count("\\pm") >= 8 and tex.count("\\\\") == 1 + 2 + 5 and "\\bottomrule" in tex
    assert (folder / "table_all_horizons.tex").read_text().count("\\\\") == 1 + len(HORIZONS) * (2 + 5)
    links = set(re.findall(r'href="([^#"][^":]*)"', report.read_text()))
    assert report.stat().st_size < 200_000  # the page without its data is 50 kB
    assert links == {"table.csv", "table.parquet", "table.tex", "table_all_horizons.tex"} | {
        f"figures/{path.name}" for path in drawn
    }
    assert not [path for path in folder.rglob(".*") if path.is_file()]


def test_table_for_papers_holds_the_final_figures(report, cells):
    """To the digits that are printed."""
    problem = None
    found = {}
    for line in (report.parent / "table.tex").read_text().split("\\midrule", 1)[1].splitlines():
        if heading := re.search(r"\{l\}\{(.*), \$T=(\d+)\$\}", line):
            problem = heading[1]
            assert int(heading[2]) == HORIZONS[-1]
        elif " & " in line:
            learner, *numbers = line.removesuffix(" \\\\").split(" & ")
            found[problem, re.sub(r"\\textbf\{(.*)\}", r"\1", learner)] = numbers
    expected = {
        (problem, learner): row | cells["cost", problem][learner]
        for (kind, problem), rows in cells.items()
        if kind == "final"
        for learner, row in rows.items()
    }
    assert found.keys() == expected.keys() and len(found) == 5
    for which, row in expected.items():
        columns = ("score", "regret", "violation", "slope_regret", "lmo_calls")
        for column, text in zip(columns, found[which], strict=True):
            exact = [row[column]["value"], row[column].get("half")]
            printed = printed_numbers(text)
            assert len(printed) == (2 if exact[1] else int(not np.isnan(exact[0])))
            for (number, ulp), value in zip(printed, exact):
                assert number == pytest.approx(value, abs=0.501 * ulp)


def printed_numbers(text):
    """[(number, what one more in its last digit is worth)] of LaTeX."""
    plain = re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", text)
    parts = re.findall(r"(-?\d+(?:\.(\d+))?)(?:e(-?\d+))?", plain)
    return [
        (float(f"{number}e{power or 0}"), 10.0 ** (int(power or 0) - len(places))) for number, places, power in parts
    ]


def test_a_second_report_is_the_same_but_for_its_date(study, report):
    def written():
        files = [report.parent / name for name in ("report.html", "table.csv", "table.parquet", "table.tex")]
        found = {path: path.read_bytes() for path in [*files, *(report.parent / "figures").iterdir()]}
        found[report], dates = re.subn(rb"<dt>date</dt><dd>[-\d]+ [:\d]+ UTC</dd>", b"", found[report])
        assert dates == 1
        return found

    before = written()
    slopes = {"DPP": (0.25, 0.5), "PDOGD, tuned": (0.5, 0.75)}
    again = study.report(title="A < B", command="cocoax race here.py", slopes=slopes, notes=["Two & two."])
    assert again == report and written() == before


def test_figures_one_by_one_are_those_of_the_report(study, report, monkeypatch):
    """Each computes what it shows and no more; in another process too, so the data survive pickling."""
    data = ReportData(study._stored(), styles(study.learners), RATES).of_problem("pacing")
    for kind, needless in (("rounds", "summary"), ("horizons", "over_rounds")):
        with monkeypatch.context() as patch:
            patch.setattr(statistics, needless, lambda *_: pytest.fail("not in this figure"))
            found = _images(pickle.loads(pickle.dumps(data)), kind)
        assert [form for form, _ in found] == ["png", "pdf"]
        for form, content in found:
            assert content == (report.parent / "figures" / f"pacing-{kind}.{form}").read_bytes()


def test_bad_games_hostile_names_and_idle_constraints(study, tmp_path):
    """Games that went bad are named and left out; a name is text, whatever it holds; a constraint of 0 is one."""
    name = "</script><b>&\"'"
    rows = study._stored().with_columns(learner=pl.col("learner").replace("stay", name))
    hit = (pl.col("learner") == name) & (pl.col("seed") == 2)
    rows = rows.with_columns(
        bad_round=pl.when(hit).then(7).otherwise("bad_round"), regret=pl.when(hit).then(np.nan).otherwise("regret")
    )
    worse = pl.when(problem="pacing", learner="DPP").then(pl.col("score") + 1000).otherwise("score")
    curve = pl.col("violation_curve")
    rows = rows.with_columns(
        score=worse,
        gap=pl.col("gap") * 1e6,
        violation=pl.when(problem="pacing").then(0.0).otherwise("violation"),
        violation_curve=pl.when(problem="pacing").then(curve.list.eval(0.0 * pl.element())).otherwise(curve),
    )
    altered = types.SimpleNamespace(
        **{key: getattr(study, key) for key in ("sources", "horizons", "seeds", "tol", "played_on")},
        learners={name: study.learners["stay"], **study.learners},
        _stored=lambda: rows,
        out=tmp_path,
    )
    page = write_report(altered)  # type: ignore[arg-type]
    text = page.read_text()
    assert "Games that went bad" in text and "first in round 7, counted from 0; seeds 2</li>" in text
    assert text.count("</script") == 2 and name not in text
    assert text.count("This problem has no constraint") == 1 and 'id="pacing-horizon-violation"' in text
    assert ("DPP", "yes") in read_verdicts(page)
    assert "not ranked: 3 games" in text and text.count('class="best"') == 1  # one is left where two played
    row = read_cells(page)["final", "pacing"][name]
    check_certificates(rows, page)
    kept = values(study.table(), "pacing", "stay", "regret")[[0, 1, 3]]
    assert row["games"]["value"] == 3 and row["regret"]["value"] == pytest.approx(kept.mean())


def test_errors_are_one_sentence(study, tmp_path):
    with pytest.raises(cx.LabError, match="exponents of T"):
        write_report(study, slopes={"DPP": "steep"})
    blocked = types.SimpleNamespace(**{**vars(study), "out": tmp_path, "_stored": study._stored})
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(cx.LabError, match=r"cannot write .*figures.*; give the Study another out="):
        write_report(blocked)  # type: ignore[arg-type]
    with pytest.raises(cx.LabError, match="needs a folder"):
        Study(study.sources, study.learners, HORIZONS, SEEDS).report()


# --- statistics --------------------------------------------------------------------------------------------------


def test_slope_of_an_exact_power():
    table = made({"a": lambda T, seed: (seed + 1) * T**0.7, "b": lambda T, seed: -T, "c": lambda T, seed: T})
    found = {row["learner"]: row for row in statistics.slopes(table).filter(figure="regret").iter_rows(named=True)}
    np.testing.assert_allclose([found["a"][x] for x in ("slope", "low", "high")], 0.7, rtol=1e-12)
    assert np.isnan(found["b"]["slope"])
    two = statistics.slopes(table.filter(pl.col("horizon") < 1000))
    assert two["slope"].is_nan().all()


def test_slope_is_uncertain_where_resamples_are_negative():
    table = made({"a": lambda T, seed: 10 * T if seed == 0 else -T})
    row = statistics.slopes(table).filter(figure="regret").row(0, named=True)
    assert row["slope"] == pytest.approx(1.0) and row["low"] == -np.inf and row["high"] == np.inf


def test_what_was_not_spent_makes_up_for_no_violation():
    table = made({"a": lambda T, seed: T if seed % 2 else -(T**0.5)})
    row = statistics.slopes(table, figures=["violation"]).row(0, named=True)
    assert row["slope"] == pytest.approx(1.0, rel=1e-12)


def test_one_seed_has_no_interval():
    table = made({"a": lambda T, seed: T, "b": lambda T, seed: T}, seeds=[5])
    assert statistics.summary(table)["regret_half"].is_nan().all()
    assert statistics.differences(table)["half"].is_nan().all()


def test_quantiles_and_bands(study, stored):
    row = statistics.summary(stored).row(
        by_predicate=(pl.col("problem") == "pacing") & (pl.col("learner") == "DPP") & (pl.col("horizon") == 20),
        named=True,
    )
    sample = values(stored, "pacing", "DPP", "regret", 20)
    np.testing.assert_allclose([row["regret_low"], row["regret_high"]], np.quantile(sample, [0.1, 0.9]))
    bands = statistics.over_rounds(study.curves(), stored).filter(problem="pacing", learner="DPP", horizon=20)
    assert bands["round"].to_list() == sorted(bands["round"]) and bands["round"][-1] == 20
    assert bands["regret_mean"][-1] == pytest.approx(sample.mean())


# --- figures in notebooks ----------------------------------------------------------------------------------------


def test_plot_draws_single_games_and_batches():
    instance = pacing(jax.random.key(0))
    rounds = instance.rounds(15, jax.random.key(1))
    keys = jax.random.split(jax.random.key(2), 3)

    def play(key):
        return cx.play(instance.problem, cx.learners.Stay(), rounds, key=key)

    games = {"one": play(keys[0]), "batch": jax.vmap(play)(keys)}
    best = cx.Comparator.fixed(instance.problem, rounds, np.zeros(3))
    figure = plot(games, best)
    regret = figure.axes[0]
    drawn = {line.get_label(): line for line in regret.lines}
    np.testing.assert_allclose(drawn["one"].get_ydata(), games["one"].regret(best))
    np.testing.assert_allclose(drawn["batch"].get_ydata(), games["one"].regret(best))
    assert plot(games["one"]).axes[0].get_ylabel() == "total loss"
    certified = cx.play(instance.problem, cx.learners.Stay(), rounds, key=keys[0], certify=5)
    hatched = [band for band in plot(certified, best).axes[0].collections if band.get_hatch()]
    corners = hatched[0].get_paths()[0].vertices
    assert len(hatched) == 1 and not any(band.get_hatch() for band in regret.collections)
    assert corners[:, 1].max() == pytest.approx(
        max(certified.certified[4::5].max(), certified.regret(best)[4::5].max())
    )
    with pytest.raises(cx.LabError, match="plot takes a dict"):
        plot({"one": 3})  # type: ignore[arg-type]


# --- the page in a browser ---------------------------------------------------------------------------------------


def test_page_works_in_a_browser(report, cells, plots):
    with browser() as chromium:
        for look, (width, height, scheme) in LOOKS.items():
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            said, asked = [], []
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto(report.as_uri())
            page.wait_for_function("document.querySelectorAll('.plot svg').length > 0")
            page.evaluate("boxes.forEach(box => { box.drawn = true; draw(box); })")
            page.screenshot(path=SCREENSHOTS / f"report-{look}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            check_plots(page, plots)
            check_toggles(page)
            check_sorting(page, cells["final", "pacing"])
            assert not said and asked == [report.as_uri()]
            page.close()


def check_plots(page, plots):
    """Every band, mean and theorem's line is drawn where the ticks say that its numbers are."""
    drawn = page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.plot')].map(plot => [plot.id, {
            kind: plot.firstChild.dataset.kind, unit: Number(plot.firstChild.dataset.unit),
            ticks: [...plot.querySelectorAll('.tick.y')].map(tick => [tick.dataset.value, tick.dataset.at].map(Number)),
            lines: [...plot.querySelectorAll('[data-learner]')].map(line => [
                line.parentNode.getAttribute('class'), line.dataset.learner,
                line.getAttribute('points').split(' ').map(point => Number(point.split(',')[1]))])}]))"""
    )
    assert drawn.keys() == plots.keys()
    for address, spec in plots.items():
        found = {(kind, learner): heights for kind, learner, heights in drawn[address]["lines"]}
        expected = {("rates", line["learner"]): line["y"] for line in spec["references"]}
        for line in spec["lines"]:
            expected["bands", line["learner"]] = line["high"] + line["low"][::-1]
            expected["means", line["learner"]] = line["mean"]
        assert found.keys() == expected.keys()
        for which, y in expected.items():
            np.testing.assert_allclose(found[which], heights_of(drawn[address], y), atol=0.011)  # pixels


def heights_of(plot, y):
    """Where numbers are, between the first and the last tick and beyond; a symlog axis is linear around zero."""

    def scaled(values):
        values = np.asarray(values, float)
        if plot["kind"] == "symlog":
            return np.sign(values) * np.log10(1 + np.abs(values) / plot["unit"])
        return np.log10(values) if plot["kind"] == "log" else values

    (first, top), (last, bottom) = plot["ticks"][0], plot["ticks"][-1]
    ends = scaled([first, last])
    return top + (scaled(y) - ends[0]) / (ends[1] - ends[0]) * (bottom - top)


def check_toggles(page):
    """A learner, and the theorems' rates, can be hidden in all plots of a problem, and a plot's scale changed."""
    lines = (
        "[...document.querySelectorAll('#pacing .plot')].map(p => p.querySelectorAll('.means [data-learner]').length)"
    )
    for button in (page.locator("#pacing .legend [data-learner]").first, page.locator("#pacing [data-theory]")):
        rates = page.locator("#pacing .rates text").count()
        before = page.evaluate(lines)
        button.click()
        assert page.evaluate(lines) != before or page.locator("#pacing .rates text").count() == 0 < rates
        button.click()
        assert page.evaluate(lines) == before and page.locator("#pacing .rates text").count() == rates
    scale = page.locator("#pacing figcaption button").first
    before = scale.text_content()
    scale.click()
    assert scale.text_content() != before
    plot = page.locator("#pacing .plot").first
    plot.focus()
    page.keyboard.press("ArrowRight")
    assert "DPP" in page.locator("#live").text_content() and plot.locator(".tip").is_visible()


def check_sorting(page, rows):
    table = page.locator("table[data-table=final][data-problem=pacing]")
    for column, index in (("regret", 2), ("violation", 3)):
        header = table.locator("th").nth(index)
        ascending = sorted(rows, key=lambda learner: rows[learner][column]["value"])
        for order, expected in (("ascending", ascending), ("descending", ascending[::-1])):
            header.locator("button").click()
            found = table.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.learner)")
            assert found == expected and header.get_attribute("aria-sort") == order
