"""Games of one learner on one problem, also with changed rounds, and the same problem in another form."""

import jax
import jax.numpy as jnp

from ..core import tree
from ..games.play import play
from ..learners.base import Horizon
from ..problem.problem import Problem


class Games:
    """Games of one learner on one problem; `base` is the ordinary one, with which others are compared."""

    def __init__(self, learner, problem, rounds, key):
        self.learner, self.problem, self.rounds, self.key = learner, problem, rounds, key
        self.length = len(jax.tree.leaves(rounds)[0])
        self.horizon = Horizon(self.length, self.length + 4)
        self.base = self.play()
        self.tol = 1e-12 if tree.dtype(self.base.decisions) == jnp.float64 else 1e-4

    def play(self, *, problem=None, rounds=None, **options):
        options = {"key": self.key, "horizon": self.horizon, **options}
        problem, rounds = problem or self.problem, self.rounds if rounds is None else rounds
        return play(problem, self.learner, rounds, keep_decisions=True, **options)

    def part(self, *index):
        return jax.tree.map(lambda leaf: leaf[slice(*index)], self.rounds)

    def round(self, t):
        return round_of(self.rounds, t % self.length)

    def with_round(self, t, new):
        """The rounds, with round t replaced by `new`."""
        return with_round(self.rounds, t, new)

    def with_request_of(self, t, new):
        """The round `new`, with the fields that make the request taken from round t, if the problem has requests."""
        names = self.problem.request if isinstance(self.problem.request, tuple) else ()
        return {**new, **{name: self.round(t)[name] for name in names}} if names else new

    def with_bad_round(self, t):
        """The rounds, with NaN in all floating entries of round t, and 0 in its other entries."""

        def spoil(leaf):
            return jnp.full_like(leaf, jnp.nan if jnp.issubdtype(leaf.dtype, jnp.floating) else 0)

        return self.with_round(t, jax.tree.map(spoil, self.round(t)))


@jax.jit  # with t traced, so that all rounds share a program
def round_of(rounds, t):
    """Round t."""
    return jax.tree.map(lambda leaf: leaf[t], rounds)


@jax.jit
def with_round(rounds, t, new):
    """The same rounds but for the t-th."""
    return jax.tree.map(lambda leaf, one: leaf.at[t].set(one), rounds, new)


def problem_with(problem, **changes) -> Problem:
    """A copy of the problem with some arguments of `Problem` changed."""
    fields = ("domain", "loss", "constraint", "regularity", "loss_grad", "constraint_grad", "request", "integral")
    given = {name: getattr(problem, name) for name in fields}
    return Problem(**({**given, "constraints": problem.names or 1} | changes))


def with_names_and_gradients(problem) -> Problem:
    """The same problem, with its constraints as a dict of named numbers and with explicit gradients."""
    if problem.constraints == 0:
        return problem
    names = tuple(f"named_{i}" for i in range(problem.constraints))

    def with_movement(x, round, previous):
        return dict(zip(names, problem.values(x, round, previous)[1]))

    return problem_with(
        problem,
        constraint=with_movement if problem.has_movement else lambda x, round: with_movement(x, round, None),
        constraints=names,
        loss_grad=lambda x, round: problem.gradients(x, round)[0],
        constraint_grad=lambda x, round: problem.gradients(x, round)[1],
    )
