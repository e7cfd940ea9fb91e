"""A limit has a price while something is owed, and none as soon as it is paid back."""

import jax
import jax.numpy as jnp

import cocoax as cx
from cocoax.learners.debts import Debts

DUAL = cx.dual.RobustPI(0.01, 2.0)
PROBLEM = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, r: x[0], lambda x, r: r * x[0])
START = jnp.array([0.5, 0.5])


@jax.jit
def after(debts, value):
    norms = jnp.ones(()), jnp.ones(1)
    return debts.observe(DUAL, PROBLEM, value, value[None], lambda: norms, START, jnp.stack([START, START]))


def test_what_is_paid_back_has_no_price_although_the_control_remembers_it():
    debts = Debts.begin(DUAL, 1, START)
    for value in (1.0, 1.0, 1.0, -1.0, -1.0, -0.9):
        debts = after(debts, jnp.asarray(value))
        assert debts.prices[0] > 0
    paid = after(debts, jnp.asarray(-0.2))
    assert paid.owed[0] < 0 and paid.prices[0] == 0
    assert DUAL.weigh(debts.control, jnp.array([-0.2]), lambda: (jnp.ones(()), jnp.ones(1)))[0].constraint[0] > 0
