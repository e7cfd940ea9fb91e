"""What every learner promises, as one function."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import check, tree
from ..errors import LearnerError, ProblemError
from ..games.play import play
from ..learners.base import AbstractLearner, Horizon
from ..problem.problem import Problem
from . import problems
from .require import kinds, require, require_close, require_inside, require_same, same


def check_learner(learner: AbstractLearner, *, key, problem=None, rounds=None, horizon: int = 20, random=None):
    """Raise `AssertionError`, with the broken promise, unless `learner` is what `play` takes it for.

    **Arguments:**

    - `key`: all randomness comes from it.
    - `problem`, `rounds`: what to play; by default small problems on a simplex, on matrices and on a product.
    - `horizon`: how many rounds of the small problems.
    - `random`: whether decisions must depend on the key. By default as the learner's `primal` says, if it has one.

    >>> import jax
    >>> from cocoax.learners import Stay
    >>> check_learner(Stay(), key=jax.random.key(0))
    """
    if problem is None:
        small = (problems.simplex, 0), (problems.nuclear, 0), (problems.product, 1)
        given = [make(key=jax.random.fold_in(key, i), rounds=horizon) for make, i in small]
    else:
        given = [(problem, rounds)]
    games, *_ = [check_game(learner, *each, key=key, random=random) for each in given]
    _check_stopping(games)
    _check_vmap(games)
    _check_float32_without_constraints(games)
    _check_other_ways_to_say_it(games)
    _check_played(games)


def check_game(learner: AbstractLearner, problem: Problem, rounds, *, key, random=None) -> "_Games":
    """The promises that one compiled game shows: feasible, repeatable, blind to the future, compiled once."""
    check.instance(learner, AbstractLearner, AssertionError, "check_learner needs one of cocoax.learners")
    try:
        games = _Games(learner, problem, rounds, key)
    except LearnerError as error:
        raise AssertionError(str(error)) from error
    _check_record(games)
    _check_keys(games, random)
    _check_time_order(games)
    _check_bad_rounds(games)
    _check_compiled_once(games)
    return games


class _Games:
    """Games of one learner on one problem; `base` is the one that the others are compared with."""

    def __init__(self, learner, problem, rounds, key):
        self.learner, self.problem, self.rounds, self.key = learner, problem, rounds, key
        self.length = len(jax.tree.leaves(rounds)[0])
        self.horizon = Horizon(self.length, self.length + 4)
        self.base = self.play()
        self.tol = 1e-12 if tree.dtype(self.base.decision) == jnp.float64 else 1e-4

    def play(self, *, problem=None, rounds=None, **options):
        options = {"key": self.key, "horizon": self.horizon, **options}
        problem, rounds = problem or self.problem, self.rounds if rounds is None else rounds
        return play(problem, self.learner, rounds, keep_decisions=True, **options)

    def part(self, *index):
        return jax.tree.map(lambda leaf: leaf[slice(*index)], self.rounds)

    def with_round(self, t, new):
        """The same rounds but for the t-th."""
        return jax.tree.map(lambda leaf, one: leaf.at[t].set(one), self.rounds, new)

    def with_bad_round(self, t):
        def spoil(leaf):
            return jnp.full_like(leaf[t], jnp.nan if jnp.issubdtype(leaf.dtype, jnp.floating) else 0)

        return self.with_round(t, jax.tree.map(spoil, self.rounds))


def _saying(problem, **changes) -> Problem:
    """A new problem, equal but for the changes."""
    fields = ("domain", "loss", "constraint", "regularity", "loss_grad", "constraint_grad")
    given = {name: getattr(problem, name) for name in fields}
    return Problem(**({**given, "constraints": problem.names or 1} | changes))


def _check_record(games):
    game, length, constraints = games.base, games.length, games.problem.constraints
    require_inside(games.problem.domain, game.decisions, "the decision of round")
    start = games.problem.domain.start()
    require(kinds(game.decision) == kinds(start), "a decision must have the shapes and dtype of the start")
    for name in ("loss", "constraint", "multiplier", "lmo_calls", "gradient_calls"):
        shape = (length, constraints) if name in ("constraint", "multiplier") else (length,)
        got = getattr(game, name).shape
        require(got == shape, f"over {length} rounds, {name} must have shape {shape}, got {got}")
        if name.endswith("calls"):
            count = np.asarray(getattr(game, name))
            require(np.issubdtype(count.dtype, np.integer) and count.min() >= 0, f"{name} must be integers >= 0")
    require(np.all(game.multiplier >= 0), "multipliers must be >= 0")
    values = jax.vmap(games.problem.values)(game.decisions, games.rounds)
    require_close((game.loss, game.constraint), values, games.tol, "loss and constraint must be the decision's")


def _check_keys(games, random):
    require_same(games.play(), games.base, "the same key must give the same game, bit by bit")
    if random is None:
        deterministic = getattr(getattr(games.learner, "primal", None), "deterministic", None)
        random = None if deterministic is None else not deterministic
    if random is not None:
        other = games.play(key=jax.random.fold_in(games.key, 1)).decisions
        says = "must depend" if random else "must not depend"
        require(same(other, games.base.decisions) != random, f"decisions {says} on the key")


def _check_time_order(games):
    for t in sorted({0, 1, games.length // 2, games.length - 1}):
        other = jax.tree.map(lambda leaf, t=t: leaf[t - games.length // 2], games.rounds)
        changed = games.play(rounds=games.with_round(t, other)).decisions
        until, known = (jax.tree.map(lambda leaf, t=t: leaf[: t + 1], x) for x in (changed, games.base.decisions))
        require_same(until, known, f"decisions up to round {t} must not depend on what round {t} reveals")


def _check_bad_rounds(games):
    t = games.length // 2
    bad = games.with_bad_round(t)
    revealed = jax.tree.map(lambda leaf: leaf[t], bad)
    if tree.all_finite(games.problem.values(games.problem.domain.start(), revealed)):
        return
    try:
        games.play(rounds=bad)
    except ProblemError as error:
        require(f"round {t}:" in str(error), f"round {t} is not finite, but the error says: {error}")
    else:
        require(False, f"round {t} is not finite, but the learner reports no error")


def _check_compiled_once(games):
    scaled = jax.tree.map(lambda leaf: leaf * 0.5 if eqx.is_inexact_array(leaf) else leaf, games.learner)
    try:
        scaled.check(games.problem)
    except LearnerError:  # numbers that belong to the problem
        scaled = games.learner
    problem, key = _saying(games.problem), jax.random.fold_in(games.key, 2)
    horizon = Horizon(games.length + 1, games.length + 4)
    try:
        with jax.no_tracing():
            play(problem, scaled, games.rounds, key=key, horizon=horizon, keep_decisions=True)
    except RuntimeError as error:
        if "tracing" not in str(error):
            raise
        raise AssertionError(
            "a second game of the same shapes must compile nothing; numbers must be arrays, not static"
        ) from error


def _check_stopping(games):
    half = games.length // 2
    first = games.play(rounds=games.part(half))
    second = games.play(rounds=games.part(half, 2 * half), key=None, horizon=None, state=first.state)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first.decisions, second.decisions)
    expected = jax.tree.map(lambda leaf: leaf[: 2 * half], games.base.decisions)
    require_same(both, expected, "going on from game.state must equal not having stopped, bit by bit")
    if 2 * half == games.length:
        require_same(second.state, games.base.state, "stopping and going on must lead to the same state")


def _check_vmap(games):
    t, lanes = games.length // 2, 3
    keys = jax.random.split(games.key, lanes)
    rounds = [games.rounds, games.with_round(t, jax.tree.map(lambda leaf: leaf[0], games.rounds))]
    alone = [games.play(key=key, rounds=each) for key, each in zip(keys, rounds)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rounds, games.with_bad_round(t))
    batch = jax.jit(jax.vmap(lambda key, each: games.play(key=key, rounds=each)))(keys, stacked)
    for i, game in enumerate(alone):
        lane = jax.tree.map(lambda leaf, i=i: leaf[i], (batch.decisions, batch.loss, batch.multiplier))
        expected = (game.decisions, game.loss, game.multiplier)
        require_close(lane, expected, 100 * games.tol, f"under vmap, game {i} is not what it is alone")
    if not np.isfinite(batch.loss[-1, t]):
        bad = batch.bad_round.tolist()
        require(bad == [-1, -1, t], f"under vmap, bad_round must be {[-1, -1, t]}, got {bad}")


def _check_float32_without_constraints(games):
    start = tree.astype(games.problem.domain.start(), jnp.float32)
    free = _saying(games.problem, constraint=None, constraints=1, constraint_grad=None)
    game = games.play(problem=free, start=start)
    require_inside(free.domain, game.decisions, "without constraints and in float32, the decision of round")
    require(game.constraint.shape == (games.length, 0), "without constraints, constraint must have shape (T, 0)")
    game = jax.eval_shape(lambda rounds: games.play(rounds=rounds, start=start), games.rounds)
    require(kinds(game.decision) == kinds(start), "a float32 start must give float32 decisions")
    dtypes = {name: str(getattr(game, name).dtype) for name in ("loss", "constraint", "multiplier")}
    require(set(dtypes.values()) == {"float32"}, f"a float32 start must give float32 values, got {dtypes}")


def _check_other_ways_to_say_it(games):
    """Constraints as a dict, and gradients given: the same problem."""
    given = games.problem
    if given.constraints == 0:
        return
    names = tuple(f"named_{i}" for i in range(given.constraints))

    def named(x, round):
        return dict(zip(names, given.values(x, round)[1]))

    problem = _saying(
        given,
        constraint=named,
        constraints=names,
        loss_grad=lambda x, round: given.gradients(x, round)[0],
        constraint_grad=lambda x, round: given.gradients(x, round)[1],
    )
    game = games.play(problem=problem)
    require_close(
        (game.decisions, game.loss, game.constraint, game.multiplier),
        (games.base.decisions, games.base.loss, games.base.constraint, games.base.multiplier),
        games.tol,
        "named constraints and given gradients must play the same game",
    )


@jax.jit
def _observe(problem, learner, state, round, played):
    state, outcome = learner.observe(problem, state, round, played=played)
    return learner.decision(state), outcome


def _check_played(games):
    problem, learner, game = games.problem, games.learner, games.base
    half = games.length // 2
    state = games.play(rounds=games.part(half)).state
    round = jax.tree.map(lambda leaf: leaf[half], games.rounds)
    decision = learner.decision(state)
    following, outcome = _observe(problem, learner, state, round, decision)
    expected = following if half + 1 == games.length else jax.tree.map(lambda x: x[half + 1], game.decisions)
    require_close(following, expected, games.tol, "played=decision must change nothing")
    require_close(outcome.loss, game.loss[half], games.tol, "played=decision must not change the loss")

    other = problem.domain.vertex().mix(decision, 0.5)
    following, outcome = _observe(problem, learner, state, round, other)
    values = problem.values(other, round)
    require_close((outcome.loss, outcome.constraint), values, games.tol, "loss and constraint must be at played")
    following = jax.tree.map(lambda leaf: leaf[None], following)
    require_inside(problem.domain, following, "after another point was played, decision")
