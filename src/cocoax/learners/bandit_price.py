"""Bandit feedback: only what the chosen answer came to is seen, and the others are predicted from the request."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import check, tree
from ..core.facts import Facts
from ..core.parameters import parameter, positive_parameter
from ..domains import ProbabilitySimplex
from ..errors import LearnerError
from ..problem.lagrangian import Answer
from .auto_price import AutoPrice, Prices
from .price_sample import Sample, place
from .pricing import AbstractPricing

_LOOKS = 2  # how often each answer is tried before predictions are believed
_PRIOR = 2.0  # as how many rounds of an answer the spread of all losses counts
_FLAT = 1e-2  # how much less the mean of an answer is held back than its dependence on the features


class _Model(eqx.Module):
    """Ridge regression for each of k answers, of the loss and the m constraints at once."""

    inverse: Float[Array, "k d d"]  # of the Gram matrix
    sums: Float[Array, "k d 1+m"]  # of features times what was seen
    seen: Float[Array, " k"]  # how often
    squares: Float[Array, "k 1+m"]  # of the errors of predictions
    moments: Float[Array, " 2"]  # the sums of losses and of their squares

    def predict(self, features) -> tuple[Float[Array, "k 1+m"], Float[Array, " k"]]:
        """What each answer is expected to come to, and the width of that, in units of the noise."""
        means = jnp.einsum("d,kde,kej->kj", features, self.inverse, self.sums)
        return means, jnp.sqrt(jnp.maximum(jnp.einsum("d,kde,e->k", features, self.inverse, features), 0))

    @property
    def noise(self) -> Float[Array, "k 1+m"]:
        """Standard deviations around the predictions; of losses, the largest one of all answers, for each of which a
        few rounds with the spread of all losses count too."""
        losses, count = self.moments, jnp.maximum(self.seen.sum(), 1)
        spread = jnp.maximum(losses[1] / count - (losses[0] / count) ** 2, 0)
        prior = jnp.zeros_like(self.squares).at[:, 0].set(_PRIOR * spread)
        variance = (self.squares + prior) / (self.seen[:, None] + _PRIOR)
        return jnp.sqrt(variance.at[:, 0].set(variance[:, 0].max()))

    def learn(self, features, answer, came_to, counts) -> "_Model":
        """After answer k came to (loss, *constraints); nothing is learned if it does not count."""
        means, widths = self.predict(features)
        error, width = came_to - means[answer], widths[answer]
        surprise = jnp.where(self.seen[answer] > 0, error**2 / (1 + width**2), 0)
        along = self.inverse[answer] @ features
        smaller = self.inverse[answer] - jnp.outer(along, along) / (1 + width**2)  # Sherman and Morrison
        larger = self.sums[answer] + jnp.outer(features, came_to)
        new = _Model(
            self.inverse.at[answer].set(smaller),
            self.sums.at[answer].set(larger),
            self.seen.at[answer].add(1),
            self.squares.at[answer].add(surprise),
            self.moments + jnp.stack([came_to[0], came_to[0] ** 2]),
        )
        return tree.where(counts, new, self)


class _State(eqx.Module):
    prices: Float[Array, " m"]
    violation: Float[Array, " m"]
    squares: Float[Array, " m"]
    rounds: Int[Array, ""]
    due: Int[Array, ""]
    horizon: Int[Array, ""] | None
    model: _Model
    contexts: Float[Array, "n d"]  # features of requests of the past
    when: Int[Array, " n"]


class BanditPrice(AbstractPricing):
    r"""Optimistic predictions of each answer, at the price at which they would use up what is left of the budget.

    $k_t = \arg\min_k \hat f_k(\phi_t) + \langle\lambda_t, \hat g_k(\phi_t)\rangle - \alpha(\sigma_f +
    \langle\lambda_t, \sigma_{g,k}\rangle)\|\phi_t\|_{A_k^{-1}}$:
    $\hat f_k, \hat g_k$ are ridge regressions of what answer k came to on features $\phi_t$ of the request (LinUCB),
    $A_k$ their Gram matrix, and $\sigma$ the noise so far. Each answer is tried twice first. The price is that of
    `AutoPrice`, on remembered features that are predicted anew; the violation is what really happened.

    **Arguments:**

    - `features`: request -> d numbers, about as large as 1; a constant is added.
    - `dimension`: d.
    - `explore`: $\alpha$. `ridge`: what is added to the diagonal of the Gram matrices.
    - `horizon`, `memory`, `sample`: as in `AutoPrice`.

    Only what the decision came to is used of a round, `problem.values(played, round)`; so where nothing else is known,
    the loss and the constraint may be fields of the round. Decisions are vertices of a `ProbabilitySimplex`; rounds in
    which something else was played teach nothing but the violation. Unit-free in loss and constraints. *Measured*.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(2),
    ...     loss=lambda x, r: -jnp.vdot(r["value"], x),
    ...     constraint=lambda x, r: x[1] - 0.5,
    ...     request=("kind",),
    ... )
    >>> kind = jax.random.bernoulli(jax.random.key(0), 0.5, (400,)).astype(float)
    >>> noise = 0.3 * jax.random.normal(jax.random.key(1), (400, 2))
    >>> rounds = {"kind": kind, "value": jnp.stack([0.5 + 0 * kind, kind], 1) + noise}  # the second is for kind 1
    >>> learner = BanditPrice(lambda request: request["kind"][None], 1)
    >>> game = cx.play(problem, learner, rounds, key=jax.random.key(0))
    >>> bool(-game.loss[-200:].mean() > 0.65)  # 0.75 is best on average, 0.5 what a fixed decision has
    True
    """

    facts = Facts(
        cost="1 LMO, k regressions of d^2; rarely, 18 LMOs for each remembered request",
        guarantee="bandit feedback, no constants: measured",
        cites=("li2010",),
    )

    features: Callable
    explore: Float[Array, ""]
    ridge: Float[Array, ""]
    price: AutoPrice
    dimension: int = eqx.field(static=True)
    predict: Callable | None

    def __init__(
        self,
        features: Callable,
        dimension: int,
        *,
        explore: Any = 1.0,
        ridge: Any = 3.0,
        horizon: bool = True,
        memory: Any = None,
        sample: int = 512,
    ):
        if not callable(features):
            raise LearnerError(f"features must be callable as features(request), got {check.described(features)}")
        self.features, self.predict = tree.as_pytree(features), None
        self.dimension = check.whole(dimension, "dimension", LearnerError, low=0)
        self.explore, self.ridge = parameter(explore, "explore", 0, jnp.inf), positive_parameter(ridge, "ridge")
        self.price = AutoPrice(horizon=horizon, memory=memory, sample=sample)

    def check(self, problem):
        super().check(problem)
        if not isinstance(problem.domain, ProbabilitySimplex):
            raise LearnerError("BanditPrice predicts each answer of a ProbabilitySimplex; choose that domain")

    def begin(self, problem, start, *, horizon, key):
        kind, size, answers = tree.dtype(start), 1 + self.dimension, len(start)
        held = self.ridge.astype(kind) * jnp.ones(size, kind).at[0].set(_FLAT)
        inverse = jnp.broadcast_to(jnp.diag(1 / held), (answers, size, size))
        sums = jnp.zeros((answers, size, 1 + problem.constraints), kind)
        model = _Model(inverse, sums, jnp.zeros(answers, kind), jnp.zeros_like(sums[:, 0]), jnp.zeros(2, kind))
        first = self.price.begin(problem, start, horizon=horizon, key=key)
        contexts = jnp.zeros((self.price.size, size), kind)
        counters = first.prices, first.violation, first.squares, first.rounds, first.due, first.horizon
        return _State(*counters, model, contexts, first.sample.round)

    def multiplier(self, prices):
        return prices.prices

    def answer(self, problem, state, expected):
        old = state.prices
        means = self._optimistic(old.model, self._features(expected, state.start.dtype))
        direction = means[:, 0] + means[:, 1:] @ old.prices
        rarely = jnp.where(old.model.seen == old.model.seen.min(), -1, 0).astype(direction.dtype)
        direction = jnp.where(old.model.seen.min() < _LOOKS, rarely, direction)
        x = problem.domain.lmo(direction).dense()
        return Answer(x, x @ means[:, 0], x @ means[:, 1:], jnp.zeros_like(x[0]))

    def _features(self, request, kind):
        features = jnp.asarray(self.features(request), kind)
        if features.shape != (self.dimension,):
            raise LearnerError(f"features must return {self.dimension} numbers, got shape {features.shape}")
        return jnp.concatenate([jnp.ones(1, kind), features])

    def _optimistic(self, model, features):
        means, widths = model.predict(features)
        return means - self.explore.astype(widths.dtype) * model.noise * widths[:, None]

    def learn(self, problem, state, expected, played, loss, values):
        old, features = state.prices, self._features(expected, state.start.dtype)
        answer = jnp.argmax(played)
        whole = played[answer] >= played.sum() * (1 - 1e-6)
        model = old.model.learn(features, answer, jnp.concatenate([loss[None], values]), whole)
        where = place(self.price.size, old.rounds, self.price.memory)
        contexts = old.contexts.at[where].set(features, mode="drop")
        when = old.when.at[where].set(old.rounds, mode="drop")
        violation, rounds = old.violation + values, old.rounds + 1
        new = _State(old.prices, violation, old.squares, rounds, old.due, old.horizon, model, contexts, when)
        if problem.constraints == 0:
            return new
        found = jax.lax.cond(
            rounds > old.due,
            lambda: self._search(problem, new, state.start),
            lambda: (old.prices, old.squares, old.due),
        )
        return eqx.tree_at(lambda s: (s.prices, s.squares, s.due), new, found)

    def _search(self, problem, new, start):
        """The price of what is expected now of remembered requests."""
        means = jax.vmap(lambda features: self._optimistic(new.model, features))(new.contexts)
        tangent = jax.vmap(jax.vmap(problem.domain.tangent))(means.transpose(0, 2, 1))
        sizes, rows = (tangent**2).sum(-1), means.transpose(0, 2, 1)
        sample = Sample(rows[:, 0], rows[:, 1:], jnp.zeros_like(rows[:, 1:, 0]), new.when, sizes)
        state = Prices(new.prices, sample, new.violation, new.squares, new.rounds, new.due, new.horizon)
        return self.price.search(problem, state, start, patience=0.0)  # a cycle may pay back a debt, trying does not
