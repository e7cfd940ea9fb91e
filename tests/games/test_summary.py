"""Games and comparators print a summary, draw themselves, and record metrics without keeping decisions."""

import builtins
import html.parser

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx

PROBLEM = cx.Problem(
    cx.domains.ProbabilitySimplex(3),
    loss=lambda x, r: jnp.vdot(r, x),
    constraint=lambda x, r: x[0] - 0.2,
    constraints="budget",
)
ROUNDS = np.linspace(-1, 1, 36).reshape(12, 3)
START = np.array([0.5, 0.25, 0.25])


def measured(x, r):
    return {"top": x.max(), "pair": (x[0], jnp.vdot(r, x))}


def play(metrics=measured, **options):
    options = {"key": jax.random.key(0), "start": START, **options}
    return cx.play(PROBLEM, cx.learners.Stay(), ROUNDS, metrics=metrics, **options)


def test_a_game_prints_what_it_came_to():
    text = str(play())
    assert text == repr(play())
    lines = {line.split("  ")[1]: line for line in text.splitlines()[1:]}
    assert text.startswith("Game of 12 rounds\n")
    assert f"mean {(ROUNDS @ START).mean():.4g}" in lines["loss"]
    assert "violation 3.6 (exceeded), hard 3.6" in lines["budget"]
    assert "mean 0.5" in lines["top"] and "[0.5  0.25 0.25]" in lines["next decision"]


def test_a_batch_prints_means_and_spreads():
    starts = jnp.asarray([START, START[::-1]])
    games = jax.vmap(lambda start: play(start=start))(starts)
    text = str(games)
    assert text.startswith("2 games of 12 rounds each")
    assert "violation 2.1 ± 2.1 (exceeded)" in text  # 3.6 and 0.6


def test_a_comparator_prints_its_certificate():
    best = cx.hindsight(PROBLEM, ROUNDS)
    assert "above the best possible" in str(best) and "multiplier" in str(best) and "12 rounds" in str(best)
    fixed = cx.Comparator.fixed(PROBLEM, ROUNDS, START)
    assert "above" not in str(fixed)  # which proves nothing
    assert str(jax.tree.map(lambda *leaves: np.stack(leaves), best, best)).startswith("2 comparators")


class Balanced(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_notebooks_get_small_plots_that_are_whole_and_harmless():
    named = cx.Problem(PROBLEM.domain, PROBLEM.loss, PROBLEM.constraint, constraints="<b>'budget")
    game = cx.play(named, cx.learners.Stay(), ROUNDS, key=jax.random.key(0))
    for shown in (game, cx.hindsight(named, ROUNDS)):
        assert "<b>'budget" in repr(shown)
        page = Balanced()
        text = shown._repr_html_()
        page.feed(text.replace("/>", "></path>").replace("<polyline", "<path"))
        assert not page.open and "svg" in page.seen and "table" in page.seen and "<b>" not in text
        assert len(text) < 10_000


def test_tracers_shapes_and_no_rounds_print_as_modules_do():
    seen = []
    jax.jit(lambda rounds: seen.append(repr(play())) or play().loss)(ROUNDS)
    seen.append(repr(jax.eval_shape(play)))
    seen.append(repr(jax.tree.map(lambda leaf: None, play())))
    with cx.Session(PROBLEM, cx.learners.Stay(), key=jax.random.key(0)) as session:
        seen.append(repr(session.game()))
    assert all(text.startswith("Game(\n  loss=") for text in seen)
    best = cx.Comparator.fixed(PROBLEM, ROUNDS, START)
    assert repr(jax.tree.map(lambda leaf: None, best)).startswith("Comparator(")


def test_metrics_are_those_of_the_decisions():
    game = play(keep_decisions=True)
    assert game.metrics["top"].shape == (12,)
    assert np.allclose(game.metrics["top"], game.decisions.max(-1))
    assert np.allclose(game.metrics["pair"][1], game.loss)
    table = game.table()
    assert np.allclose(table["top"], 0.5) and np.allclose(table["pair_1"], game.loss)
    assert play().decisions is None and play(metrics=None).metrics is None
    assert np.array_equal(play(metrics=lambda x, r: x[1]).table()["metric"], np.full(12, 0.25))


def test_metrics_see_the_rounds_of_an_environment_and_go_on():
    sampler = cx.Sampler(lambda key: jax.random.normal(key, (3,)))
    options = {"metrics": lambda x, r: jnp.vdot(r, x), "key": jax.random.key(0)}
    game = cx.play(PROBLEM, cx.learners.Stay(), sampler, horizon=6, length=4, **options)
    rest = cx.play(PROBLEM, cx.learners.Stay(), sampler, state=game.state, length=2, metrics=options["metrics"])
    assert np.allclose(game.metrics, game.loss) and np.allclose(rest.metrics, rest.loss)


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        (lambda x, r: x, r"got shape \(3,\) for 'metric'; reduce it"),
        (lambda x, r: {"budget": x[0]}, "metrics has the name 'budget', which Game.table"),
        (lambda x: x[0], r"metrics must be callable as metrics\(x, round\)"),
        (lambda x, r: "much", "metrics must return a number, or a dict of numbers, got 'much'"),
        (3.0, r"metrics must be callable as metrics\(x, round\)"),
    ],
)
def test_metrics_that_are_no_numbers_get_one_sentence(metrics, sentence):
    with pytest.raises(cx.ProblemError, match=sentence):
        play(metrics)


def test_a_game_plots_itself(tmp_path):
    best = cx.hindsight(PROBLEM, ROUNDS)
    figure = play().plot(best, title="Stay")
    assert [axes.get_title() for axes in figure.axes][:2] == ["regret", "budget: violation"]
    line = figure.axes[0].lines[-1].get_ydata()
    assert np.allclose(line, play().regret(best))
    figure.savefig(tmp_path / "game.png")
    assert (tmp_path / "game.png").stat().st_size > 1000
    with pytest.raises(cx.ProblemError, match="title must be a text, got 3"):
        play().plot(title=3)


def test_a_plot_says_what_to_install(monkeypatch):
    load = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(cx.ProblemError, match=r'matplotlib is missing; .*pip install "cocoax\[figures\]"'):
        play().plot()


def test_a_constraint_that_no_decision_meets_points_to_its_proof():
    def played(demand):
        problem = cx.Problem(
            cx.domains.ProbabilitySimplex(2), lambda x, r: jnp.vdot(r, x), lambda x, r: demand - x[0], constraints="cap"
        )
        rounds = jnp.tile(jnp.array([1.0, 0.0]), (64, 1))
        return problem, rounds, cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0))

    problem, rounds, game = played(1.5)
    assert "still growing  cap; if no decision can keep within the limits, cx.hindsight proves it" in str(game)
    with pytest.raises(cx.InfeasibleError):
        cx.hindsight(problem, rounds)
    assert "still growing" not in str(played(0.9)[2])


def test_a_violation_that_falls_is_not_still_growing():
    """More than at half of the game, and less than it was in between."""
    domain = cx.domains.ProbabilitySimplex(2)
    problem = cx.Problem(domain, lambda x, r: 0 * x[0], lambda x, r: r["over"], constraints="cap")
    over = np.repeat([0.05, 1.0, -0.8], [32, 20, 12])
    game = cx.play(problem, cx.learners.Stay(), {"over": over}, key=jax.random.key(0))
    assert "still growing" not in str(game)


def test_games_without_constraints_print_too():
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r, x))
    rounds = np.tile(ROUNDS, (2, 1))  # 24: long enough to ask whether a violation grows
    assert str(cx.play(problem, cx.learners.Stay(), rounds, key=jax.random.key(0))).startswith("Game of 24 rounds")
