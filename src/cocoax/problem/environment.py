"""Sources of rounds: samplers and adversaries."""

import abc
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..core.compiling import quick_jit
from ..domains.base import Point
from ..errors import ProblemError
from .problem import Problem, Round


class Environment(eqx.Module):
    """Where rounds come from, one at a time inside the compiled loop: a sampler, a recording, or an adversary.

    One of your own has `init`, the first state, and `emit`, the next state and the round. Both are traced: they are
    written with `jax.numpy`, and take all chance from their key. Fields are parameters. Every round has the same
    structure, shapes and dtypes. `play` needs a `horizon` with it, and goes on from `game.state` (`length=` plays a
    part); `hindsight` draws its rounds (`draw`), or takes those of a game (`keep_rounds=True`) if they are answers.

    `emit` is given the decision itself: the strongest adversary. Guarantees of randomised learners hold only
    for environments that ignore it.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> class Drift(Environment):  # costs that walk away from what was decided
    ...     def init(self, key):
    ...         return jnp.zeros(3)
    ...
    ...     def emit(self, state, decision, key):
    ...         cost = state + decision + 0.1 * jax.random.normal(key, (3,))
    ...         return 0.9 * cost, {"cost": cost}
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: jnp.vdot(r["cost"], x))
    >>> game = cx.play(problem, cx.learners.Stay(), Drift(), key=jax.random.key(0), horizon=5, keep_rounds=True)
    >>> best = cx.hindsight(problem, game.rounds)  # for the rounds that answered these decisions
    >>> game.loss.shape, float(game.regret(best)[-1]) >= 0
    ((5,), True)
    """

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> Any:
        """The state before the first round."""

    @abc.abstractmethod
    def emit(self, state: Any, decision: Point | None, key: PRNGKeyArray) -> tuple[Any, Round]:
        """The next state, and the round that answers `decision`.

        `decision` is None where the round, or a part of it, is seen before the decision (`Problem(request=...)`).
        """

    def draw(self, horizon: int, key: PRNGKeyArray, decision: Point = None) -> Round:
        """`horizon` rounds with a leading axis, against one decision that never changes.

        With the same key these are the rounds that `play` meets, if the environment ignores decisions.
        """
        horizon = check.whole(horizon, "horizon", ProblemError, low=1)
        return _draw(self, horizon, check.random_key(key, "an Environment", ProblemError), decision)


@functools.partial(quick_jit, once=True, static_argnums=1)
def _draw(environment, horizon, key, decision):
    """`horizon` rounds from `environment`, which sees the same decision in each; stacked."""
    _, environment_key = jax.random.split(key)  # the first is the learner's
    init_key, emit_key = jax.random.split(environment_key)

    def one_round(state, t):
        return emitted(environment, state, decision, jax.random.fold_in(emit_key, t))

    return jax.lax.scan(one_round, environment.init(init_key), jnp.arange(horizon, dtype=jnp.int32))[1]


def drawn_for(problem: Problem, environment: Environment, horizon: int, key) -> Round:
    """`horizon` rounds drawn in advance.

    An environment that answers decisions sees the domain's start in every round; with requests, it sees None.
    """
    return environment.draw(horizon, key, None if problem.has_requests else problem.domain.start())


def emitted(environment, state, decision, key) -> tuple[Any, Round]:
    """(next state, round) from the environment's `emit`, checked to be such a pair."""
    answer = environment.emit(state, decision, key)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise ProblemError(f"emit must return (state, round), got {check.described(answer)}")
    return answer


class Sampler(Environment):
    """Independent rounds: `sample(key)` draws one.

    >>> import jax
    >>> environment = Sampler(lambda key: {"cost": jax.random.normal(key, (3,))})
    >>> _, r = environment.emit(environment.init(jax.random.key(0)), None, jax.random.key(1))
    >>> r["cost"].shape
    (3,)
    """

    sample: Callable

    def __init__(self, sample: Callable):
        self.sample = tree.as_pytree(sample)

    def init(self, key):
        return ()

    def emit(self, state, decision, key):
        return state, self.sample(key)
