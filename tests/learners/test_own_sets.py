"""Parts that play on some sets only keep the contract there, and refuse other sets in one sentence."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import cocoax as cx
from cocoax import domains, learners, primal
from cocoax.testing import check_learner, check_primal, problems

BOXES = domains.Product({"mean": domains.Box([-1.0], [2.0]), "biases": domains.Box([-1.0] * 3, [1.0] * 3)})
ON_SETS = {
    "EntropicNewton": (primal.EntropicNewton(), domains.PartitionMatroid([0, 0, 1, 1], [1, 1])),
    "ExponentiatedGradient": (primal.ExponentiatedGradient(), domains.ProbabilitySimplex(4)),
    "OnlineNewton": (
        primal.OnlineNewton(),
        domains.Product({"l2": domains.L2Ball(2, 1.0), "l1": domains.L1Ball(3, 1.0)}),
    ),
    "DiagonalNewton": (primal.DiagonalNewton(), BOXES),
    "Within": (primal.Within(primal.OGD(), 0.5), domains.L2Ball(3, 1.0)),
    "Mixture": (primal.Mixture([primal.DiagonalNewton(0.5), primal.OGD()]), BOXES),
}


@pytest.mark.parametrize("name", ON_SETS)
def test_primals_keep_their_contract_on_their_sets(name):
    method, domain = ON_SETS[name]
    check_primal(method, key=jax.random.key(0), domain=domain)


@pytest.mark.slow
def test_auto_flow_keeps_the_contract_of_learners():
    problem, rounds = problems.tracking(
        domains.PartitionMatroid([0, 0, 1, 1], [1, 1]), key=jax.random.key(1), rounds=20
    )
    check_learner(learners.AutoFlow(), key=jax.random.key(0), problem=problem, rounds=rounds, random=False)


@pytest.mark.slow
def test_auto_newton_keeps_the_contract_of_learners():
    problem, rounds = problems.tracking(BOXES, key=jax.random.key(1), rounds=20)
    check_learner(learners.AutoNewton(), key=jax.random.key(0), problem=problem, rounds=rounds, random=False)


@pytest.mark.parametrize(
    "learner, sentence",
    [
        (learners.PrimalDual(primal.ExponentiatedGradient(), cx.dual.RobustPI()), "plays on a ProbabilitySimplex"),
        (learners.PrimalDual(primal.DiagonalNewton(), cx.dual.RobustPI()), "DiagonalNewton plays on boxes"),
        (learners.AutoFlow(), "AutoFlow plays on a ProbabilitySimplex or a PartitionMatroid .* got L2Ball"),
        (learners.AutoGrowth(), "AutoGrowth plays on a ProbabilitySimplex"),
        (learners.AutoNewton(), "AutoNewton plays on boxes .* choose learners.Auto"),
    ],
)
def test_other_sets_are_refused(learner, sentence):
    problem = cx.Problem(domains.L2Ball(2, 1.0), lambda x, r: jnp.vdot(r, x))
    with pytest.raises(cx.errors.LearnerError, match=sentence):
        cx.play(problem, learner, jnp.ones((3, 2)), key=jax.random.key(0))


@pytest.mark.parametrize("takes", ["loss", "constraint"])
@pytest.mark.parametrize(
    "learner, domain",
    [(learners.AutoFlow(), domains.ProbabilitySimplex(3)), (learners.AutoNewton(), domains.Box([0.0] * 3, [1.0] * 3))],
    ids=["AutoFlow", "AutoNewton"],
)
def test_movement_is_refused_by_those_that_would_not_count_it(learner, domain, takes):
    parts = {"loss": jnp.vdot, takes: lambda x, r, previous: jnp.abs(x - previous).sum() - 0.1}
    with pytest.raises(cx.errors.LearnerError) as caught:
        cx.play(cx.Problem(domain, **parts), learner, jnp.ones((3, 3)), key=jax.random.key(0))
    name = type(learner).__name__
    assert str(caught.value) == f"{name} does not count movement; leave out previous, or choose learners.Auto()"


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: primal.Mixture([]), "needs a list of primals"),
        (lambda: primal.Mixture([primal.FTPL()]), "do not draw coins, got FTPL"),
        (lambda: learners.AutoGrowth(bands=()), "bands must be a list"),
        (lambda: learners.AutoGrowth(dual=cx.dual.PI()), "needs a dual.RobustPI"),
        (lambda: learners.AutoNewton(scales=()), "scales must be a list"),
        (lambda: learners.AutoNewton(scales=[2.0]), "scale must"),
        (lambda: learners.Blocks(primal.DiagonalNewton()), "states none; use PrimalDual"),
    ],
)
def test_bad_arguments_are_told(make, sentence):
    with pytest.raises(cx.errors.LearnerError, match=sentence):
        make()


class Half(domains.AbstractVertex):
    point: jax.Array

    def dense(self):
        return self.point


class Capped(domains.ProbabilitySimplex):
    """Shares of which none is above a half, with numbers of Python as diameters."""

    def lmo(self, direction, guess=None) -> Any:
        first, second = jnp.argsort(direction)[:2]
        return Half(jnp.zeros_like(direction).at[jnp.array([first, second])].set(0.5))

    def diameter(self, ord):
        return {1: 2.0, 2: 2.0**0.5}[ord]

    def contains(self, x, tol=1e-6):
        return super().contains(x, tol) & (x.max() <= 0.5 + tol)

    def inradius(self):
        return None

    project = domains.AbstractDomain.project


def test_a_guarded_auto_stays_in_a_simplex_with_an_lmo_of_ones_own():
    known = cx.Regularity(lipschitz=2.0, constraint_bound=1.0)
    problem = cx.Problem(Capped(3, 1.0), lambda x, r: r @ x, regularity=known)
    costs = jnp.tile(jnp.array([-1.0, 0.0, 0.5]), (30, 1))
    game = cx.play(problem, learners.Guarded(), costs, key=jax.random.key(0), certify=True, keep_decisions=True)
    assert jax.vmap(problem.domain.contains)(game.decisions).all()
    assert game.certificate().regret >= game.loss.sum() + 30 * 0.5 - 1e-9  # (1/2, 1/2, 0) costs -0.5


class Unwrapped(Capped):
    def lmo(self, direction, guess=None) -> Any:
        return super().lmo(direction).dense()


def test_an_lmo_that_returns_an_array_is_named():
    with pytest.raises(cx.DomainError, match=r"Unwrapped\.lmo must return a vertex, got an array"):
        cx.testing.check_domain(Unwrapped(3, 1.0), key=jax.random.key(0))
