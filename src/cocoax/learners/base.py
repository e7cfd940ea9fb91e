"""What a learner is, and what all of them share."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import parameter as parameter
from ..core.parameters import positive_parameter as positive_parameter
from ..domains.base import Point
from ..dual.base import Weights
from ..errors import LearnerError, ProblemError
from ..primal.base import Cost
from ..problem.problem import Problem, Round

AnyArray = Array | np.ndarray


class Outcome(eqx.Module):
    """What one round came to; or, stacked along leading axes, many rounds. Sessions return plain numbers.

    A learner's `observe` returns one. `multiplier` is how much each constraint weighed, for the record; `finite` is
    whether loss, constraints and all gradients were finite: if not, `play` raises, and a session refuses the round.

    >>> import jax.numpy as jnp
    >>> outcome = Outcome(jnp.asarray(1.5), jnp.array([-0.25]), jnp.array([0.5]), 1, 1, True)
    >>> float(outcome.loss), outcome.constraint.tolist()
    (1.5, [-0.25])
    """

    loss: Float[AnyArray, "*rounds"] | float
    constraint: Float[AnyArray, "*rounds m"]
    multiplier: Float[AnyArray, "*rounds m"]  # weight of each constraint in this round, the loss's being 1
    lmo_calls: Int[AnyArray, "*rounds"] | int
    gradient_calls: Int[AnyArray, "*rounds"] | int
    finite: Bool[AnyArray, "*rounds"] | bool  # loss, constraints and all gradients, in a round within the horizon


class Horizon(eqx.Module):
    """How many rounds a learner plans for.

    `rounds` may be traced, so that one compilation serves many horizons; arrays are sized by the static
    `capacity`, at least `rounds`. Wherever cocoax takes `horizon=`, a plain integer means both.

    >>> horizon = Horizon(300, capacity=1000)  # shares a program with Horizon(700, capacity=1000)
    >>> int(horizon.rounds), horizon.capacity
    (300, 1000)
    """

    rounds: Int[Array, ""]
    capacity: int = eqx.field(static=True)

    def __init__(self, rounds: Any, capacity: Any = None):
        if capacity is None:
            if tree.is_traced(rounds):
                raise LearnerError("a traced horizon needs a static capacity; give Horizon(rounds, capacity)")
            capacity = rounds
        self.capacity = check.whole(capacity, "horizon", LearnerError)
        if tree.is_traced(rounds):
            self.rounds = jnp.clip(jnp.asarray(rounds, jnp.int32), 1, self.capacity)
            return
        seen = check.whole(rounds, "horizon", LearnerError)
        if not 1 <= seen <= self.capacity:
            raise LearnerError(f"horizon must be at least 1 round and at most its capacity, got {rounds}")
        self.rounds = jax.device_put(np.int32(seen))


def planned(horizon, who) -> Horizon:
    """The horizon, which `who` cannot do without."""
    if horizon is None:
        raise LearnerError(f"{who} plans for a number of rounds; give horizon=")
    return horizon if isinstance(horizon, Horizon) else Horizon(horizon)


class AbstractLearner(eqx.Module):
    """Takes decisions. Its state holds the next decision, unless that needs a request.

    `testing.check_learner` tells whether one of your own keeps all promises.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> from cocoax.learners import AbstractLearner, Outcome
    >>> class Average(AbstractLearner):  # the average of the vertices that were best in each round
    ...     def init(self, problem, *, key, horizon=None, start=None):
    ...         return problem.domain.start() if start is None else start, jnp.ones(())
    ...
    ...     def decision(self, state):
    ...         return state[0]
    ...
    ...     def observe(self, problem, state, round, *, played=None):
    ...         x, t = state
    ...         loss, values, pull = problem.linearize(x if played is None else played, round)
    ...         vertex = problem.domain.lmo(pull(jnp.ones_like(loss), jnp.zeros_like(values)))
    ...         one, finite = jnp.ones((), int), jnp.isfinite(loss) & jnp.isfinite(values).all()
    ...         outcome = Outcome(loss, values, jnp.zeros_like(values), one, one, finite)
    ...         return (vertex.mix(x, 1 / (t + 1)), t + 1), outcome
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, cost: jnp.vdot(cost, x))
    >>> game = cx.play(problem, Average(), jnp.tile(jnp.array([0.0, 1.0]), (3, 1)), key=jax.random.key(0))
    >>> game.decision.tolist()
    [0.875, 0.125]
    """

    facts: ClassVar[Facts]
    """What the catalogue says of it."""

    @abc.abstractmethod
    def init(self, problem: Problem, *, key: PRNGKeyArray, horizon: Any = None, start: Point | None = None) -> Any:
        """The state before the first round."""

    @abc.abstractmethod
    def decision(self, state: Any) -> Point:
        """The next decision."""

    def decide(self, problem: Problem, state: Any, request: Round) -> Point:
        """The next decision, given what is already seen of its round (`Problem(request=...)`).

        Learners that decide before a round is seen ignore the request.
        """
        return self.decision(state)

    @abc.abstractmethod
    def observe(
        self, problem: Problem, state: Any, round: Round, *, played: Point | None = None
    ) -> tuple[Any, Outcome]:
        """Learn from a round. `played` is what was really done, when it was not the decision.

        With movement, the problem is that after `problem.previous`, the decision of the round before: `values` count
        the movement from there, and `values(x, round, played)` what it would be to go on to x.
        """

    @property
    def known_as(self) -> str:
        """The name that users give it."""
        return type(self).__name__

    @property
    def factored(self) -> bool:
        """Whether decisions may be factored matrices: the learner has vector arithmetic for them, and no other."""
        return False

    @property
    def integral(self) -> bool:
        """Whether every decision is a vertex of the domain, where loss and constraint are linear in the decision."""
        return False

    def check(self, problem: Problem) -> None:
        """Raise, in one sentence, if what is known before a game shows that this learner cannot play the problem."""

    def rounds_left(self, state: Any) -> Int[Array, ""] | None:
        """How many rounds the plan still has; None for learners that need no horizon."""
        return None


class AbstractRecorder(AbstractLearner):
    """Takes the decisions of `learner` and records more: `state.learner` is that learner's own state."""

    learner: eqx.AbstractVar[AbstractLearner]

    def check(self, problem):
        self.learner.check(problem)

    def decision(self, state):
        return self.learner.decision(state.learner)

    def decide(self, problem, state, request):
        return self.learner.decide(problem, state.learner, request)

    def rounds_left(self, state):
        return self.learner.rounds_left(state.learner)


def own(learner: AbstractLearner) -> AbstractLearner:
    """The learner that takes the decisions, without the recorders around it."""
    return own(learner.learner) if isinstance(learner, AbstractRecorder) else learner


def check_form(problem: Problem, learner: AbstractLearner) -> None:
    """Raise if the learner's decisions cannot have the form that the problem needs: factored matrices, vertices."""
    if problem.integral and not learner.integral:
        raise LearnerError(
            f"{learner.known_as} mixes vertices, but Problem(integral=True) needs one vertex; choose "
            "learners.AutoPrice()"
        )
    start = problem.domain.start()
    if not tree.has_element(start):
        return
    if problem.domain.view(start) is start:
        raise ProblemError("a factored NuclearNormBall can be a part of a Product, and of no other domain")
    if not learner.factored:
        raise LearnerError(
            f"{learner.known_as} cannot play factored matrices; choose learners.Auto(), or learners.PrimalDual "
            "with primal.Tracked (and its own steps), OCG or OFW"
        )


def refuse_movement(problem: Problem, learner: AbstractLearner) -> None:
    """For learners that would play as if moving were free."""
    if problem.has_movement:
        other = "" if learner.integral else ", or choose learners.Auto()"
        raise LearnerError(f"{learner.known_as} does not count movement; leave out previous{other}")


def first_decision(problem: Problem, start: Point | None) -> Point:
    """The start, checked and as arrays."""
    default = problem.domain.start()
    if start is None:
        return default
    kind = tree.dtype(start)
    return as_point(start, default, kind if jnp.issubdtype(kind, jnp.floating) else float, "start")


def point_played(played: Point | None, decision: Point) -> Point:
    """What was played, in the dtype of the game: the decision, unless said otherwise."""
    return decision if played is None else as_point(played, decision, tree.dtype(decision), "played")


def as_point(point, like, dtype, name):
    """A point given by a user, in the shape of another."""
    if tree.has_element(like):
        if not tree.is_like(point, like):
            raise ProblemError(f"{name} must be a matrix of the domain, as its element(...) makes them, or a decision")
        return tree.astype(point, dtype)
    point = check.listed(point) if isinstance(like, jax.Array) else point
    shape, expected = (jax.tree.map(jnp.shape, one) for one in (point, like))
    if shape != expected:
        raise ProblemError(f"{name} must have the domain's shape {expected}, got {shape}")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), point)


def outcome(loss, values, weights: Weights, cost: Cost, rounds_left=None) -> Outcome:
    """What a round came to; one beyond the horizon (no rounds left) is as bad as one that is not finite."""
    finite = cost.finite & jnp.isfinite(loss) & jnp.all(jnp.isfinite(values))
    if rounds_left is not None:
        finite = finite & (rounds_left > 0)
    multiplier = weights.constraint / weights.loss
    return Outcome(loss, values, multiplier, cost.lmo_calls, cost.gradient_calls, finite)
