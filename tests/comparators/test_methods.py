"""Each method of `hindsight` against CVXPY (Clarabel), at a size where it is chosen, and that it was."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cone_tools import solved

import cocoax as cx
from cocoax import hindsight
from cocoax.comparators import low_rank, methods
from cocoax.comparators.clock import Clock
from cocoax.comparators.objective import Objective
from cocoax.comparators.oracle import Oracle
from cocoax.comparators.search import Search

SIZE, ROUNDS = 400, 60


def data():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROUNDS, SIZE))
    answers = 0.01 * rows.sum(1) + rng.normal(size=ROUNDS)
    use = rng.uniform(size=(ROUNDS, 2, SIZE))
    return {"row": rows, "answer": answers, "use": use, "sign": np.sign(answers)}


DATA = data()
LOSSES = {
    "linear": (lambda x, r: jnp.vdot(r["row"], x), lambda z: cp.sum(z)),
    "quadratic": (
        lambda x, r: 0.5 * (jnp.vdot(r["row"], x) - r["answer"]) ** 2,
        lambda z: 0.5 * cp.sum_squares(z - DATA["answer"]),
    ),
    "logistic": (
        lambda x, r: jax.nn.softplus(-r["sign"] * jnp.vdot(r["row"], x)),
        lambda z: cp.sum(cp.logistic(-cp.multiply(DATA["sign"], z))),
    ),
    "absolute": (lambda x, r: jnp.abs(jnp.vdot(r["row"], x) - r["answer"]), lambda z: cp.norm1(z - DATA["answer"])),
}
SETS = {
    "simplex": (cx.domains.ProbabilitySimplex(SIZE), lambda x: [cp.sum(x) == 1, x >= 0]),
    "l1": (cx.domains.L1Ball(SIZE, 0.5), lambda x: [cp.norm1(x) <= 0.5]),
    "l2": (cx.domains.L2Ball(SIZE, 0.05), lambda x: [cp.norm2(x) <= 0.05]),
    "box": (cx.domains.Box(jnp.full(SIZE, -0.002), jnp.full(SIZE, 0.003)), lambda x: [x >= -0.002, x <= 0.003]),
}
BUDGET = {"simplex": 0.49, "l1": -0.05, "l2": -0.01, "box": -0.05}


PAIRS = [(name, kind) for name in SETS for kind in LOSSES]
FAST = [("simplex", "linear"), ("l2", "logistic"), ("box", "quadratic"), ("l1", "absolute")]


@pytest.mark.parametrize(
    ("name", "kind"), [pytest.param(*pair, marks=[] if pair in FAST else pytest.mark.slow) for pair in PAIRS]
)
def test_large_sets_that_project(name, kind, monkeypatch):
    monkeypatch.setattr(methods, "_any", None)  # the method of last resort is not needed
    domain, limits = SETS[name]
    loss, reference = LOSSES[kind]
    budget = BUDGET[name]
    problem = cx.Problem(domain, loss, lambda x, r: r["use"] @ x - budget, constraints=2)
    best = hindsight(problem, DATA, tol=1e-5)
    x = cp.Variable(SIZE)
    value = solved(reference(DATA["row"] @ x), [DATA["use"].mean(0) @ x <= budget, *limits(x)])
    assert abs(best.value - value) <= 2e-4 * max(1.0, abs(value))
    assert best.lower_bound <= value + 1e-6 * max(1.0, abs(value))
    assert best.gap <= 1e-5 * max(1.0, abs(best.value))
    assert bool(domain.contains(jnp.asarray(best.x), 1e-9))


@pytest.mark.parametrize("kind", ["quadratic", "absolute"])
def test_a_full_and_ill_conditioned_problem(kind, monkeypatch):
    """As many rounds as entries: first-order methods need minutes, a cone program a second."""
    monkeypatch.setattr(methods, "_TRIAL", 0.0)
    monkeypatch.setattr(methods, "_EXACT", 0.0)
    monkeypatch.setattr(methods, "_any", None)
    size = 320
    rng = np.random.default_rng(0)
    rows, answers, use = rng.normal(size=(size, size)), rng.normal(size=size), rng.normal(size=(3, size)) / size**0.5
    limit = np.array([0.0, -0.1, 0.1])

    def loss(x, r):
        error = jnp.vdot(r["row"], x) - r["answer"]
        return jnp.abs(error) if kind == "absolute" else 0.5 * error**2

    domain = cx.domains.Box(jnp.full(size, -0.3), jnp.full(size, 0.2))
    problem = cx.Problem(domain, loss, lambda x, r: use @ x - limit, constraints=3)
    best = hindsight(problem, {"row": rows, "answer": answers}, tol=1e-5, progress=False)
    x = cp.Variable(size)
    total = cp.norm1(rows @ x - answers) if kind == "absolute" else 0.5 * cp.sum_squares(rows @ x - answers)
    value = solved(total, [x >= -0.3, x <= 0.2, use @ x <= limit])
    assert best.lower_bound <= value + 1e-7 * value and abs(best.value - value) <= 2e-5 * value
    assert best.gap <= 1e-5 * best.value


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
def test_a_large_infeasible_instance_is_proven_so(kind):
    domain, _ = SETS["simplex"]
    problem = cx.Problem(domain, LOSSES[kind][0], lambda x, r: r["use"] @ x - 0.01, constraints=2)
    with pytest.raises(cx.InfeasibleError) as caught:
        hindsight(problem, DATA)
    least = (caught.value.multiplier @ DATA["use"].mean(0)).min() - 0.01 * caught.value.multiplier.sum()
    assert 0 < caught.value.bound <= least + 1e-9


EDGES = [[i, i + 1] for i in range(8) if i % 3 < 2] + [[i, i + 3] for i in range(6)]  # of a grid


def flow_limits(x):
    """Flows of one unit each, from 0 and from 1 to 8."""
    incidence = np.zeros((9, len(EDGES)))
    for number, (tail, head) in enumerate(EDGES):
        incidence[tail, number], incidence[head, number] = 1.0, -1.0
    sides = [np.eye(9)[source] - np.eye(9)[8] for source in (0, 1)]
    return [x >= 0, x <= 1, *(incidence @ x[i] == side for i, side in enumerate(sides))]


def test_flows_block_by_block(monkeypatch):
    """Two commodities on a grid share the delay of its edges; only linear minimisation is known of either."""
    monkeypatch.setattr(methods, "_cones", lambda search: None)
    monkeypatch.setattr(methods, "_any", None)
    flows = [cx.domains.Flow(EDGES, source, 8) for source in (0, 1)]

    def loss(x, r):
        return jnp.sum(r["delay"] * (x[0] + x[1]) ** 4)

    delays = np.random.default_rng(0).uniform(0.5, 2.0, size=(5, len(EDGES)))
    best = hindsight(cx.Problem(cx.domains.Product(flows), loss), {"delay": delays})
    x = cp.Variable((2, len(EDGES)))
    value = solved(cp.sum(cp.multiply(delays.sum(0), cp.power(cp.sum(x, axis=0), 4))), flow_limits(x))
    assert abs(best.value - value) <= 1e-5 * value and best.lower_bound <= value * (1 + 1e-7)
    assert best.gap <= 1e-6 * best.value


def test_birkhoff_as_a_cone_program(monkeypatch):
    monkeypatch.setattr(methods, "_any", None)
    targets = np.random.default_rng(0).uniform(size=(4, 8, 8))
    problem = cx.Problem(cx.domains.Birkhoff(8), lambda x, r: 0.5 * jnp.sum((x - r) ** 2))
    best = hindsight(problem, targets)
    x = cp.Variable((8, 8))
    total = sum(0.5 * cp.sum_squares(x - target) for target in targets)
    value = solved(total, [x >= 0, cp.sum(x, axis=0) == 1, cp.sum(x, axis=1) == 1])
    assert abs(best.value - value) <= 1e-6 * value and best.lower_bound <= value * (1 + 1e-7)


def test_scaled_and_moved_sets_as_cone_programs(monkeypatch):
    """-2 times a simplex, beside an l1 ball around (3, 1, 2, 0)."""
    monkeypatch.setattr(methods, "_first_order", None)
    rng, centre = np.random.default_rng(0), np.array([3.0, 1.0, 2.0, 0.0])
    rows, answers, use = rng.normal(size=(9, 8)), rng.normal(size=9), rng.normal(size=8)
    moved = cx.domains.Translate(cx.domains.L1Ball(4, 0.5), jnp.asarray(centre))
    domain = cx.domains.Product([cx.domains.Scale(cx.domains.ProbabilitySimplex(4), -2.0), moved])
    x = cp.Variable(8)
    total = 0.5 * cp.sum_squares(rows @ x - answers)
    limits = [x[:4] <= 0, cp.sum(x[:4]) == -2, cp.norm1(x[4:] - centre) <= 0.5]
    solved(total, limits)
    limit = float(use @ x.value) - 0.1  # it binds

    def loss(x, r):
        return 0.5 * (jnp.vdot(r["row"], jnp.concatenate(x)) - r["answer"]) ** 2

    problem = cx.Problem(domain, loss, lambda x, r: jnp.vdot(use, jnp.concatenate(x)) - limit)
    best = hindsight(problem, {"row": rows, "answer": answers})
    value = solved(total, [*limits, use @ x <= limit])
    assert abs(best.value - value) <= 1e-6 * value and best.lower_bound <= value * (1 + 1e-7)
    assert best.multiplier[0] > 1e-3


def test_large_matrices_by_decompositions_of_low_rank(monkeypatch):
    monkeypatch.setattr(methods, "_first_order", None)
    rng = np.random.default_rng(0)
    shape, truth = (300, 260), rng.normal(size=(300, 2)) @ rng.normal(size=(2, 260))
    places = rng.permutation(truth.size)[:6000]
    rows, columns = places // 260, places % 260
    ball = cx.domains.NuclearNormBall(shape, 300.0)
    problem = cx.Problem(ball, lambda x, r: 0.5 * (x[r["row"], r["column"]] - r["rating"]) ** 2)
    data = {"row": jnp.asarray(rows), "column": jnp.asarray(columns), "rating": truth[rows, columns]}
    best = hindsight(problem, data, tol=1e-2)
    assert best.gap <= 1e-2 * best.value and np.linalg.norm(best.x, "nuc") <= 300.0 * (1 + 1e-9)
    residual = np.zeros(shape)
    residual[rows, columns] = best.x[rows, columns] - truth[rows, columns]
    bound = best.value - np.vdot(residual, best.x) - 300.0 * np.linalg.norm(residual, 2)  # by a full decomposition
    assert best.lower_bound <= best.value and abs(best.gap - (best.value - bound)) <= 1e-2 * best.value


def test_steep_poles_are_no_obstacle():
    """x log x: the entropy's own optimum, whose entries are down to 1e-9."""
    cost = np.tile(np.linspace(0.0, 20.0, 12), (6, 1))

    def entropy(x, r):
        return jnp.vdot(r, x) + jnp.sum(jax.scipy.special.xlogy(x, x))

    best = hindsight(cx.Problem(cx.domains.ProbabilitySimplex(12), entropy, lambda x, r: 0.2 - x[6]), cost)
    weights = np.exp(-cost[0]) * (np.arange(12) != 6)
    x = 0.8 * weights / weights.sum() + 0.2 * np.eye(12)[6]
    value = 6 * (cost[0] @ x + np.sum(x * np.log(x)))
    assert abs(best.value - value) <= 1e-5 and best.lower_bound <= value + 1e-9


@pytest.mark.parametrize("kind", ["affine", "curved"])
def test_constraints_over_matrices_by_decompositions_of_low_rank(kind, monkeypatch):
    """A nuclear-norm ball times a box: two constraints that bind, or a curved one that does."""
    monkeypatch.setattr(low_rank, "_LARGE", 4)
    monkeypatch.setattr(methods, "_first_order", None)
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(12, size=60), rng.integers(10, size=60)
    data = {"row": jnp.asarray(rows), "column": jnp.asarray(columns), "rating": rng.normal(size=60) + 1.0}
    balls = {"matrix": cx.domains.NuclearNormBall((12, 10), 8.0), "bias": cx.domains.LinfBall(12, 0.2)}

    def loss(x, r):
        return 0.5 * (x["matrix"][r["row"], r["column"]] + x["bias"][r["row"]] - r["rating"]) ** 2

    def exposure(x, r):
        x = x["matrix"]
        if kind == "affine":
            return jnp.stack([x[r["row"], :5].sum() - 0.3, x[r["row"], 5:].sum() - 0.2])
        return jnp.sum(x[:, :5] ** 2)[None] - 1.0

    problem = cx.Problem(cx.domains.Product(balls), loss, exposure, constraints=2 if kind == "affine" else 1)
    best = hindsight(problem, data, tol=1e-5)
    x, bias = cp.Variable((12, 10)), cp.Variable(12)
    total = 0.5 * cp.sum_squares(x[rows, columns] + bias[rows] - np.asarray(data["rating"]))
    seen = np.bincount(rows, minlength=12) / 60
    limits = [seen @ x[:, :5] @ np.ones(5) <= 0.3, seen @ x[:, 5:] @ np.ones(5) <= 0.2]
    limits = limits if kind == "affine" else [cp.sum_squares(x[:, :5]) <= 1.0]
    value = solved(total, [cp.normNuc(x) <= 8.0, cp.abs(bias) <= 0.2, *limits])
    assert abs(best.value - value) <= 1e-4 * value and best.lower_bound <= value * (1 + 1e-6)
    assert best.gap <= 1e-5 * best.value and best.multiplier.min() > 1e-3
    assert best.constraint.mean(0).max() <= 1e-4 and np.linalg.norm(best.x["matrix"], "nuc") <= 8.0 * (1 + 1e-9)


def test_flows_block_by_block_within_a_curved_budget(monkeypatch):
    monkeypatch.setattr(methods, "_cones", lambda search: None)
    monkeypatch.setattr(methods, "_any", None)
    flows = [cx.domains.Flow(EDGES, source, 8) for source in (0, 1)]
    delays = np.random.default_rng(0).uniform(0.5, 2.0, size=(5, len(EDGES)))
    problem = cx.Problem(
        cx.domains.Product(flows),
        lambda x, r: jnp.sum(r["delay"] * (x[0] + x[1]) ** 4),
        lambda x, r: (x[0] + x[1])[0] ** 2 + (x[0] + x[1])[2] - 0.3,
    )
    best = hindsight(problem, {"delay": delays})
    x = cp.Variable((2, len(EDGES)))
    total = x[0] + x[1]
    limits = [*flow_limits(x), cp.square(total[0]) + total[2] <= 0.3]
    value = solved(cp.sum(cp.multiply(delays.sum(0), cp.power(total, 4))), limits)
    assert abs(best.value - value) <= 1e-5 * value and best.lower_bound <= value * (1 + 1e-7)
    assert best.gap <= 1e-6 * best.value and best.multiplier[0] > 1e-3


def test_a_mixture_lies_between_its_two_points():
    """(1, -1) breaks x[0] <= 1/2, (0, 0) does not: half-way, whatever else the other constraint would allow."""
    problem = cx.Problem(
        cx.domains.Box(-jnp.ones(2), jnp.ones(2)),
        lambda x, r: jnp.vdot(r, x),
        lambda x, r: jnp.stack([x[0] - 0.5, x[1] - 3.0]),
        constraints=2,
    )
    objective = Objective(problem, np.ones((3, 2)), None, "mean")
    search = Search(objective, Oracle(problem.domain, objective.start), 1e-9, Clock())
    search.best_violation = np.inf
    search.mix(objective.measure(np.array([1.0, -1.0]), np.zeros(2)), np.zeros(2))
    np.testing.assert_allclose(search.best.point, [0.5, -0.5])
