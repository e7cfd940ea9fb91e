"""Studies that keep what games prove of their own regret, and the band that reports draw of it."""

import json
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import cocoax as cx
from cocoax.lab import Study
from cocoax.lab.results.rows import marks
from cocoax.lab.run.batch import capacity_of
from cocoax.lab.sources import learner_key

drawn = np.random.default_rng(0).uniform
ROUNDS = {"cost": jnp.asarray(drawn(0, 1, (40, 3))), "use": jnp.asarray(drawn(0, 1, (40, 3)))}
PROBLEM = cx.Problem(
    cx.domains.ProbabilitySimplex(3),
    lambda x, r: jnp.vdot(r["cost"], x),
    lambda x, r: jnp.vdot(r["use"], x) - 0.5,
    regularity=cx.Regularity(2.0, 0.0, 1.0),
)
LEARNERS = {"stay": cx.learners.Stay(), "DPP": cx.learners.DPP()}
HORIZONS = [12, 40]


def made(out=None, **changes):
    given = {"problems": {"made": (PROBLEM, ROUNDS)}, "learners": LEARNERS, "horizons": HORIZONS, "seeds": range(2)}
    return Study(**given | changes, out=out)


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    return made(tmp_path_factory.mktemp("certified"), certify=True).run(quiet=True)


@pytest.fixture(scope="module")
def page(certified):
    return certified.report(title="Proven")


def test_bounds_are_those_of_play_and_above_the_regret(certified):
    curves = certified.curves().filter(seed=1, horizon=40, learner="DPP")
    horizon = cx.Horizon(40, capacity_of(40))
    game = cx.play(PROBLEM, LEARNERS["DPP"], ROUNDS, key=learner_key(1), horizon=horizon, certify=1)
    np.testing.assert_allclose(curves["regret_bound"], np.asarray(game.certified)[marks(40) - 1], rtol=1e-9, atol=1e-12)
    table = certified.table()
    assert len(table) == 8 and (table["regret_bound"] >= table["regret"] - 1e-9).all()


def test_figures_are_the_same_without_bounds_and_stored_apart(certified):
    plain = made(certified.out)
    assert plain.missing() == plain.plan  # a store without bounds cannot answer for them, nor the other way round
    plain.run(quiet=True)
    assert plain.table()["regret_bound"].is_nan().all() and plain.curves()["regret_bound"].is_nan().all()
    for figure in ("regret", "violation", "score", "loss"):
        np.testing.assert_allclose(plain.table()[figure], certified.table()[figure], rtol=1e-9, atol=1e-9)
    assert not made(certified.out, certify=True).missing()


def test_several_horizons_in_one_call_have_the_same_bounds(certified, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "an accelerator")
    together = made(certify=True, learners={"stay": LEARNERS["stay"]}).run(quiet=True)
    alone = certified.curves().filter(learner="stay")
    np.testing.assert_allclose(together.curves()["regret_bound"], alone["regret_bound"], rtol=1e-9, atol=1e-12)


def test_with_requests_bounds_are_against_policies():
    problems = {"offers": cx.problems.offers}
    study = made(problems=problems, learners={"AutoPrice": cx.learners.AutoPrice()}, horizons=[90], certify=True)
    table = study.run(quiet=True).table()
    assert table["regret_bound"].is_finite().all() and (table["regret_bound"] >= table["regret"] - 1e-6).all()


def test_a_report_draws_the_band(page, certified):
    text = page.read_text()
    plots = json.loads(re.findall(r'<script type="application/json" id="plots">(.*?)</script>', text)[0])
    lines = {line["learner"]: line for line in plots["made-round-regret"]["lines"]}
    means = certified.curves().filter(horizon=40, learner="DPP").group_by("round", maintain_order=True)
    np.testing.assert_allclose(lines["DPP"]["bound"], means.agg(pl.col("regret_bound").mean())["regret_bound"])
    assert "data-proven" in text and "proven bound" in text
    assert all(line["bound"] is None for line in plots["made-round-score"]["lines"])


def test_the_band_in_a_browser(page):
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("NO BROWSER: THE REPORT'S PAGE WAS NOT OPENED; install chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        view, said = chromium.new_page(viewport={"width": 1280, "height": 900}), []
        view.on("console", lambda message: said.append(message.text))
        view.on("pageerror", lambda error: said.append(str(error)))
        view.goto(page.as_uri())
        view.evaluate("boxes.forEach(box => { box.drawn = true; draw(box); })")
        band = view.locator("#made-round-regret .bounds polygon")
        assert band.count() == 2 and all(box.bounding_box()["height"] > 5 for box in band.all())
        view.locator("#made-round-regret").focus()
        view.keyboard.press("ArrowRight")
        assert "proven at most" in view.locator("#live").text_content()
        view.locator("#made [data-proven]").click()
        assert band.count() == 0 and not said
        chromium.close()


def test_plain_reports_speak_of_no_bounds(tmp_path):
    text = made(tmp_path, horizons=[12], learners={"stay": LEARNERS["stay"]}).run(quiet=True).report().read_text()
    assert "data-proven" not in text.split("<script", 1)[0] and "proven bound" not in text


def test_bad_arguments_are_named():
    with pytest.raises(cx.LabError, match="certify"):
        made(certify="yes")
