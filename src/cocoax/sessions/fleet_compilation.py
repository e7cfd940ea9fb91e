"""All programs that calls of a fleet need, compiled before a call has to wait for them."""

from typing import Any

import jax
import numpy as np

from . import blame
from .campaigns import Campaigns
from .fleet_certificates import FEW, bounds_of, certificate_of, is_certified
from .rows import SIZES, Picked


def compile_calls(campaigns: Campaigns, like: Any):
    """Compile what campaigns need for rounds like this one; no campaign begins or changes."""
    blame.of_users(lambda: _compile(campaigns, like), "the loss or a constraint failed")


def _compile(campaigns: Campaigns, like: Any):
    for count in SIZES:
        _steps(campaigns, count, like)
    if is_certified(campaigns):
        one = campaigns.fork()
        one.columns = {"words": _first(campaigns, 1)}
        certificate_of(one, 0, lmos=1)
        for count in (1, FEW + 1):
            bounds_of(one, np.zeros(count, np.int64))


def _steps(campaigns: Campaigns, count: int, like: Any):
    """For so many campaigns. Rows of a few hundred have other programs than rows of a few."""
    programs, problem = campaigns.programs, campaigns.problem
    rows = Picked(_first(campaigns, count)[:, 0], np.arange(count))
    rounds = _repeated(like, (count,))
    if problem.has_requests:
        requests = problem.request_of(rounds)
        decisions = programs.decisions.columns(programs.decide(rows, requests))
        if campaigns.budgets:
            slots = count, campaigns.most_waiting
            first = jax.tree.map(lambda leaf: leaf[0], (requests, decisions))
            programs.reserve(rows, requests, decisions)
            programs.reserve_all(rows, _repeated(first[0], slots), _repeated(first[1], slots), np.ones(count, np.int32))
        programs.observe(rows, rounds, decisions)
    else:
        programs.observe(rows, rounds, None)
        if campaigns.pending > campaigns.copies:  # a copy may learn between a decision and its round
            decisions = programs.decisions.columns(rows.copy()[:, programs.states.size :])
            programs.observe(rows, rounds, decisions)
    if campaigns.budgets:
        programs.set_budgets(rows, np.ones((count, campaigns.budgets)))


def _first(campaigns: Campaigns, count: int) -> np.ndarray:
    """Rows of so many new campaigns."""
    return campaigns.programs.first(campaigns.key, np.zeros((count, 2), np.uint32))


def _repeated(tree: Any, axes: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*axes, *np.shape(leaf))), tree)
