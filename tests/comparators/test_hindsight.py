"""`hindsight` against CVXPY (Clarabel), an independent solver: values, lower bounds, multipliers, infeasibility."""

import subprocess
import sys

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cone_tools import solved
from slow_tools import slow_but

import cocoax as cx
from cocoax import Comparator, hindsight


def check(best, reference):
    """The claims of every solved instance; 1e-7 relative is what Clarabel itself is good for."""
    assert abs(best.value - reference) <= 1e-6 + 1e-5 * abs(reference)
    assert best.lower_bound <= reference + 1e-9 + 1e-7 * abs(reference)
    assert best.gap <= 1e-6 * max(1.0, abs(best.value))
    np.testing.assert_allclose(best.loss.sum(), best.value, rtol=1e-12)


def same_multiplier(best, dual):
    """A gap of 1e-6 in the value allows errors of its root, 1e-3, in multipliers. Largest of 16 instances: 2e-4."""
    dual = np.reshape(dual, best.multiplier.shape)
    np.testing.assert_allclose(best.multiplier, dual, rtol=0, atol=1e-3 * np.abs(dual).max() + 1e-7)


# Matrix completion: min sum_t |mask_t (x - ratings_t)|^2 / 2 over a nuclear-norm ball.


def squared_loss(x, r):
    return 0.5 * jnp.sum(r["mask"] * (x - r["ratings"]) ** 2)


def exposure(x, r):
    return jnp.vdot(r["exposure"], x) - r["budget"]


def completion(rows, columns, horizon, entries, budget, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, columns)) / 3**0.5
    truth += 0.1 * rng.normal(size=truth.shape)
    mask = np.stack([rng.permutation(truth.size) < entries for _ in range(horizon)])
    mask = mask.reshape(horizon, rows, columns).astype(float)
    return {
        "mask": mask,
        "ratings": mask * (truth + 0.1 * rng.normal(size=mask.shape)),
        "exposure": np.sign(truth) * rng.uniform(size=mask.shape),
        "budget": np.full(horizon, budget),
    }


def completion_reference(rounds, radius, constrained):
    x = cp.Variable(rounds["mask"].shape[1:])
    mask, ratings = rounds["mask"].sum(0), rounds["ratings"].sum(0)
    loss = 0.5 * cp.sum(cp.multiply(mask, cp.square(x))) - cp.sum(cp.multiply(ratings, x))
    spent = cp.sum(cp.multiply(rounds["exposure"].mean(0), x)) <= rounds["budget"].mean()
    limits = [cp.normNuc(x) <= radius] + ([spent] if constrained else [])
    value = solved(loss + 0.5 * (rounds["ratings"] ** 2).sum(), limits)
    return value, (spent.dual_value / len(rounds["budget"]) if constrained else None)


@pytest.mark.parametrize("radius", [100.0, 12.0], ids=["inside the ball", "on its boundary"])
@pytest.mark.parametrize("constrained", [False, True])
def test_matrix_completion_agrees_with_a_generic_solver(radius, constrained):
    rounds = completion(12, 10, 60, 20, budget=15.0)
    problem = cx.Problem(cx.domains.NuclearNormBall((12, 10), radius), squared_loss, exposure if constrained else None)
    best = hindsight(problem, rounds)
    reference, dual = completion_reference(rounds, radius, constrained)
    check(best, reference)
    assert (np.linalg.norm(best.x, "nuc") >= 0.999 * radius) == (radius == 12.0)
    if constrained:
        assert abs(best.constraint.mean()) <= 1e-6
        same_multiplier(best, dual)


@pytest.mark.slow  # the same with smaller matrices: above
@pytest.mark.parametrize("radius", [80.0, 25.0], ids=["inside the ball", "on its boundary"])
def test_larger_matrix_completion_with_a_binding_constraint(radius):
    rounds = completion(25, 25, 100, 60, budget=60.0)
    problem = cx.Problem(cx.domains.NuclearNormBall((25, 25), radius), squared_loss, exposure)
    best = hindsight(problem, rounds)
    reference, dual = completion_reference(rounds, radius, True)
    check(best, reference)
    same_multiplier(best, dual)
    assert best.multiplier[0] > 1e-3


# Vectors: linear or quadratic losses, three stochastic linear constraints.


def linear_loss(x, r):
    return jnp.vdot(r["cost"], x)


def quadratic_loss(x, r):
    return 0.5 * jnp.sum((x - r["cost"]) ** 2)


def budgets(x, r):
    return r["use"] @ x - r["budget"]


def streams(d=10, horizon=200, m=3, seed=0, tight=0.15):
    rng = np.random.default_rng(seed)
    use = 0.5 + rng.normal(size=(horizon, m, d))
    use[:, :, 0] -= 1.2
    return {
        "cost": rng.normal(size=(horizon, d)) + rng.normal(size=d),
        "use": use,
        "budget": tight + 0.1 * rng.normal(size=(horizon, m)),
    }


LOSSES = {"linear": linear_loss, "quadratic": quadratic_loss}


def vector_loss(kind, rounds, x):
    cost = rounds["cost"]
    if kind == "linear":
        return cost.sum(0) @ x
    return 0.5 * (len(cost) * cp.sum_squares(x) - 2 * cost.sum(0) @ x + (cost**2).sum())


SETS = {
    "simplex": (cx.domains.ProbabilitySimplex(10), lambda x: [cp.sum(x) == 1, x >= 0]),
    "l1": (cx.domains.L1Ball(10, 1.5), lambda x: [cp.norm1(x) <= 1.5]),
    "l2": (cx.domains.L2Ball(10, 1.5), lambda x: [cp.norm2(x) <= 1.5]),
    "box": (cx.domains.Box(jnp.full(10, -0.2), jnp.full(10, 0.4)), lambda x: [x >= -0.2, x <= 0.4]),
}


ON_SETS = [(name, kind) for name in SETS for kind in LOSSES]
# In the fast run every set with a curved loss; a linear one on a set with corners and on a round one
CHOSEN = [case for case in ON_SETS if case[1] != "linear" or case[0] in ("simplex", "l2")]


@pytest.mark.parametrize("name, kind", slow_but(CHOSEN, ON_SETS))
def test_three_stochastic_constraints_agree_with_a_generic_solver(name, kind):
    domain, limits = SETS[name]
    rounds = streams(tight=0.15 if name == "simplex" else -0.3)
    best = hindsight(cx.Problem(domain, LOSSES[kind], budgets, constraints=3), rounds)
    x = cp.Variable(10)
    limit = rounds["use"].mean(0) @ x <= rounds["budget"].mean(0)
    check(best, solved(vector_loss(kind, rounds, x), [limit, *limits(x)]))
    same_multiplier(best, limit.dual_value / 200)
    assert best.constraint.shape == (200, 3) and np.all(best.constraint.mean(0) <= 1e-7)
    assert bool(domain.contains(jnp.asarray(best.x), 1e-9))


@pytest.mark.parametrize("kind", LOSSES)
def test_without_constraints(kind):
    domain, limits = SETS["simplex"]
    rounds = streams()
    best = hindsight(cx.Problem(domain, LOSSES[kind]), rounds)
    x = cp.Variable(10)
    check(best, solved(vector_loss(kind, rounds, x), limits(x)))
    assert best.constraint.shape == (200, 0) and best.multiplier.shape == (0,)


@pytest.mark.parametrize("kind", LOSSES)
def test_constraints_of_every_round(kind):
    domain, limits = SETS["simplex"]
    rounds = streams(horizon=60, tight=1.0)
    problem = cx.Problem(domain, LOSSES[kind], budgets, constraints=3)
    best = hindsight(problem, rounds, benchmark="every_round")
    x = cp.Variable(10)
    limit = [use @ x <= budget for use, budget in zip(rounds["use"], rounds["budget"])]
    check(best, solved(vector_loss(kind, rounds, x), [*limit, *limits(x)]))
    assert best.constraint.max() <= 1e-7
    assert best.multiplier.shape == (60, 3)
    same_multiplier(best, np.stack([one.dual_value for one in limit]))
    assert best.value > hindsight(problem, rounds).value + 1e-3


def test_expected_constraint_replaces_the_mean():
    domain, limits = SETS["simplex"]
    rounds = streams()
    use, budget = 0.5 - 1.2 * np.eye(10)[0], 0.1
    problem = cx.Problem(domain, quadratic_loss, lambda x, r: r["use"][0] @ x - r["budget"][0])
    best = hindsight(problem, rounds, expected_constraint=lambda x: jnp.dot(use, x) - budget)
    x = cp.Variable(10)
    limit = use @ x <= budget
    check(best, solved(vector_loss("quadratic", rounds, x), [limit, *limits(x)]))
    same_multiplier(best, np.atleast_1d(limit.dual_value / 200))
    assert best.constraint.shape == (200, 1)


def test_products_and_curved_constraints():
    rng = np.random.default_rng(3)
    domain = cx.domains.Product({"mix": cx.domains.ProbabilitySimplex(4), "shift": cx.domains.L2Ball(3, 2.0)})
    design, answer = rng.normal(size=(80, 7)), rng.normal(size=80) + 1.0

    def loss(x, r):
        return 0.5 * (r["row"][:4] @ x["mix"] + r["row"][4:] @ x["shift"] - r["answer"]) ** 2

    def constraint(x, r):
        return {"size": jnp.sum(x["shift"] ** 2) - r["limit"], "even": jnp.sum(x["mix"] ** 2) - 0.4}

    rounds = {"row": design, "answer": answer, "limit": rng.uniform(0.0, 0.2, size=80)}
    best = hindsight(cx.Problem(domain, loss, constraint, constraints=("size", "even")), rounds)
    mix, shift = cp.Variable(4), cp.Variable(3)
    limits = [cp.sum_squares(shift) <= rounds["limit"].mean(), cp.sum_squares(mix) <= 0.4]
    error = design[:, :4] @ mix + design[:, 4:] @ shift - answer
    check(best, solved(0.5 * cp.sum_squares(error), [*limits, cp.norm2(shift) <= 2, cp.sum(mix) == 1, mix >= 0]))
    same_multiplier(best, [limit.dual_value / 80 for limit in limits])
    assert best.x["mix"].shape == (4,) and best.constraint.mean(0).max() <= 1e-6


@pytest.mark.parametrize("name", ["simplex", "l2"])
def test_losses_and_constraints_with_kinks(name):
    domain, limits = SETS[name]
    rounds = streams(horizon=50)

    def loss(x, r):
        return jnp.sum(jnp.abs(x - r["cost"])[:4]) + jnp.maximum(r["cost"][4] + x[4:].sum(), 0.0)

    def constraint(x, r):
        return jnp.maximum(r["use"][0] @ x, r["use"][1] @ x) - 0.7

    best = hindsight(cx.Problem(domain, loss, constraint), rounds)
    x = cp.Variable(10)
    total = sum(cp.norm1((x - c)[:4]) + cp.pos(c[4] + cp.sum(x[4:])) for c in rounds["cost"])
    use = rounds["use"]
    limit = cp.sum(cp.maximum(use[:, 0] @ x, use[:, 1] @ x)) / 50 <= 0.7
    check(best, solved(total, [limit, *limits(x)]))


def test_an_open_certificate_is_reported_and_true():
    rounds = completion(12, 10, 60, 20, budget=15.0)
    problem = cx.Problem(cx.domains.NuclearNormBall((12, 10), 12.0), squared_loss, exposure)
    with pytest.warns(UserWarning, match="before its certificate closed"):
        best = hindsight(problem, rounds, seconds=1e-9)
    reference, _ = completion_reference(rounds, 12.0, True)
    assert best.gap > 1e-6 * best.value
    assert best.lower_bound <= reference * (1 + 1e-7)


def test_a_domain_that_is_only_an_oracle():
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(12, 5))
    domain = cx.domains.from_lmo(
        lambda g: corners[np.argmin(corners @ g)], start=corners.mean(0), diameter=10.0, host=True
    )
    rounds = {"cost": rng.normal(size=(30, 5)) + 0.3}
    best = hindsight(cx.Problem(domain, quadratic_loss, lambda x, r: r["cost"] @ x - 0.1), rounds)
    w = cp.Variable(12)
    x = corners.T @ w
    limit = rounds["cost"].mean(0) @ x <= 0.1
    check(best, solved(vector_loss("quadratic", rounds, x), [limit, cp.sum(w) == 1, w >= 0]))


# Infeasible instances.


INFEASIBLE = [(name, benchmark) for name in ("simplex", "l2", "box") for benchmark in ("mean", "every_round")]


@pytest.mark.parametrize("name, benchmark", slow_but(INFEASIBLE[:3], INFEASIBLE))
def test_infeasible_instances_are_proven_so(name, benchmark):
    domain, limits = SETS[name]
    rounds = streams(horizon=40, tight=-3.0)
    problem = cx.Problem(domain, quadratic_loss, budgets, constraints=3)
    with pytest.raises(cx.InfeasibleError, match="no point of the domain meets") as caught:
        hindsight(problem, rounds, benchmark=benchmark)
    multiplier, bound = caught.value.multiplier, caught.value.bound
    assert np.all(multiplier >= 0) and bound > 0
    x = cp.Variable(10)
    if benchmark == "mean":
        combined = multiplier @ (rounds["use"].mean(0) @ x - rounds["budget"].mean(0))
    else:
        combined = np.tensordot(multiplier, rounds["use"], 2) @ x - np.sum(multiplier * rounds["budget"])
    assert solved(combined, limits(x)) >= bound - 1e-7


def test_an_infeasible_curved_constraint_is_proven_so():
    rounds = streams(horizon=20)
    problem = cx.Problem(SETS["simplex"][0], quadratic_loss, lambda x, r: jnp.sum(x**2) - 0.09)
    with pytest.raises(cx.InfeasibleError) as caught:
        hindsight(problem, rounds)
    assert 0 < caught.value.bound <= 0.1 - 0.09 + 1e-9  # min of |x|^2 on the simplex of ten is 0.1


def test_a_feasible_set_without_interior_is_not_called_infeasible():
    rounds = streams(horizon=20)

    def equality(x, r):
        return jnp.stack([x[0] - 0.3, 0.3 - x[0]])

    best = hindsight(cx.Problem(SETS["simplex"][0], quadratic_loss, equality, constraints=2), rounds)
    x = cp.Variable(10)
    check(best, solved(vector_loss("quadratic", rounds, x), [x[0] == 0.3, *SETS["simplex"][1](x)]))


# The rest of the interface.


def test_given_gradients_are_used():
    rounds = streams(horizon=50)
    plain = cx.Problem(SETS["simplex"][0], quadratic_loss, budgets, constraints=3)
    given = cx.Problem(
        SETS["simplex"][0],
        lambda x, r: jax.lax.stop_gradient(quadratic_loss(x, r)),
        lambda x, r: jax.lax.stop_gradient(budgets(x, r)),
        constraints=3,
        loss_grad=lambda x, r: x - r["cost"],
        constraint_grad=lambda x, r: r["use"],
    )
    np.testing.assert_allclose(hindsight(given, rounds).x, hindsight(plain, rounds).x, atol=1e-6)


def test_environments_are_drawn_from_their_key():
    problem = cx.Problem(SETS["l2"][0], quadratic_loss)
    environment = cx.Sampler(lambda key: {"cost": 0.1 * jax.random.normal(key, (10,))})
    best, again = (hindsight(problem, environment, horizon=30, key=jax.random.key(1)) for _ in range(2))
    assert best.loss.shape == (30,) and best.value == again.value
    with pytest.raises(cx.ProblemError, match="horizon and a key"):
        hindsight(problem, environment, horizon=30)


def test_the_same_key_draws_the_rounds_of_the_game():
    problem = cx.Problem(SETS["l2"][0], quadratic_loss)
    environment = cx.Sampler(lambda key: {"cost": 0.1 * jax.random.normal(key, (10,))})
    game = cx.play(problem, cx.learners.Stay(), environment, horizon=30, key=jax.random.key(1), keep_rounds=True)
    drawn = hindsight(problem, environment, horizon=30, key=jax.random.key(1))
    assert drawn.value == hindsight(problem, game.rounds).value


def test_fixed_points_and_paths_as_comparators():
    rounds = streams(horizon=20)
    problem = cx.Problem(SETS["l2"][0], quadratic_loss, budgets, constraints=3)
    still, moving = Comparator.fixed(problem, rounds, np.zeros(10)), Comparator.path(problem, rounds, rounds["cost"])
    np.testing.assert_allclose(still.loss, 0.5 * (rounds["cost"] ** 2).sum(1))
    np.testing.assert_allclose(still.constraint, -rounds["budget"])
    np.testing.assert_allclose(moving.loss, np.zeros(20))
    assert still.gap == np.inf and np.all(still.multiplier == 0) and still.multiplier.shape == (3,)
    below = Comparator(still.x, still.loss, still.constraint, still.value, still.value + 1e-9, still.multiplier)
    assert below.gap == 0  # a constraint that is broken a little
    with pytest.raises(cx.ProblemError, match="one point a round"):
        Comparator.path(problem, rounds, np.zeros((19, 10)))


def test_comparators_can_be_stacked():
    problem = cx.Problem(SETS["simplex"][0], quadratic_loss, budgets, constraints=3)
    both = [hindsight(problem, streams(horizon=40, seed=seed)) for seed in range(2)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *both)
    assert stacked.loss.shape == (2, 40) and stacked.gap.shape == (2,)


def test_a_second_call_compiles_nothing():
    count = 0

    def loss(x, r):
        nonlocal count
        count += 1
        return quadratic_loss(x, r)

    for seed in range(2):
        before = count
        hindsight(cx.Problem(SETS["simplex"][0], loss, budgets, constraints=3), streams(horizon=40, seed=seed))
    assert before > 0 and count == before


def test_bad_input_is_named():
    problem = cx.Problem(SETS["simplex"][0], quadratic_loss, budgets, constraints=3)
    rounds = streams(horizon=20)
    rounds["cost"][7, 2] = np.nan
    with pytest.raises(cx.ProblemError, match="loss of round 7"):
        hindsight(problem, rounds)
    with pytest.raises(cx.ProblemError, match="benchmark"):
        hindsight(problem, rounds, benchmark="average")  # pyright: ignore
    with pytest.raises(cx.ProblemError, match="leading axis"):
        hindsight(problem, {"cost": np.zeros((3, 10)), "use": np.zeros((4, 3, 10)), "budget": np.zeros((3, 3))})
    with pytest.raises(cx.ProblemError, match="returned 1 value"):
        hindsight(problem, streams(), expected_constraint=lambda x: x[0])


def test_users_of_float32_get_the_same(tmp_path):
    limits = SETS["simplex"][1]
    rounds = {name: leaf.astype(np.float32) for name, leaf in streams(horizon=50).items()}
    np.savez(tmp_path / "rounds.npz", **rounds)
    script = f"""
import jax.numpy as jnp, numpy as np, cocoax as cx
from cocoax import hindsight
rounds = {{k: jnp.asarray(v) for k, v in np.load({str(tmp_path / "rounds.npz")!r}).items()}}
half = jnp.asarray(0.5)
assert half.dtype == jnp.float32
problem = cx.Problem(
    cx.domains.ProbabilitySimplex(10),
    lambda x, r: half * jnp.sum((x - r["cost"]) ** 2),
    lambda x, r: r["use"] @ x - r["budget"],
    constraints=3,
)
best = hindsight(problem, rounds)
assert best.x.dtype == best.loss.dtype == best.value.dtype == np.float64 and jnp.zeros(1).dtype == jnp.float32
print(repr(float(best.value)), repr(float(best.gap)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, gap = map(float, done.stdout.split())
    rounds = {name: leaf.astype(float) for name, leaf in rounds.items()}
    x = cp.Variable(10)
    limit = rounds["use"].mean(0) @ x <= rounds["budget"].mean(0)
    reference = solved(vector_loss("quadratic", rounds, x), [limit, *limits(x)])
    assert abs(value - reference) <= 1e-6 * abs(reference) and gap <= 1e-6 * abs(reference)


@pytest.mark.parametrize("order", ["play hindsight regret", "hindsight regret play"])
def test_numpy_arrays_may_be_closed_over_in_both_precisions(order):
    """JAX 0.10 finds the array of one precision in the program of the other, and cannot compile it."""
    script = f"""
import jax, jax.numpy as jnp, numpy as np, cocoax as cx
jax.config.update("jax_enable_x64", False)
place, rounds = np.array([0.25, 0.5]), np.ones((5, 2))
problem = cx.Problem(cx.domains.Box([0.0, 0.0], [1.0, 1.0]), lambda x, r: jnp.sum((x - place) ** 2 * r))
calls = {{
    "play": lambda: cx.play(problem, cx.learners.Stay(), rounds, key=jax.random.key(0)).loss.sum(),
    "hindsight": lambda: cx.hindsight(problem, rounds).value,
    "regret": lambda: cx.Comparator.fixed(problem, rounds, place).value,
}}
print([round(float(calls[name]()), 4) + 0.0 for name in "{order}".split()])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    values = dict(zip(order.split(), map(float, done.stdout.strip("[]\n").split(","))))
    assert values == pytest.approx({"play": 0.3125, "hindsight": 0.0, "regret": 0.0}, abs=1e-6)
