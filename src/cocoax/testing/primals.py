"""What every primal promises, as one function."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import tree
from ..domains.base import AbstractDomain
from ..dual.base import Weights
from ..errors import LearnerError
from ..learners.reveal import Reveal
from ..primal.base import AbstractPrimal, RoundBounds
from ..problem.problem import Problem
from . import problems
from .require import kinds, require, require_inside, require_same, same

_ROUNDS = 6  # before the restart, and after it
_CAPACITY = 12


def check_primal(primal: AbstractPrimal, *, key: PRNGKeyArray, domain: AbstractDomain | None = None) -> None:
    """Raise `AssertionError`, naming the broken promise, unless `primal` keeps all that learners rely on.

    The primal plays a small problem alone, with one restart: on a product of a simplex and a nuclear-norm ball, or on
    `domain`, for primals that accept only some sets. If it states constants of a regret bound, these are checked.

    >>> import jax
    >>> from cocoax.primal import OGD
    >>> check_primal(OGD(), key=jax.random.key(0))
    """
    require(isinstance(primal, AbstractPrimal), f"a primal is an AbstractPrimal, got {type(primal).__name__}")
    problem_key, key, other_key = jax.random.split(key, 3)
    count = 2 * _ROUNDS
    if domain is None:
        problem, rounds = problems.product(key=problem_key, rounds=count)
    else:
        problem, rounds = problems.tracking(domain, key=problem_key, rounds=count)
    problem = Problem(problem.domain, problem.loss, regularity=problem.regularity)
    _check_needs(primal)
    if primal.has_theorem:
        _check_constants(primal, problem.domain)
    for dtype in (jnp.float32, jnp.float64) if jax.config.read("jax_enable_x64") else (jnp.float32,):
        _check_kinds(primal, problem, rounds, dtype, key)

    first, stepped, decisions, costs = _run(primal, problem, rounds, key, jnp.int32(_CAPACITY), _CAPACITY)
    require_inside(problem.domain, jax.tree.map(lambda leaf: leaf[None], first), "first decision")
    require_inside(problem.domain, decisions, "decision after round")
    others = _run(primal, problem, rounds, other_key, jnp.int32(_CAPACITY), _CAPACITY)[2]
    if primal.deterministic:
        require_same(decisions, stepped, "restart must keep the current decision as the new start")
        require_same(decisions, others, "a deterministic primal must not depend on the key")
    else:
        require(not same(decisions, others), "decisions do not depend on the key, but deterministic is False")
    require(np.all(costs.lmo_calls >= 0) and np.all(costs.gradient_calls >= 0), "costs must be >= 0")
    require(np.all(costs.finite), "finite gradients were reported as not finite")
    _check_short_horizon(primal, problem, rounds, key)


def _check_needs(primal):
    require(primal.norm in (2, float("inf")), f"gradients are bounded in the norm 2 or inf, got {primal.norm}")
    known = {"lipschitz", "smoothness", "constraint_bound"}
    require(set(primal.needs) <= known, f"needs must name constants of a Regularity, got {primal.needs}")


def _check_constants(primal, domain):
    """`constants(domain)` must be finite, agree with `alpha`, and be refused in a norm the primal does not use."""
    require(hasattr(primal, "alpha"), "a primal that states constants also states alpha, the exponent of its regret")
    constants = primal.constants(domain)
    require(0 < constants.alpha < 1, f"alpha must lie strictly between 0 and 1, got {constants.alpha}")
    require(abs(constants.alpha - float(primal.alpha)) < 1e-9, "alpha and constants(domain).alpha differ")
    sizes = [float(size) for size in constants[1:]]
    require(np.isfinite(sizes).all() and min(sizes) >= 0, f"constants must be finite and >= 0, got {sizes}")
    try:
        primal.constants(domain, norm=2 if primal.norm != 2 else float("inf"))
    except LearnerError:
        return
    require(False, "constants must be refused in a norm that the primal does not use")


def _check_kinds(primal, problem, rounds, dtype, key):
    """`step` and `restart` must keep the state's structure, shapes and dtypes; checked by tracing alone."""

    def each(rounds, key, horizon):
        first, bounds = _begin(primal, problem, dtype, key, horizon, _CAPACITY)
        stepped, cost = _step(primal, problem, first, jax.tree.map(lambda leaf: leaf[0], rounds), bounds, key)
        restarted, _ = primal.restart(problem.domain, stepped, bounds, key=key)
        return first, stepped, restarted, primal.decision(first), cost

    first, stepped, restarted, decision, cost = jax.eval_shape(each, rounds, key, jnp.int32(_CAPACITY))
    name = jnp.dtype(dtype).name
    require(kinds(stepped) == kinds(first), f"step changes the state's structure, shapes or dtypes in {name}")
    require(kinds(restarted) == kinds(first), f"restart changes the state's structure, shapes or dtypes in {name}")
    expected = kinds(tree.astype(problem.domain.start(), dtype))
    require(kinds(decision) == expected, f"a decision must have the shapes and dtype of the start in {name}")
    counts = jnp.issubdtype(cost.lmo_calls.dtype, jnp.integer) and jnp.issubdtype(
        cost.gradient_calls.dtype, jnp.integer
    )
    require(counts, "lmo_calls and gradient_calls must be integers")


def _check_short_horizon(primal, problem, rounds, key):
    """With a horizon below the capacity, decisions are feasible, and LMO calls are those that the horizon needs."""
    horizon = jnp.int32(_CAPACITY // 2)
    _, _, decisions, costs = _run(primal, problem, rounds, key, horizon, _CAPACITY)
    require_inside(problem.domain, decisions, "with a horizon below the capacity, the decision after round")
    require_same(
        costs.lmo_calls,
        _calls(primal, problem, rounds, key, horizon, _CAPACITY // 2),
        "lmo_calls must count what the horizon needs, whatever the capacity",
    )


def _begin(primal, problem, dtype, key, horizon, capacity):
    """(first state of the primal, the bounds it was given)."""
    known = problem.constants(primal.norm, ("lipschitz", "smoothness"), type(primal).__name__)
    bounds = RoundBounds(known.lipschitz, known.smoothness, horizon, capacity)
    start = tree.astype(problem.domain.start(), dtype)
    return primal.init(problem.domain, bounds, start=start, key=key), bounds


def _step(primal, problem, state, round, bounds, key):
    """(state, cost) after one step on the loss of `round`, without constraints."""
    played = primal.decision(state)
    kind = tree.dtype(played)
    weights = Weights(jnp.ones((), kind), jnp.zeros((0,), kind))
    revealed = Reveal(problem, round, weights, played, problem.linearize(played, round)[2])
    return primal.step(problem.domain, state, revealed, bounds, key=key)


def _play(primal, problem, rounds, key, horizon, capacity):
    """(last decision, decisions, decisions after the restart, costs) of a game with one restart in the middle.

    The last three have a leading axis of rounds. The two kinds of decisions differ in the round of the restart only.
    """

    def one_round(carry, round):
        state, index = carry
        step_key, restart_key = jax.random.split(jax.random.fold_in(key, index))
        state, cost = _step(primal, problem, state, round, bounds, step_key)
        stepped = primal.decision(state)

        def restart():
            restarted, restart_cost = primal.restart(problem.domain, state, bounds, key=restart_key)
            return restarted, cost + restart_cost

        state, cost = jax.lax.cond(index == _ROUNDS, restart, lambda: (state, cost))
        return (state, index + 1), (stepped, primal.decision(state), cost)

    state, bounds = _begin(primal, problem, float, key, horizon, capacity)
    _, played = jax.lax.scan(one_round, (state, jnp.ones((), jnp.int32)), rounds)
    return primal.decision(state), *played


_run = functools.partial(jax.jit, static_argnums=5)(_play)


@functools.partial(jax.jit, static_argnums=5)
def _calls(*given):
    """LMO calls by round of the same game; the compiler drops everything else."""
    return _play(*given)[-1].lmo_calls
