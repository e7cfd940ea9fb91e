"""What a game was: losses, constraints, multipliers, and how they compare with a fixed decision."""

import contextlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..comparators.certificate import Certificate, certificate, policy_certificate
from ..comparators.comparator import Comparator
from ..core import check, tree
from ..core.summaries import is_known
from ..core.sums import running_sum
from ..errors import ProblemError
from ..learners.base import AnyArray
from ..problem.minorants import Minorants
from ..problem.policy_sums import PolicySums
from ..problem.problem import Problem
from .metrics import metric_columns
from .summary import figure, summary


@contextlib.contextmanager
def _free_promotion():
    """For a batch of games against one comparator, or a game in float32 against a comparator in float64."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


class Game(eqx.Module):
    """The record of one game, or, after `jax.vmap(play)`, of a batch of them.

    Time is an axis counted from the right: `loss` is (..., T), `constraint` and `multiplier` are (..., T, m).
    Running sums are NumPy arrays in float64, or, where traced, compensated. `print(game)` gives a summary.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: -r * x[0], lambda x, r: x[0] - 0.25)
    >>> values = jnp.array([1.0, 3.0])
    >>> game = cx.play(problem, cx.learners.Stay(), values, key=jax.random.key(0), keep_rounds=True)  # plays 0.5
    >>> game.loss.tolist(), game.violation()[:, 0].tolist(), game.regret([0.25]).tolist()
    ([-0.5, -1.5], [0.25, 0.5], [-0.25, -1.0])
    """

    loss: Float[AnyArray, "*batch T"]
    constraint: Float[AnyArray, "*batch T m"]
    multiplier: Float[AnyArray, "*batch T m"]  # the weight of each constraint in each round, the loss's being 1
    lmo_calls: Int[AnyArray, "*batch T"]  # to prepare the decision after each round
    gradient_calls: Int[AnyArray, "*batch T"]
    decision: Any  # the next one
    average: Any  # of this game's decisions
    decisions: Any  # all of them, if kept
    rounds: Any  # if kept
    state: Any  # to go on from
    bad_round: Int[AnyArray, "*batch"]  # the first that was not finite, or beyond the horizon; or -1
    problem: Problem | None  # kept with the rounds, and where the game is certified
    minorants: Minorants | None  # if it is certified: what `certificate` needs
    policy: PolicySums | None  # the same for policies, where requests are seen first
    metrics: Any  # (..., T) in each leaf, with `play(metrics=...)`
    certified: Any  # (..., T), with `play(certify=k)`: a bound on the regret after each k-th round, NaN after others
    names: tuple[str, ...] = eqx.field(static=True)  # of the constraints

    @classmethod
    def of(
        cls,
        outcomes: Any,
        names: tuple[str, ...],
        *,
        decision: Any = None,
        average: Any = None,
        decisions: Any = None,
        rounds: Any = None,
        state: Any = None,
        problem: Any = None,
        minorants: Any = None,
        policy: Any = None,
        metrics: Any = None,
        certified: Any = None,
    ) -> "Game":
        """The game whose rounds had these `outcomes`: an `Outcome` with a leading axis of rounds."""
        numpy = np if isinstance(outcomes.finite, np.ndarray) else jnp
        good = numpy.cumprod(outcomes.finite, axis=-1).sum(-1)  # rounds before the first bad one
        return cls(
            loss=outcomes.loss,
            constraint=outcomes.constraint,
            multiplier=outcomes.multiplier,
            lmo_calls=outcomes.lmo_calls,
            gradient_calls=outcomes.gradient_calls,
            decision=decision,
            average=average,
            decisions=decisions,
            rounds=rounds,
            state=state,
            bad_round=numpy.where(good < outcomes.finite.shape[-1], good, -1),
            problem=problem,
            minorants=minorants,
            policy=policy,
            metrics=metrics,
            certified=certified,
            names=names,
        )

    def certificate(self, *, lmos: int = 20, policy: bool = False) -> Certificate:
        """A proven bound on the regret so far, after `play(certify=True)`; it takes at most `lmos` LMO calls.

        "So far" begins with the learner, also when the game continued from a `state`. With `policy`, for problems with
        requests: against the best policy instead of the best fixed decision. A batch of games gets a batch of
        certificates.
        """
        if self.minorants is None or self.problem is None:
            raise ProblemError("a certificate needs the tangents of all rounds; play with certify=True")
        batch = self.loss.shape[:-1]
        if policy and self.policy is None:
            raise ProblemError("only a game whose requests are seen first has policies; leave out policy=True")
        parts = self.problem.domain, self.minorants, self.policy

        def one(at):
            domain, minorants, policies = jax.tree.map(lambda leaf: leaf[at], parts)
            if policy:
                return policy_certificate(minorants.total_loss, policies)
            return certificate(domain, minorants, lmos=lmos)

        found = [one(at) for at in np.ndindex(batch)]
        return jax.tree.map(lambda *leaves: np.reshape(leaves, (*batch, *np.shape(leaves[0]))), *found)

    @_free_promotion()
    def regret(self, comparator: Any) -> Any:
        """Running sum of f_t(x_t) - f_t(x*), (..., T).

        `comparator` is what `hindsight` returns; or a point, or a path of T points (dynamic regret), which need
        `play(keep_rounds=True)`.
        """
        return running_sum(self.loss - self._as_comparator(comparator).loss, -1)

    @_free_promotion()
    def regret_bounds(self, comparator: Any) -> Any:
        """(lower, upper): the regret against the comparator's point, and the same plus the comparator's duality gap.

        Where the comparator is feasible, the last entries enclose the regret against the exact optimum.
        """
        against = self._as_comparator(comparator)
        lower = self.regret(against)
        return lower, lower + np.expand_dims(against.value - against.lower_bound, -1)

    def violation(self) -> Any:
        """Running sum of g_t(x_t), (..., T, m)."""
        return running_sum(self.constraint, -2)

    def hard_violation(self) -> Any:
        """Running sum of [g_t(x_t)]_+, (..., T, m)."""
        values = self.constraint
        # NumPy where it can: a session's history has a new length every round, which JAX would compile for
        positive = jnp.maximum(values, 0) if tree.is_traced(values) else np.maximum(np.asarray(values), 0)
        return running_sum(positive, -2)

    @_free_promotion()
    def score(self, comparator: Any) -> Any:
        """Running sum of regret + <price, [violation]_+>.

        The price is at least twice what violation is worth to the comparator; see `Comparator`.
        """
        against = self._as_comparator(comparator)
        price = against.price
        if np.ndim(price) == np.ndim(against.constraint):  # one price for each round
            charge = running_sum(price * jnp.maximum(self.constraint, 0), -2)
        else:
            charge = np.expand_dims(price, -2) * self.violation().clip(0)
        return self.regret(against) + charge.sum(-1)

    def table(self, comparator: Any = None) -> dict[str, np.ndarray]:
        """One row per round, as NumPy columns that pandas and polars both take; a batch has a column `game`."""
        batch = self.loss.shape[:-1]
        if len(batch) > 1:
            raise ProblemError(f"table takes one game or one batch of games, got a batch of shape {batch}")
        violation, hard = self.violation(), self.hard_violation()
        columns = {
            "round": np.broadcast_to(np.arange(self.loss.shape[-1]), self.loss.shape),
            "loss": self.loss,
        }
        if batch:
            games = np.broadcast_to(np.arange(batch[0])[:, None], self.loss.shape)
            columns = {"game": games, **columns}
        if comparator is not None:
            columns["regret"] = self.regret(comparator)
            columns["score"] = self.score(comparator)
        for i, name in enumerate(self.names):
            columns[name] = self.constraint[..., i]
            columns[f"{name}_violation"] = violation[..., i]
            columns[f"{name}_hard_violation"] = hard[..., i]
            columns[f"{name}_multiplier"] = self.multiplier[..., i]
        columns |= metric_columns(self.metrics)
        columns["lmo_calls"] = self.lmo_calls
        columns["gradient_calls"] = self.gradient_calls
        return {name: np.asarray(column).reshape(-1) for name, column in columns.items()}

    def plot(self, comparator: Any = None, *, title: str | None = None) -> Any:
        """A matplotlib `Figure` of losses (or regret against a comparator), violations, multipliers and metrics.

        Of a batch: the mean of its games, with a band from the smallest to the largest. `figure.savefig("game.png")`
        writes it; notebooks show it. Needs `pip install "cocoax[figures]"`. Several learners in one figure:
        `cx.lab.plot`.
        """
        return figure(self, comparator, title)

    def __repr__(self):
        return str(summary(self)) if self._is_known() else eqx.tree_pformat(self)

    def _repr_html_(self):
        return summary(self).html() if self._is_known() else None

    def _is_known(self):
        parts = self.loss, self.constraint, self.multiplier, self.lmo_calls, self.gradient_calls, self.bad_round
        return is_known(*parts, *jax.tree.leaves(self.metrics)) and np.size(self.loss) > 0

    def _as_comparator(self, comparator) -> Comparator:
        """The comparator that a user gave; a point or a path of points is evaluated on this game's rounds."""
        if isinstance(comparator, Comparator):
            if (compared := np.shape(comparator.loss)[-1]) != (played := self.loss.shape[-1]):
                raise ProblemError(
                    f"the comparator is for {compared} rounds, the game has {played}; give hindsight those of the game"
                )
            if np.shape(comparator.constraint)[-1] != len(self.names):
                raise ProblemError(
                    "the comparator is of another problem: its constraints are not as many as the game's"
                )
            return comparator
        if self.loss.ndim > 1:
            raise ProblemError("a point as comparator works for one game; for a batch give a batch of comparators")
        like = self.average if self.decision is None else self.decision  # with requests, the next one is not known
        if like is None and self.problem is not None:  # in a session
            like = self.problem.domain.start()
        if tree.has_element(like) and not tree.is_like(comparator, like):
            raise ProblemError(
                "comparator must be a matrix of the domain, as its element(...) makes them, or a decision"
            )
        comparator = check.listed(comparator) if isinstance(like, jax.Array) else comparator
        point = jax.tree.map(np.shape, like)
        path = jax.tree.map(lambda leaf: (*self.loss.shape, *np.shape(leaf)), like)
        shape = jax.tree.map(np.shape, comparator)
        if shape not in (point, path) and not tree.has_element(like):
            found = f"shape {shape}" if jax.tree.leaves(shape) else check.described(comparator)
            raise ProblemError(
                f"comparator must be what hindsight returns, a point of shape {point} or a path of shape {path}, got "
                f"{found}"
            )
        if self.problem is None or self.rounds is None:
            raise ProblemError(
                "a point as comparator needs the rounds; play with keep_rounds=True, or give Comparator.fixed(...)"
            )
        make = Comparator.path if shape == path and shape != point else Comparator.fixed
        return make(self.problem, self.rounds, comparator)
