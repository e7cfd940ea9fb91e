"""Routing prompts to language models within a budget, on recorded qualities and prices."""

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..core.facts import ProblemFacts, with_facts
from ..data.stored import load
from ..domains import ProbabilitySimplex
from ..errors import ProblemError
from ..problem.environment import Environment
from ..problem.problem import Problem, Round
from .base import Instance

_SEEN = {True: True, False: ("expected_quality", "expected_cost", "budget"), "source": ("source",)}
_THOUSANDTHS, _HUNDRED_MILLIONTHS = 1e-3, 1e-8  # units of the stored quality and cost


def _loss(x, r):
    return -jnp.vdot(r["quality"], x)


def _constraint(x, r):
    return jnp.vdot(r["cost"], x) - r["budget"]


class _Prompts(Environment):
    """Emits the recorded prompts in a random order; after the last, the same order again."""

    quality: Float[Array, "n models"]
    cost: Float[Array, "n models"]
    expected_quality: Float[Array, "n models"]
    expected_cost: Float[Array, "n models"]
    budget: Float[Array, ""]
    source: Int[Array, " n"]

    def init(self, key):
        return jax.random.permutation(key, len(self.quality)), jnp.zeros((), jnp.int32)

    def emit(self, state, decision, key):
        order, t = state
        row = order[t % len(order)]
        fields = ("quality", "cost", "expected_quality", "expected_cost", "source")
        return (order, t + 1), {name: getattr(self, name)[row] for name in fields} | {"budget": self.budget}


@functools.cache
def _recorded() -> dict[str, np.ndarray]:
    """The stored table of prompts, with quality as numbers and cost in dollars."""
    columns = dict(load("llm_routing")["prompts"])
    for name in ("past", "new"):
        columns[f"{name}_quality"] = columns[f"{name}_quality"] * _THOUSANDTHS
        columns[f"{name}_cost"] = columns[f"{name}_cost"] * _HUNDRED_MILLIONTHS
    return columns


def _means_by_source(columns, field) -> np.ndarray:
    """For each new prompt: the field's mean over past prompts of its source, or over all if the source is new."""
    past, source = columns[f"past_{field}"], columns["past_source"]
    of_source = {
        number: past[source == number].mean(0) if (source == number).any() else past.mean(0)
        for number in range(len(columns["sources"]))
    }
    return np.array([of_source[number] for number in columns["new_source"]])


def expected_by_source(request: Round) -> Round:
    """For `predict=`: the expected round for a prompt of `llm_routing(known=False)`."""
    return {"quality": request["expected_quality"], "cost": request["expected_cost"], "budget": request["budget"]}


SOURCES = 31
"""How many sources the prompts come from."""


def source_features(request: Round) -> Float[Array, " 31"]:
    """For `BanditPrice(source_features, SOURCES)`: the source of a prompt of `llm_routing(known="source")`."""
    return jax.nn.one_hot(request["source"], SOURCES, dtype=float)


@with_facts(ProblemFacts("a simplex", "real prompts, routed to one of three language models; decided after a request"))
def llm_routing(
    key: PRNGKeyArray | None = None, *, budget: Any = 2e-3, known: bool | Literal["source"] = True
) -> Instance:
    r"""$f_t(x) = -\langle q_t, x\rangle$ and $g_t(x) = \langle c_t, x\rangle - \rho$ over three models, one a prompt.

    Quality $q_t$ and dollars $c_t$ of 1,824 prompts, in random order; `budget` is $\rho$, in dollars a prompt (3e-4 is
    tight, 2e-3 loose). If they are not `known`, the request shows their means over 1,785 earlier prompts of the same
    source: give the learner this module's `expected_by_source` as `predict=`. With `known="source"` it shows the
    source alone, a number below 31 (for `BanditPrice`: `source_features`). The data are of `paretobandit` 0.1.1
    (Apache-2.0; `data/shipped/llm_routing`). The key is not used: all instances have the same prompts.

    >>> import jax
    >>> import cocoax as cx
    >>> instance = llm_routing(budget=3e-4)
    >>> rounds = instance.rounds(500, jax.random.key(0))
    >>> game = cx.play(instance.problem, cx.learners.AutoPrice(), rounds, key=jax.random.key(0))
    >>> best = instance.comparator(rounds)
    >>> bool(game.loss.sum() < 0.98 * best.value)
    True
    """
    if known not in _SEEN:
        raise ProblemError(f"known must be True, False or 'source', got {known!r}")
    if not budget > 0:
        raise ProblemError(f"budget must be positive, got {budget}")
    columns = _recorded()
    quality, cost = columns["new_quality"], columns["new_cost"]
    problem = Problem(
        ProbabilitySimplex(len(columns["models"])),
        _loss,
        _constraint,
        request=_SEEN[known],
        integral=True,
    )
    tables = quality, cost, _means_by_source(columns, "quality"), _means_by_source(columns, "cost"), budget
    source = jnp.asarray(columns["new_source"], jnp.int32)
    prompts = _Prompts(*(jnp.asarray(table, float) for table in tables), source=source)
    return Instance(problem, prompts, None, None)
