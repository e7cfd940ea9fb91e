"""What goes into a paper: LaTeX tables, figures of one size, CSV that a spreadsheet opens without harm."""

import re

import polars as pl
import pytest

import cocoax as cx
from cocoax.lab import Study
from cocoax.lab.report.figures import draw_horizons, draw_rounds, styles
from cocoax.lab.results import rows, statistics

HORIZONS = [10, 20]


@pytest.fixture(scope="module")
def study():
    problems = {"pacing_1": lambda key: cx.problems.pacing(key, segments=3, budget=0.3)}
    return Study(problems, {"stay": cx.learners.Stay(), "=DPP": cx.learners.DPP()}, HORIZONS, [0, 1, 2]).run(quiet=True)


def test_latex_has_a_caption_says_what_the_interval_is_and_marks_the_best(study):
    text = study.latex()
    means = study.table().filter(horizon=20).group_by("learner").agg(pl.col("score").mean())
    best = means.sort("score")["learner"][0]
    assert re.findall(r"\\textbf\{(.*?)\} & \$\\mathbf", text) == [best]
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    assert "3 seeds" in caption and "$\\pm$ their 95\\% confidence intervals" in caption and "bold" in caption
    assert text.count("{") == text.count("}") and text.count("$") % 2 == 0 and "pacing\\_1, $T=20$" in text
    for environment in ("table*", "tabular"):
        assert text.count(f"\\begin{{{environment}}}") == text.count(f"\\end{{{environment}}}") == 1


def test_latex_has_all_horizons_or_a_chosen_one(study):
    def horizons(text):
        return re.findall(r"\$T=(\d+)\$", text)

    assert horizons(study.latex("all")) == ["10", "20"] and horizons(study.latex(10)) == ["10"]
    for wrong in (7, "every"):
        with pytest.raises(cx.LabError, match=r"one that was played \(10, 20\) or 'all', got "):
            study.latex(wrong)


def test_long_tables_are_cut_at_the_page(study, monkeypatch):
    monkeypatch.setattr("cocoax.lab.report.latex.ROWS", 3)
    text = study.latex("all")
    assert text.count("\\begin{table*}") == 2 and "(2 of 2)" in text and "\\label{tab:cocoax-2}" in text


def test_figures_have_the_width_of_two_columns_and_a_score_panel(study):
    looks, table = styles(study.learners), study.table()
    curves = statistics.over_rounds(study.curves(), table).filter(horizon=20)
    summary = statistics.summary(table)
    figures = draw_horizons(summary, looks, {}), draw_rounds(curves, looks)
    for figure in figures:
        assert figure.get_size_inches()[0] == 6.75
        assert [axis.get_ylabel() for axis in figure.axes] == ["regret", "violation", "score"]
        assert figure.axes[0].xaxis.label.get_fontsize() == 8
    assert (figures[0].get_size_inches() == figures[1].get_size_inches()).all()


def test_cells_that_a_spreadsheet_would_run_are_harmless():
    names = ["=1+1", "+A", "-B", "@C", "\tD", "plain", "a-b"]
    table = pl.DataFrame({"learner": names, "regret": [-1.5, 2.0, -3.0, 0.0, 1.0, 2.0, 3.0], "reason": [None] * 7})
    table = table.cast({"reason": pl.String})
    made = rows.harmless(table)
    assert made["learner"].to_list() == ["'=1+1", "'+A", "'-B", "'@C", "'\tD", "plain", "a-b"]
    assert made["regret"].equals(table["regret"]) and made["reason"].is_null().all()
    assert "\n'-B,-3.0," in made.write_csv()
