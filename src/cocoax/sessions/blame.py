"""Why a round cannot be learned from, in one sentence."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import tree
from ..errors import SessionError
from ..learners.base import Outcome
from ..problem.problem import Problem, Round

_ADVICE = "correct it or leave it out"


def not_finite(problem: Problem, outcome: Outcome, round: Round) -> str:
    """Which number of this round is not finite, and whether the round or the decision is the reason."""
    start = problem.domain.start()
    for name, values in (("loss", outcome.loss), ("constraint", outcome.constraint)):
        if not np.isfinite(values).all():
            if tree.all_finite(problem.values(start, jax.tree.map(jnp.asarray, round), start)):
                return (
                    f"the {name} is not finite at the decision itself, as a logarithm at 0 (it is at the start); "
                    "play a point a little inside and give observe(round, played=...), or make the set smaller"
                )
            return f"the {name} is not finite in this round, although its data are; {_ADVICE}"
    return f"a gradient, or the decision that it leads to, is not finite in this round; {_ADVICE}"


def users_error(failure: str, error: Any, advice: str = _ADVICE) -> SessionError:
    """The error of a user's function as one sentence."""
    first = f"{type(error).__name__}: {error}".split("\n")[0]
    return SessionError(f"{failure} ({first}); {advice}")
