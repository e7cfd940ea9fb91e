"""A round as the parts of a learner see it: the weighted loss for primals, the constraints for duals."""

import jax

from ..core import tree
from ..domains.base import Point
from ..dual.base import Weights
from ..problem.problem import Problem, Round


class Reveal:
    """A round's weighted loss h = weights.loss * f + <weights.constraint, g>, as a primal sees it.

    `pull` maps weights to the gradient of h at `played`, whose forward pass was made already.
    """

    def __init__(self, problem: Problem, round: Round, weights: Weights, played: Point, pull):
        self.problem, self.round, self.weights = problem, round, weights
        self.played, self._pull = played, pull

    def sampled(self, sample) -> "Reveal":
        """The same weights on a part of the round."""
        return Reveal(self.problem, sample(self.round), self.weights, None, None)

    def gradient(self, x):
        pull = self._pull if x is self.played else None
        if pull is None:
            pull = self.problem.linearize(x, self.round)[2]
        return pull(self.weights.loss, self.weights.constraint)

    def parts(self, x):
        return self.problem.gradients(x, self.round)

    def value(self, x):
        loss, values = self.problem.values(x, self.round)
        return self.weights.loss * loss + self.weights.constraint @ values

    def constraint(self, x):
        """g at x, as the decision after `played`."""
        return self.problem.values(x, self.round, self.played)[1]


class Moved:
    """g_t at the next decision, for duals that look ahead."""

    def __init__(self, revealed: Reveal, values, decision: Point):
        self._revealed, self._values, self._decision = revealed, values, decision

    def linearised(self):
        """g_t(x_t) + <grad g_t(x_t), x_{t+1} - x_t>."""
        _, gradients = self._revealed.parts(self._revealed.played)
        shift = tree.sub(self._decision, self._revealed.played)
        return self._values + jax.vmap(lambda gradient: tree.dot(gradient, shift))(gradients)

    def exact(self):
        """g_t(x_{t+1})."""
        return self._revealed.constraint(self._decision)


def gradient_norms(problem: Problem, round: Round, x: Point):
    """l2 norms of the gradients of f and of all g."""
    loss_gradient, constraint_gradients = problem.gradients(x, round)
    return tree.norm(loss_gradient), jax.vmap(tree.norm)(constraint_gradients)
