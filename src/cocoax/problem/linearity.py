"""Whether loss and constraints are linear in the decision, as their traces show."""

import jax

from ..core import traces
from .problem import Problem, Round


def is_linear(problem: Problem, round: Round) -> bool:
    """Whether no gradient depends on the decision, for rounds of these shapes.

    False does not prove the contrary: what the trace does not show counts as dependence.
    """
    return is_constant(problem.gradients, problem.domain.start(), round)


def is_constant(function, x, *rest) -> bool:
    """Whether `function(x, *rest)` does not depend on x. False does not prove the contrary."""
    program, entries = jax.make_jaxpr(function)(x, *rest), len(jax.tree.leaves(x))
    return not any(traces.depends(program, [number < entries for number in range(len(program.in_avals))]))
