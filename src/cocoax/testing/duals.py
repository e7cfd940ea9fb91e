"""What every dual promises, as one function."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..dual.base import AbstractDual
from .require import kinds, require, require_same

_ROUNDS = 8


class _Stub:
    """Stands for g_t at the next decision, with the given values."""

    def __init__(self, values):
        self._values = values

    def linearised(self):
        return self._values

    def exact(self):
        return self._values


def _norms(values):
    """The argument `norms` of `weigh`, as if every gradient had norm 1."""
    return lambda: (jnp.ones((), values.dtype), jnp.ones_like(values))


def check_dual(dual: AbstractDual, *, key: PRNGKeyArray) -> None:
    """Raise `AssertionError`, naming the broken promise, unless `dual` keeps all that learners rely on.

    >>> import jax
    >>> from cocoax.dual import VirtualQueue
    >>> check_dual(VirtualQueue(), key=jax.random.key(0))
    """
    require(isinstance(dual, AbstractDual), f"a dual must be an AbstractDual, got {type(dual).__name__}")
    require(isinstance(getattr(dual, "predictable", None), bool), "a dual must say whether it is predictable")
    for dtype in (jnp.float32, jnp.float64) if jax.config.read("jax_enable_x64") else (jnp.float32,):
        for constraints in (0, 1, 3):
            _check_run(dual, constraints, dtype, key)


def _check_run(dual, constraints, dtype, key):
    """Check a dual with this many constraints: shapes and dtypes by tracing; signs and finiteness by two short runs."""
    case = f"with {constraints} constraint(s) in {jnp.dtype(dtype).name}"
    state, after, settled, forecast, weights = jax.eval_shape(lambda: _one_round(dual, constraints, dtype))
    require(kinds(after) == kinds(state), f"weigh changes the shapes or dtypes of the state {case}")
    require(kinds(settled) == kinds(state), f"settle changes the shapes or dtypes of the state {case}")
    expected = [((), dtype), ((constraints,), dtype)]
    require(kinds(weights)[1] == expected, f"weights must be of shapes () and (constraints,) {case}")
    require(kinds(forecast)[1] == expected, f"a forecast must be shaped like weights {case}")

    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    drawn = rng.standard_normal((2, _ROUNDS, constraints)).astype(dtype)
    forecasts, weights = _run(dual, np.stack([drawn, np.ones_like(drawn)]))
    require(np.all(weights.loss > 0), f"the loss must have a positive weight {case}")
    require(np.all(weights.constraint >= 0), f"weights must be >= 0 {case}")
    finite = np.isfinite(weights.loss).all() and np.isfinite(weights.constraint).all()
    require(finite, f"weights must be finite {case}")
    if dual.predictable:
        require_same(forecasts, weights, f"a predictable dual must weigh as it forecast {case}")
    require(np.all(weights.constraint[1, -1] > 0), f"a constraint violated in every round must weigh something {case}")


def _one_round(dual, constraints, dtype):
    """(first state, state after `weigh`, state after `settle`, forecast, weights), with constraint values of 1."""
    values = jnp.ones((constraints,), dtype)
    state = dual.init(constraints, dtype)
    weights, after = dual.weigh(state, values, _norms(values))
    return state, after, dual.settle(after, _Stub(values)), dual.forecast(state), weights


@jax.jit
def _run(dual, runs):
    """(forecasts, weights) of every round of several runs.

    `runs` has shape (runs, 2, rounds, constraints): values at each decision, and at the decision after it.
    """

    def one_round(state, given):
        values, moved = given
        forecast = dual.forecast(state)
        weights, state = dual.weigh(state, values, _norms(values))
        return dual.settle(state, _Stub(moved)), (forecast, weights)

    def one_run(run):
        return jax.lax.scan(one_round, dual.init(run.shape[-1], run.dtype), tuple(run))[1]

    return jax.vmap(one_run)(runs)
