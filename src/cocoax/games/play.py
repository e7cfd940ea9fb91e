"""One game: a learner against its rounds, as one compiled loop."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ..core import check, tree
from ..core.compilation_cache import use_compilation_cache
from ..core.compiling import quick_jit
from ..core.sums import compensated_add
from ..errors import DomainError, LearnerError, ProblemError
from ..learners.base import AbstractLearner, Horizon
from ..learners.certified import CertifiedState
from ..problem.derivatives import anew_if_mixed
from ..problem.environment import Environment, emitted
from ..problem.functions import function_of
from ..problem.problem import Problem
from ..problem.rounds import as_rounds, entry_not_finite, number_of_rounds
from . import loop
from .game import Game
from .metrics import measure
from .movement import as_played
from .state import Progress, begin, checked_start, checked_state


@anew_if_mixed
def play(
    problem: Problem,
    learner: AbstractLearner,
    rounds: Any,
    *,
    key: PRNGKeyArray | None = None,
    horizon: Any = None,
    start: Any = None,
    state: Any = None,
    length: int | None = None,
    keep_decisions: bool = False,
    keep_rounds: bool = False,
    certify: bool | int = False,
    metrics: Callable | None = None,
) -> Game:
    """Play a learner on a problem.

    **Arguments:**

    - `rounds`: a PyTree whose leaves have a leading axis T; a frame of pandas or polars, as a dict of its columns; or
      an `Environment`.
    - `key`: all randomness comes from it. Not needed with `state`.
    - `horizon`: how many rounds the learner plans for; by default the number of rounds. An `Environment` needs it.
    - `start`: the first decision, by default `problem.domain.start()`. Its dtype is that of the game: a domain built
      before `jax_enable_x64` was set keeps it in float32.
    - `state`: `game.state` of an earlier game, to go on from: equal to not having stopped.
    - `length`: with an `Environment`, how many rounds to play now; by default all that are planned.
    - `keep_decisions`, `keep_rounds`: keep each round's decision, or data, in the `Game`.
    - `certify`: keep what `game.certificate()` needs, a proven bound on the regret; with a number k, `game.certified`
      also has a bound after every k-th round. To go on from such a game's `state`, say so again.
    - `metrics`: `(x, round) ->` a number, or a dict of numbers, to record of each decision and its round in
      `game.metrics`. It is compiled with the loop, and decisions need not be kept for it.

    Works under `jax.jit` and `jax.vmap`. A loss, constraint or gradient that is not finite raises an error that
    names the round; under `jit` or `vmap`, `game.bad_round` has it.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3),
    ...     loss=lambda x, r: jnp.vdot(r, x),
    ...     regularity=cx.Regularity(lipschitz=2.0),
    ... )
    >>> costs = jnp.tile(jnp.array([1.0, 0.0, 1.0]), (100, 1))
    >>> game = cx.play(problem, cx.learners.Blocks(cx.primal.OCG()), costs, key=jax.random.key(0))
    >>> game.loss.shape, int(game.lmo_calls.sum())
    ((100,), 100)
    """
    use_compilation_cache()
    check.instance(problem, Problem, ProblemError, "play needs a Problem first")
    check.instance(learner, AbstractLearner, LearnerError, "play needs one of cocoax.learners second")
    metrics = None if metrics is None else function_of(metrics, "metrics", "x", "round")
    every = _certificate_interval(certify)
    learner, is_environment = as_played(problem, learner, certify=every is not None), isinstance(rounds, Environment)
    if not is_environment:
        if length is not None:
            raise ProblemError("length= is for an Environment; give as many rounds as are to be played")
        rounds = as_rounds(rounds)
        length = number_of_rounds(rounds)
    if state is not None:
        if isinstance(state, Game):
            raise LearnerError("state= is a Game; give its state, game.state")
        state = checked_state(problem, learner, rounds if is_environment else None, state)
    if length is None:
        length = _environment_length(learner, horizon, state)
    length = check.whole(length, "length", ProblemError, low=1)
    if state is not None and (start is not None or horizon is not None):
        raise LearnerError("state= goes on with its own start and horizon; leave out start= and horizon=")
    if state is None:
        check.random_key(key, "play", LearnerError)
        horizon = Horizon(length) if horizon is None else horizon
        horizon = horizon if isinstance(horizon, Horizon) else Horizon(horizon)
        start = checked_start(problem, start)
        learner.check(problem)
        state = begin(problem, learner, rounds if is_environment else None, key, horizon, start)
    _check_length(learner, state.learner if isinstance(state, Progress) else state, length)
    game = _play(problem, learner, rounds, state, length, keep_decisions, keep_rounds, every or 0, metrics)
    if not tree.is_traced(game.bad_round):
        _check_finite(game, problem, learner, rounds, state)
    return game


@functools.partial(quick_jit, size=lambda problem, *_: problem.domain.dimension, static_argnums=(4, 5, 6, 7))
def _play(problem, learner, rounds, state, length, keep_decisions=False, keep_rounds=False, certify=0, metrics=None):
    """The game of `length` rounds from `state`, in one compiled loop."""
    environment = rounds if isinstance(rounds, Environment) else None

    def step(carry, t):
        progress, total = carry
        following, round = _reveal(problem, learner, rounds, progress, t)
        learner_state, decision, outcome = loop.play_round(problem, learner, progress.learner, round)
        number = None if environment is None else progress.round + 1
        progress = Progress(learner_state, following, progress.key, number)
        bound = _bound(problem, learner_state, t, certify) if certify else None
        kept = decision if keep_decisions else None, round if keep_rounds else None
        row = (outcome, *kept, bound, measure(problem, metrics, decision, round))
        return (progress, _add_decision(problem.domain, total, decision)), row

    progress = Progress(state, None, None, None) if environment is None else state
    first = _reveal(problem, learner, rounds, progress, 0)[1] if problem.has_requests else None
    zero = tree.zeros_like(loop.decide(problem, learner, progress.learner, first))
    (progress, (total, _)), (outcomes, decisions, revealed, bounds, measured) = loop.play_rounds(
        step, (progress, (zero, zero)), length
    )
    is_certified = isinstance(progress.learner, CertifiedState)
    return Game.of(
        outcomes,
        problem.names,
        decision=None if problem.has_requests else learner.decision(progress.learner),
        average=tree.scale(1 / length, total),
        decisions=decisions,
        rounds=revealed,
        state=progress.learner if environment is None else progress,
        problem=problem if keep_rounds or is_certified else None,
        minorants=progress.learner.minorants if is_certified else None,
        policy=progress.learner.policy if is_certified else None,
        metrics=measured,
        certified=bounds,
    )


def _reveal(problem, learner, rounds, progress, t):
    """(next state of the environment, round t); recorded rounds have no environment: (None, round t)."""
    if not isinstance(rounds, Environment):
        return None, loop.at(rounds, t)
    decision = None if problem.has_requests else learner.decision(progress.learner)
    return emitted(rounds, progress.environment, decision, jax.random.fold_in(progress.key, progress.round))


def _bound(problem, state, t, every):
    """A bound on the regret after round t if t + 1 is a multiple of `every`, else NaN."""
    nothing = jnp.full_like(state.minorants.sums.loss, jnp.nan)
    return jax.lax.cond((t + 1) % every == 0, lambda: state.regret_bound(problem), lambda: nothing)


def _certificate_interval(certify) -> int | None:
    """After how many rounds each the regret is bounded, from play's argument `certify`.

    0: never during the game, but a certificate is kept. None: no certificate.
    """
    if isinstance(certify, bool):
        return 0 if certify else None
    return check.whole(certify, "certify", ProblemError, low=1)


def _add_decision(domain, total, x):
    """(sum, compensation) of all decisions after adding x; factored matrices are added without compensation."""
    if tree.has_element(x):
        return domain.truncate(tree.add(total[0], x)), total[1]
    pairs = jax.tree.map(compensated_add, *total, x)
    return jax.tree.transpose(jax.tree.structure(x), jax.tree.structure((0, 0)), pairs)


def _environment_length(learner, horizon, state):
    """How many rounds to play: the horizon in a new game, else the rounds that the learner's plan has left."""
    planned = horizon if state is None else learner.rounds_left(state.learner)
    if isinstance(planned, Horizon):
        planned = planned.rounds
    if planned is None:
        raise LearnerError("an Environment goes on for ever; give horizon=, or length=, the number of rounds to play")
    if tree.is_traced(planned):
        raise LearnerError("a traced horizon in an Environment needs length=, the number of rounds to play")
    if state is not None and int(planned) < 1:
        raise LearnerError("the learner planned for 0 more round(s); start it with a larger horizon=")
    return check.whole(planned, "horizon", LearnerError, low=1)


def _check_length(learner, state, length):
    """Raise `LearnerError` if the learner planned for fewer than `length` more rounds."""
    left = learner.rounds_left(state)
    if left is not None and not tree.is_traced(left) and jnp.ndim(left) == 0 and int(left) < length:
        raise LearnerError(
            f"the learner planned for {int(left)} more round(s) but {length} are to be played; start it with a "
            "larger horizon= (Anytime: a larger capacity=)"
        )


def _check_finite(game, problem, learner, rounds, state):
    """Raise `ProblemError`, naming the cause, if a round of the game was not finite."""
    bad = int(game.bad_round)
    if bad < 0:
        return
    if _is_a_point(problem.domain):
        raise ProblemError("the domain is a single point, so there is nothing to decide; play on a larger one")
    decision, round = _replayed_until(bad, problem, learner, rounds, state)
    if not bool(tree.all_finite(decision)):
        causes = "the request, the domain's lmo" if problem.has_requests else "the domain's lmo"
        raise ProblemError(
            f"round {bad}: the decision is not finite, although all was before; mend {causes} or the Regularity"
        )
    for name in ("loss", "constraint"):
        if not bool(jnp.isfinite(getattr(game, name)[bad]).all()):
            entry = entry_not_finite(round)
            if entry is not None:
                raise ProblemError(f"round {bad}: the {name} is not finite, because {entry}; mend or drop that round")
            raise ProblemError(
                f"round {bad}: the {name} is not finite at the decision, although the round's data are, as a logarithm "
                "of 0 or an overflow; give a start= inside the domain or smaller units, or mend or drop that round"
            )
    raise ProblemError(
        f"round {bad}: the gradient is not finite at a finite point; give another start=, or a loss and constraint "
        "that are differentiable there"
    )


def _replayed_until(t, problem, learner, rounds, state):
    """(decision, data) of round t, found by playing the rounds before it again from `state`."""
    is_environment = isinstance(rounds, Environment)
    if t > 0:
        before = rounds if is_environment else jax.tree.map(lambda leaf: leaf[:t], rounds)
        state = _play(problem, learner, before, state, t).state
    return _decide(problem, learner, rounds, state if is_environment else Progress(state, None, None, None), t)


@jax.jit
def _decide(problem, learner, rounds, progress, t):
    round = _reveal(problem, learner, rounds, progress, t)[1]
    return loop.decide(problem, learner, progress.learner, round), round


def _is_a_point(domain):
    """Whether the domain's diameter is known to be 0."""
    for ord in (1, 2):
        with contextlib.suppress(DomainError):  # a domain need not know both
            if bool(domain.diameter(ord) == 0):
                return True
    return False
