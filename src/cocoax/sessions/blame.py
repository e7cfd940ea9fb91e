"""Why a round cannot be learned from, in one sentence."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import tree
from ..errors import CocoaxError, ProblemError, SessionError
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


def of_users(call: Callable[[], Any], failure: str, advice: str = _ADVICE) -> Any:
    """Call users' functions; their errors become one sentence."""
    try:
        return call()
    except ProblemError as error:  # a whole sentence already
        raise SessionError(str(error)) from error
    except CocoaxError:
        raise
    except Exception as error:  # of any kind: users write the loss
        first = f"{type(error).__name__}: {error}".split("\n")[0]
        raise SessionError(f"{failure} ({first}); {advice}") from error
