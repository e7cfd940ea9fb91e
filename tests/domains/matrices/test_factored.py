"""Matrices that are never written down, against the same ones that are."""

import functools
import itertools
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax.domains.matrices.factors import Factored
from cocoax.errors import DomainError, LearnerError, ProblemError
from cocoax.testing import check_domain

ROWS, COLUMNS, COUNT, ROUNDS, RADIUS = 30, 20, 150, 30, 5.0
KEY = jax.random.key(0)
_drawn = np.random.default_rng(0)
PLACES = np.divmod(_drawn.permutation(ROWS * COLUMNS)[:COUNT], COLUMNS)


def _rounds():
    truth = _drawn.standard_normal((ROWS, 3)) @ _drawn.standard_normal((3, COLUMNS))
    truth *= 3 / np.linalg.norm(truth)
    noise = 0.01 * _drawn.standard_normal((ROUNDS, COUNT))
    drawn = {
        "ratings": truth[PLACES] + noise,
        "use": _drawn.uniform(-0.2, 1, (ROUNDS, COUNT)),
        "left": _drawn.standard_normal((ROUNDS, 2, ROWS)) / 5,
        "right": _drawn.standard_normal((ROUNDS, 2, COLUMNS)) / 5,
    }
    return jax.tree.map(jnp.asarray, drawn)


DATA = _rounds()
REGULARITY = cx.Regularity(lipschitz=10.0, smoothness=1.0, constraint_bound=10.0)


def loss(x, r):
    return 0.5 * jnp.sum((x.entries() - r["ratings"]) ** 2)


def constraint(x, r):
    return jnp.stack([jnp.vdot(r["use"], x.entries()) - 0.1, x.inner(r["left"], r["right"]) - 0.05])


class Written:
    """The measurements of an array."""

    def __init__(self, array):
        self.array = array

    def entries(self, index=None):
        return self.array[PLACES] if index is None else self.array[PLACES][index]

    def inner(self, left, right):
        return jnp.sum(jnp.atleast_2d(left) @ self.array * jnp.atleast_2d(right))

    def __matmul__(self, right):
        return self.array @ right

    def __rmatmul__(self, left):
        return left @ self.array


def of_arrays(function):
    return lambda x, r: function(Written(x), r)


def ball(rank=32):
    return cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS, factored=True, entries=PLACES, rank=rank)


def problem(rank=32):
    return cx.Problem(ball(rank), loss, constraint, constraints=2, regularity=REGULARITY)


@functools.cache
def dense_game(learner):
    domain = cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS)
    dense = cx.Problem(domain, of_arrays(loss), of_arrays(constraint), constraints=2, regularity=REGULARITY)
    return cx.play(dense, LEARNERS[learner], DATA, key=KEY, keep_decisions=True)


@functools.cache
def factored_game(learner):
    return cx.play(problem(), LEARNERS[learner], DATA, key=KEY, keep_decisions=True, keep_rounds=True)


def ascent(primal):
    return cx.learners.PrimalDual(primal, cx.dual.RegularizedAscent(1.0, 0.1))


LEARNERS = {
    "Auto": cx.learners.Auto(),
    "TrackedPI": cx.learners.TrackedPI(),
    "Tracked": ascent(cx.primal.Tracked()),
    "OCG": ascent(cx.primal.OCG()),
    "OFW": ascent(cx.primal.OFW()),
}


def written(x, rank=32):
    return np.asarray(_written(x, rank))


@functools.partial(jax.jit, static_argnums=1)
def _written(x, rank):
    return ball(rank).view(x).dense()


@jax.jit
def all_written(decisions):
    return jax.vmap(lambda x: ball(decisions.rank).view(x).dense())(decisions)


def element(seed, terms=3, values=True):
    drawn = np.random.default_rng(seed)
    left, right = drawn.standard_normal((terms, ROWS)), drawn.standard_normal((terms, COLUMNS))
    made = ball().element(left, right, drawn.standard_normal(COUNT) if values else None)  # pyright: ignore[reportAttributeAccessIssue]
    array = left.T @ right
    if values:
        array[PLACES] += np.asarray(made.values)
    return made, array


@pytest.mark.parametrize("learner", slow_but(["Auto"], LEARNERS))  # OCG: in the session below
def test_decisions_are_those_of_the_dense_learner(learner):
    game, dense = factored_game(learner), dense_game(learner)
    assert np.abs(dense.decisions).max() > 0.01
    np.testing.assert_allclose(all_written(game.decisions), dense.decisions, atol=1e-7)
    np.testing.assert_allclose(written(game.average), dense.average, atol=1e-7)
    np.testing.assert_allclose(game.constraint, dense.constraint, atol=1e-7)


@pytest.mark.slow  # the fast run checks by hand what is cut, below
def test_version_1_with_too_small_a_rank_stays_in_the_ball_and_knows_its_error():
    game = cx.play(problem(4), cx.learners.TrackedPI(), DATA, key=KEY, keep_decisions=True)
    norms = [np.linalg.norm(x, "nuc") for x in np.asarray(all_written(game.decisions))]
    assert RADIUS * 0.8 < max(norms) <= RADIUS * (1 + 1e-9)
    assert 1e-3 < float(game.decision.error) < 1
    assert game.loss[-1] < 1.1 * dense_game("TrackedPI").loss[-1]


@pytest.mark.parametrize("weight", [None, 0.7])
def test_cutting_off_drops_what_it_says_and_no_more_than_must_be(weight):
    domain = ball(2)
    for seed in range(3):
        x, array = element(seed, terms=5)
        scale = 0.7 * RADIUS / np.linalg.norm(array, "nuc")
        x, array = x.scaled(scale), scale * array
        x = Factored(x.blocks, x.low, x.values, x.shape, x.count, 2)
        kept = domain.truncate(x, weight)
        found = written(kept, 2)
        dropped = np.linalg.svd(array - _pattern(x.values), compute_uv=False)[2:].sum()
        assert [block.left.shape for block in kept.blocks] == [(2, ROWS)]
        np.testing.assert_allclose(kept.entries(), found[PLACES], atol=1e-12)
        np.testing.assert_allclose(float(kept.error), dropped * (1 if weight is None else 2), rtol=1e-9)
        assert np.linalg.norm(found - array, "nuc") <= float(kept.error) * (1 + 1e-9)
        if weight is not None:
            assert np.linalg.norm(found, "nuc") <= weight * RADIUS


def _pattern(values):
    array = np.zeros((ROWS, COLUMNS))
    array[PLACES] = values
    return array


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_is_that_of_arrays(seed):
    (x, a), (y, b) = element(seed), element(seed + 10, terms=2)
    cases = {
        "sum": (x + y, a + b),
        "shared parts": ((x + y) - x.scaled(0.5) - y, 0.5 * a),
        "rank-deficient": (x + x.scaled(2.0) - y - y, 3 * a - 2 * b),
        "nothing": (x - x, 0 * a),
        "start": (ball().start() + x, a),
        "kept": (ball().truncate(x - y), a - b),
        "zero, kept": (ball().truncate(ball().start()), 0 * a),
    }
    for name, (made, array) in cases.items():
        np.testing.assert_allclose(written(made), array, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(made.entries(), array[PLACES], atol=1e-12, err_msg=name)
        np.testing.assert_allclose(made.dot(y), np.vdot(array, b), atol=1e-10, err_msg=name)
        np.testing.assert_allclose(made.dot(made), np.vdot(array, array), atol=1e-10, err_msg=name)
    assert len((x + x).blocks) == 1


def test_products_vertices_and_supports_are_those_of_arrays():
    (x, a), domain = element(5), ball()
    dense = cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS)
    drawn = np.random.default_rng(1)
    left, right = drawn.standard_normal((2, ROWS)), drawn.standard_normal((COLUMNS, 2))
    searched = cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS, factored=True, entries=PLACES, method="krylov")

    @jax.jit
    def measured(x):
        view = domain.view(x)
        products = view @ right, left[0] @ view, jnp.asarray(left) @ view, view.inner(left, right.T)
        return products, domain.support(x), searched.lmo_error(x, searched.lmo(x))

    products, support, error = measured(x)
    for found, expected in zip(products, (a @ right, left[0] @ a, left @ a, np.trace(left @ a @ right))):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(support, dense.support(a), rtol=1e-9)
    assert float(error) < 1e-9
    guess, of_arrays = domain.vertex(), dense.vertex()
    for method in ("auto", "power", "exact"):
        options = {"method": method, "iterations": 3}
        factored = cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS, factored=True, entries=PLACES, **options)
        written_down = cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS, **options)

        @jax.jit
        def answers(x, array, factored=factored, written_down=written_down):
            answer = factored.lmo(x, guess).dense()
            return factored.view(answer).dense(), answer.entries(), written_down.lmo(array, of_arrays).dense()

        found, entries, expected = map(np.asarray, answers(x, a))
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(entries, expected[PLACES], atol=1e-9)
    assert [float(domain.diameter(ord)) for ord in (1, 2, np.inf)] == [
        float(dense.diameter(ord)) for ord in (1, 2, np.inf)
    ]
    contains = jax.jit(lambda scale: domain.contains(x.scaled(scale)))
    inside, outside = (scale * RADIUS / np.linalg.norm(a, "nuc") for scale in (0.99, 1.01))
    assert contains(inside) and not contains(outside)


def _curved(x, r):
    """Entries, some of them twice; a form; products with vectors on both sides."""
    seen = jax.vmap(x.entries)(jnp.array([3, 5, 3]))
    products = jnp.sum((x @ r["right"].T) ** 4) + jnp.sum(jnp.tanh(r["left"][0] @ x))
    return jnp.sum(jnp.sin(seen)) + x.inner(r["left"], r["right"]) ** 2 + products + jnp.sum(x.entries() ** 4)


def test_derivatives_are_those_of_arrays():
    (x, a), (d, b) = element(7), element(8)
    x, a = x.scaled(0.1), jnp.asarray(0.1 * a)
    r = jax.tree.map(lambda leaf: leaf[0], DATA)
    factored = cx.Problem(ball(), _curved, constraint, constraints=2)
    dense = cx.Problem(
        cx.domains.NuclearNormBall((ROWS, COLUMNS), RADIUS), of_arrays(_curved), of_arrays(constraint), constraints=2
    )
    weights = jnp.asarray(0.3), jnp.array([2.0, -1.0])

    def derivatives(problem, x, d, written):
        of_loss, of_constraints = problem.gradients(x, r)
        rows = [written(jax.tree.map(lambda leaf, i=i: leaf[i], of_constraints)) for i in range(2)]
        pulled, product = problem.linearize(x, r)[2](*weights), problem.curvature(x, r, *weights)(d)
        parts = {
            "loss": written(of_loss),
            "constraints": rows,
            "pulled": written(pulled),
            "curvature": written(product),
        }
        return problem.values(x, r)[0], parts, pulled

    value, found, pulled = jax.jit(lambda x, d: derivatives(factored, x, d, lambda x: factored.domain.view(x).dense()))(
        x, d
    )
    expected_value, expected, _ = jax.jit(lambda x, d: derivatives(dense, x, d, lambda x: x))(a, jnp.asarray(b))
    np.testing.assert_allclose(value, expected_value)
    for name, atol in {"loss": 1e-10, "constraints": 1e-12, "pulled": 1e-10, "curvature": 1e-9}.items():
        np.testing.assert_allclose(found[name], expected[name], atol=atol, err_msg=name)
    np.testing.assert_allclose(pulled.entries(), found["pulled"][PLACES], atol=1e-10)


def test_regret_against_a_matrix():
    point, array = ball().start(), jnp.zeros((ROWS, COLUMNS))
    expected = sum(of_arrays(loss)(array, jax.tree.map(lambda leaf, t=t: leaf[t], DATA)) for t in range(ROUNDS))
    game = factored_game("Auto")
    np.testing.assert_allclose(game.regret(point)[-1], game.loss.sum() - expected)
    np.testing.assert_allclose(game.regret(game.decisions)[-1], 0, atol=1e-9)


def test_a_session_takes_factored_decisions():
    with cx.Session(problem(), LEARNERS["OCG"], key=KEY, horizon=ROUNDS) as session:
        for t in range(3):
            session.observe(jax.tree.map(lambda leaf, t=t: np.asarray(leaf[t]), DATA))
        np.testing.assert_allclose(written(session.decide()), dense_game("OCG").decisions[3], atol=1e-9)


def test_bad_input_gets_one_sentence():
    made = functools.partial(cx.domains.NuclearNormBall, (3, 3), 1.0)
    with pytest.raises(DomainError, match="give factored=True"):
        made(rank=2)
    with pytest.raises(DomainError, match=r"hold \(0, 1\) twice"):
        made(factored=True, entries=([0, 2, 0], [1, 1, 1]))
    with pytest.raises(DomainError, match="columns of entries must lie between 0 and 2, got 1 to 3"):
        made(factored=True, entries=([0, 1], [1, 3]))
    with pytest.raises(DomainError, match="one length"):
        made(factored=True, entries=([0, 1], [1]))
    with pytest.raises(DomainError, match="whole numbers"):
        made(factored=True, entries=([0.5], [1.0]))
    with pytest.raises(DomainError, match="rank must be at least 1"):
        made(factored=True, rank=0)
    domain = ball()
    with pytest.raises(DomainError, match="must be one of its matrices"):
        domain.lmo(jnp.zeros((ROWS, COLUMNS)))
    with pytest.raises(DomainError, match="does not project"):
        domain.project(domain.start())
    with pytest.raises(DomainError, match="together"):
        domain.element(np.zeros(ROWS))  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(DomainError, match="one for each entry"):
        domain.element(values=np.zeros(3))  # pyright: ignore[reportAttributeAccessIssue]
    large = cx.domains.NuclearNormBall((100_000, 50_000), 1.0, factored=True, rank=1)
    with pytest.raises(DomainError, match="too large to be written down"):
        large.view(large.start()).dense()


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (lambda x, r: jnp.sum(x**2), "loss sees a factored matrix"),
        (lambda x, r: x.inner(r["left"], r["left"]), "x has 20 columns"),
        (jax.jit(lambda x, r: x.inner(r["left"], r["right"])), "inside jit"),
        (lambda x, r: jnp.sum(jax.vmap(x.inner)(r["left"], r["right"])), "inside jit"),
        (lambda x, r: jax.lax.scan(lambda c, v: (c + jnp.sum(x @ v), None), 0.0, r["right"])[0], "inside jit"),
        (lambda x, r: jax.lax.cond(r["left"][0, 0] > 0, lambda: jnp.sum(r["left"] @ x), lambda: 0.0), "inside jit"),
        (lambda x, r: jax.grad(lambda s: x.inner(s * r["left"], r["right"]))(1.0), "inside jit"),
        (lambda x, r: jnp.sum(x @ (x.entries()[0] * r["right"][0])), "with data only"),
    ],
)
def test_losses_that_do_not_measure_are_told_how(loss, told):
    with pytest.raises(ProblemError, match=told):
        cx.play(cx.Problem(ball(), loss), cx.learners.Auto(), DATA, key=KEY)


def test_what_cannot_play_factored_matrices_says_so():
    with pytest.raises(LearnerError, match="PDMFW cannot play factored matrices"):
        cx.play(problem(), cx.learners.PDMFW(), DATA, key=KEY)
    with pytest.raises(ProblemError, match="no solver for factored"):
        cx.hindsight(problem(), DATA)
    with pytest.raises(ProblemError, match="loss_grad= is not for factored"):
        cx.play(cx.Problem(ball(), loss, loss_grad=lambda x, r: x), cx.learners.Auto(), DATA, key=KEY)
    with pytest.raises(ProblemError, match="start must be a matrix of the domain"):
        cx.play(problem(), cx.learners.Auto(), DATA, key=KEY, start=jnp.zeros((ROWS, COLUMNS)))


def test_the_documented_example_runs():
    page = (Path(__file__).parents[3] / "docs" / "domains.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    found: dict = {}
    exec(code, found)
    row_sums = found["ball"].view(found["game"].decision).dense().sum(axis=1)
    np.testing.assert_allclose(found["scores"], row_sums, atol=1e-9)
    assert found["game"].loss[-1] < 0.7 and np.abs(row_sums).max() > 0


@pytest.mark.parametrize(
    "method, dtype",
    slow_but([("auto", "float64")], itertools.product(["auto", "krylov"], ["float64", "float32"])),  # which is cast
)
def test_the_ball_of_all_entries_keeps_the_contract_of_domains(method, dtype):
    places = np.divmod(np.arange(12), 3)
    ball = cx.domains.NuclearNormBall((4, 3), 2.0, factored=True, entries=places, method=method)

    def written(element):
        return ball.view(element).dense()

    def matrix(x):
        return ball.element(values=x.reshape(-1))  # pyright: ignore[reportAttributeAccessIssue]

    domain = cx.domains.from_lmo(
        lambda direction: written(ball.lmo(matrix(direction)).dense()).astype(direction.dtype),
        start=written(ball.start()),
        diameter=ball.diameter(2),
        contains=lambda x, tol: cx.domains.NuclearNormBall((4, 3), 2.0).contains(x, tol),
    )
    singular = functools.partial(np.linalg.svd, compute_uv=False)
    check_domain(
        domain, key=KEY, directions=16, reference=lambda direction: -2 * singular(direction)[0], dtypes=[dtype]
    )


def test_what_is_cut_stays_in_the_ball_and_is_accounted_for_ever_after():
    axes = np.eye(3)
    ball = cx.domains.NuclearNormBall((3, 3), 1.0, factored=True, entries=np.divmod(np.arange(9), 3), rank=1)
    values = (-0.5 * np.outer(axes[1], axes[1])).ravel()  # they make up for the second term, which is dropped
    x = ball.element(np.stack([axes[0], 0.5 * axes[1]]), axes[:2], values=values)  # pyright: ignore[reportAttributeAccessIssue]
    kept = ball.truncate(x, 1.0)

    def nuclear(element):
        return np.linalg.svd(np.asarray(ball.view(element).dense()), compute_uv=False).sum()

    assert nuclear(x) == pytest.approx(1.0)
    assert nuclear(kept) <= 1 + 1e-6
    again = ball.truncate(kept.scaled(0.5) + kept.scaled(0.5) + x.scaled(0.0), 1.0)
    for found in (kept, again):
        distance = np.linalg.svd(np.asarray(ball.view(x - found).dense()), compute_uv=False).sum()
        assert distance > 0.1
        assert found.error >= distance - 1e-6
    assert ball.view(again).error == again.error


@pytest.mark.parametrize(
    "index, told", [((0, 1), "not rows and columns"), (COUNT, f"from 0 to {COUNT - 1}"), ([0.5], "not rows")]
)
def test_entries_are_asked_for_by_their_place(index, told):
    problem = cx.Problem(ball(32), lambda x, r: jnp.sum(x.entries(index)))
    with pytest.raises(ProblemError, match=told):
        cx.play(problem, cx.learners.Auto(), DATA, key=KEY)


def test_places_beyond_the_entries_in_a_round_are_refused():
    problem = cx.Problem(ball(32), lambda x, r: jnp.sum(x.entries(r)))
    cx.play(problem, cx.learners.Stay(), jnp.array([[0, -COUNT], [1, COUNT - 1]]), key=KEY)
    with pytest.raises(ProblemError, match="round 1: the loss is not finite"):
        cx.play(problem, cx.learners.Stay(), jnp.array([[0, 1], [1, COUNT]]), key=KEY)


def test_a_loss_cannot_write_the_matrix_down():
    problem = cx.Problem(ball(32), lambda x, r: jnp.sum(x.dense() ** 2))
    with pytest.raises(ProblemError, match="written down"):
        cx.play(problem, cx.learners.Auto(), DATA, key=KEY)


def test_a_scaled_ball_is_refused():
    with pytest.raises(ProblemError, match="can be a part of a Product, and of no other domain"):
        cx.play(cx.Problem(cx.domains.Scale(ball(32), 2.0), loss), cx.learners.Auto(), DATA, key=KEY)
