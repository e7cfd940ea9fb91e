"""Fair online classification: decisions about people, within a limit on how they depend on a group."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...core import check
from ...core.facts import ProblemFacts, with_facts
from ...data.stored import load
from ...domains import L2Ball
from ...errors import ProblemError
from ...problem.problem import Problem, Round
from .recorded import RealInstance

_RADIUS = 5.0
_STEP = 0.5  # of the baseline
_RARE = 0.01  # values of a column that fewer people have are put together


class People(eqx.Module):
    """Features of people (standardised, the first is 1), what is to be predicted, and the group that is protected."""

    features: Float[np.ndarray, "people d"]
    label: Float[np.ndarray, " people"]  # 1 or -1
    group: Float[np.ndarray, " people"]  # 1 or 0


class _Limit(eqx.Module):
    """The constraints: the covariance of group and score in both directions, over the limit, less 1."""

    share: Float[Array, ""]  # of the group
    limit: Float[Array, ""]
    usual: Float[Array, " d"] | None  # features of the average person, if scores count from theirs

    def __call__(self, x, r):
        """{"more": covariance / limit - 1, "less": -covariance / limit - 1}."""
        score = r["features"] @ x
        score = score if self.usual is None else score - jnp.vdot(self.usual.astype(x.dtype), x)
        apart = jnp.mean((r["group"] - self.share.astype(x.dtype)) * score) / self.limit.astype(x.dtype)
        return {"more": apart - 1, "less": -apart - 1}


def _loss(x, r):
    return jnp.mean(jax.nn.softplus(-r["label"] * (r["features"] @ x)))


@with_facts(ProblemFacts("a Euclidean ball", "real people: logistic regression with a limit on unequal rates"))
def fair_classification(
    key: PRNGKeyArray | None = None,
    *,
    data: Any = "adult",
    limit: float = 0.03,
    batch: int = 10,
    centred: bool = False,
    folder: Any = None,
) -> RealInstance:
    r"""$f_t(x) = \frac1b\sum_i\log(1 + e^{-y_i\langle a_i, x\rangle})$ over a ball of radius 5, with b people per
    round.

    Who is predicted positive should not depend on a group z: on sex for "adult" (earns more than 50,000 dollars), on
    colour for "arrests" (was released); z itself is not a feature. Rates jump, so the limit is on a convex surrogate
    (Zafar et al., 2017), the covariance of group and score: $\pm\frac1b\sum_i(z_i - \bar z)\langle a_i, x\rangle \le$
    `limit`, each divided by the limit, less 1. This module's `rates` has the true rates of the predictions. With
    `centred=True` scores are relative to that of the average person, $\langle a_i-\bar a, x\rangle$. For a fixed
    decision that makes no difference over all people, as $\sum_i(z_i-\bar z)=0$, but a single round has less noise.

    `data` may also be this module's `People`. They come in the order of the file, or with a key in random order; people
    left over after the last full round are not used. Baselines: "logistic regression" (online, AdaGrad, no limit) and
    "constant" (the best common score for all, known afterwards).

    >>> rng = np.random.default_rng(0)
    >>> group = (rng.random(400) < 0.5).astype(float)
    >>> features = np.stack([np.ones(400), rng.normal(size=400) + group], 1)
    >>> label = np.sign(features[:, 1] + rng.normal(size=400))
    >>> instance = fair_classification(data=People(features, label, group))
    >>> instance.length, instance.baseline("constant").constraint.shape
    (40, (40, 2))
    """
    if isinstance(data, str) and data not in _TABLES:
        raise ProblemError(f"data must be {' or '.join(map(repr, _TABLES))}, or People, got {data!r}")
    people = _TABLES[data](folder) if isinstance(data, str) else _own_people(data)
    batch, limit = check.whole(batch, "batch", ProblemError), check.scalar(limit, "limit", ProblemError)
    count = len(people.label) // batch if batch > 0 else 0
    if count < 1 or not limit > 0:
        raise ProblemError(
            f"batch must lie between 1 and {len(people.label)} and limit be positive, got {batch}, {limit}"
        )
    rows = np.arange(len(people.label)) if key is None else np.asarray(jax.random.permutation(key, len(people.label)))
    rounds = {
        name: getattr(people, name)[rows[: count * batch]].reshape(count, batch, *getattr(people, name).shape[1:])
        for name in ("features", "label", "group")
    }
    usual = jnp.asarray(people.features.mean(0), float) if centred else None
    bound = _Limit(jnp.asarray(people.group.mean(), float), jnp.asarray(limit, float), usual)
    problem = Problem(L2Ball(people.features.shape[1], _RADIUS), _loss, bound, constraints=("more", "less"))
    baselines = {"logistic regression": logistic_regression, "constant": _constant}
    return RealInstance(problem, rounds, **baselines)


def rates(decisions: Any, rounds: Round) -> tuple[float, float]:
    """The fractions of each group (z = 0, z = 1) that were predicted positive, each by its round's decision."""
    scores = np.einsum("tbd,td->tb", np.asarray(rounds["features"]), np.asarray(decisions))
    positive, group = scores > 0, np.asarray(rounds["group"])
    return float(positive[group == 0].mean()), float(positive[group == 1].mean())


def mistakes(decisions: Any, rounds: Round) -> float:
    """The fraction of all people whose label was predicted wrongly, each by its round's decision."""
    scores = np.einsum("tbd,td->tb", np.asarray(rounds["features"]), np.asarray(decisions))
    return float(((scores > 0) != (np.asarray(rounds["label"]) > 0)).mean())


def logistic_regression(problem: Problem, rounds: Round) -> Float[Array, "rounds d"]:
    """Baseline: online logistic regression with AdaGrad's steps by coordinate, without the limit; one x per round."""

    def one_round(state, r):
        x, squares = state
        gradient = problem.gradients(x, r)[0]
        squares = squares + gradient**2
        return (x - _STEP * gradient / jnp.sqrt(jnp.where(squares > 0, squares, 1)), squares), x

    start = problem.domain.start()
    return jax.lax.scan(one_round, (start, jnp.zeros_like(start)), rounds)[1]


def _own_people(data) -> People:
    """The user's own `People`, checked; a `ProblemError` says what is wrong with them."""
    check.instance(data, People, ProblemError, f"data must be {' or '.join(map(repr, _TABLES))}, or People")
    features, label, group = (
        check.real(getattr(data, name), name, ProblemError) for name in ("features", "label", "group")
    )
    shapes = features.shape, label.shape, group.shape
    if features.ndim != 2 or {shapes[1], shapes[2]} != {features.shape[:1]}:
        raise ProblemError(
            f"features, label and group must have shapes (people, d), (people,), (people,), got {shapes}"
        )
    if not np.isfinite(features).all():
        raise ProblemError("features must be finite; fill gaps, or leave out these people")
    for name, values, known in (("label", label, (-1, 1)), ("group", group, (0, 1))):
        other = values[~np.isin(values, known)]
        if other.size:
            raise ProblemError(f"each {name} must be {known[0]} or {known[1]}, got {other[0]:g}")
    return People(features, label, group)


def _constant(problem, rounds):
    """The baseline "constant": the decision with the best common score for all people."""
    start, positive = problem.domain.start(), np.mean(np.asarray(rounds["label"]) > 0)
    return start.at[0].set(jnp.asarray(np.log(positive / (1 - positive)), start.dtype))


def _people_of_census(folder):
    """The people of the data set "adult"."""
    table = load("adult", folder)["people"]
    numbers = [table[name] for name in ("age", "education_years", "hours")]
    numbers += [np.log1p(table["capital_gain"]), np.log1p(table["capital_loss"])]
    kinds = [table[name] for name in ("workclass", "marital_status", "occupation", "race")]
    return People(
        _standardised(numbers, kinds), _signs(table["above_50k"] == 1), (table["sex"] == "Female").astype(float)
    )


def _people_of_arrests(folder):
    """The people of the data set "arrests"."""
    table = load("arrests", folder)["arrests"]
    numbers, kinds = [table["age"], table["checks"], table["year"]], [table[n] for n in ("employed", "citizen", "sex")]
    return People(
        _standardised(numbers, kinds), _signs(table["released"] == "Yes"), (table["colour"] == "Black").astype(float)
    )


_TABLES = {"adult": _people_of_census, "arrests": _people_of_arrests}


def _signs(positive):
    return np.where(positive, 1.0, -1.0)


def _standardised(numbers, kinds):
    """A matrix: a column of ones, each of `numbers` with mean 0 and variance 1, and one column per value of `kinds`."""
    columns = [(column - column.mean()) / column.std() for column in numbers]
    for column in kinds:
        values, counts = np.unique(column.astype(str), return_counts=True)
        columns += [(column == value).astype(float) for value in values[counts > _RARE * len(column)][1:]]
    return np.stack([np.ones(len(columns[0])), *columns], 1)
