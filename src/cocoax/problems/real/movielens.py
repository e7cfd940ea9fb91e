"""Ratings in the order of time, some at once: predict them before they are seen, and keep to a budget of exposure."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...core import check
from ...core.facts import ProblemFacts, with_facts
from ...data import load
from ...domains import Box, Product
from ...errors import ProblemError
from ...problem.problem import Problem, Round
from .recorded import RealInstance

_LOWEST, _HIGHEST = 1.0, 5.0


def predicted(x: Any, r: Round) -> Float[Array, " batch"]:
    """The prediction for every triple of a round: mean, and biases of user and item."""
    return x["mean"] + x["user"][r["user"]] + x["item"][r["item"]]


def _loss(x, r):
    errors = predicted(x, r) - r["rating"]
    return jnp.vdot(r["weight"], errors**2) / r["weight"].sum()


def _exposure(x, r):
    """The mean prediction for well-known items, less that for the others, less the limit.

    It is 0 in a round without both kinds.
    """
    known, others = r["weight"] * r["known"], r["weight"] * (1 - r["known"])
    both = (known.sum() > 0) & (others.sum() > 0)

    def mean(weights):
        return weights @ predicted(x, r) / jnp.where(both, weights.sum(), 1)

    return jnp.where(both, mean(known) - mean(others) - r["limit"], 0)


@with_facts(ProblemFacts("a product of boxes", "real ratings in the order of time, with a budget of exposure"))
def ratings(
    key: PRNGKeyArray | None = None,
    *,
    batch: int = 500,
    limit: float | None = None,
    table: Mapping[str, Any] | None = None,
) -> RealInstance:
    r"""$f_t(x)=\frac1{|B_t|}\sum_{(u,i,r)\in B_t}(m+b_u+c_i-r)^2$: a mean m in [1, 5], biases $b_u$, $c_i$ in [-2, 2].

    MovieLens 100K (`cocoax data fetch ml-100k`): 100,000 ratings of 1,682 films by 943 people. A round is a batch
    of sparse triples `user`, `item`, `rating`; triples that fill the last batch have `weight` 0. Users and items are
    numbered by their first rating.

    With a `limit`, $g_t(x)=\bar p_\text{known}-\bar p_\text{others}-\text{limit}$: the mean prediction for well-known
    items may exceed that for the others by the limit. Well known are the items with the most ratings before the batch
    which together have half of all those ratings.

    **Arguments:**

    - `batch`: how many ratings a round has.
    - `limit`: in stars; without it there is no constraint.
    - `table`: columns `user`, `item` and `rating`, in the order of time, in place of MovieLens.

    The key is not used. `next_batch_rmse` scores a game; `ratings_baselines` has what people compare with.

    >>> import jax
    >>> import cocoax as cx
    >>> instance = ratings(batch=10, table=sampled_ratings(jax.random.key(0), users=20, items=30, count=500))
    >>> game = cx.play(instance.problem, cx.learners.AutoNewton(), instance.recorded, key=jax.random.key(0))
    >>> instance.length, bool(next_batch_rmse(game.loss, instance.recorded) < 1.0)
    (50, True)
    """
    size = check.whole(batch, "batch", ProblemError, low=1)
    if limit is not None and not np.isfinite(check.scalar(limit, "limit", ProblemError)):
        raise ProblemError(f"limit must be a number of stars, or None, got {limit}")
    columns = _checked_columns(load("ml-100k")["ratings"] if table is None else table)
    users, items = (_numbered_by_first_use(columns[name]) for name in ("user", "item"))
    count = len(users)
    fields = {
        "user": users.astype(np.int32),
        "item": items.astype(np.int32),
        "rating": columns["rating"].astype(float),
        "weight": np.ones(count),
        "known": _well_known(items, size),
    }
    missing = -count % size
    rounds: Round = {name: np.pad(column, (0, missing)).reshape(-1, size) for name, column in fields.items()}
    domain = Product(
        {
            "mean": Box([_LOWEST], [_HIGHEST]),
            "user": _biases(int(users.max()) + 1),
            "item": _biases(int(items.max()) + 1),
        }
    )
    if limit is None:
        return RealInstance(Problem(domain, _loss), rounds)
    rounds["limit"] = np.full(len(rounds["user"]), float(limit))
    return RealInstance(Problem(domain, _loss, _exposure, constraints="exposure"), rounds)


def next_batch_rmse(losses: Any, rounds: Round) -> float:
    """The root of the mean squared error over all ratings, each predicted before it was seen."""
    weights = np.asarray(rounds["weight"]).sum(1)
    return float(np.sqrt(np.asarray(losses) @ weights / weights.sum()))


def sampled_ratings(key: PRNGKeyArray, *, users: int, items: int, count: int) -> dict[str, np.ndarray]:
    """Made-up ratings with the columns of MovieLens: users come and go, and some items are far more popular."""
    draw = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    of_user, of_item = draw.normal(0, 0.4, users), draw.normal(0, 0.5, items)
    popularity = 1 / np.arange(1, items + 1)
    of_item += 0.5 * (np.log(popularity) - np.log(popularity).mean()) / np.log(items)  # good items are popular
    user = np.minimum((np.arange(count) * users // count + draw.geometric(0.3, count) - 1), users - 1)
    item = draw.choice(items, count, p=popularity / popularity.sum())
    stars = 3.5 + of_user[user] + of_item[item] + draw.normal(0, 0.9, count)
    return {"user": user, "item": item, "rating": np.clip(np.round(stars), _LOWEST, _HIGHEST)}


def _checked_columns(table) -> dict[str, np.ndarray]:
    """The columns `user`, `item` and `rating` of a table, checked to be finite and in stars."""
    missing = [name for name in ("user", "item", "rating") if name not in table]
    if missing:
        raise ProblemError(f"a table of ratings needs the column {missing[0]!r}")
    columns = {name: np.asarray(table[name]) for name in ("user", "item", "rating")}
    if len({column.shape for column in columns.values()}) > 1 or not columns["user"].size:
        raise ProblemError("the columns user, item and rating must have one length, at least 1")
    columns["rating"] = check.real(columns["rating"], "rating", ProblemError)
    if not np.isfinite(columns["rating"]).all():
        row = np.flatnonzero(~np.isfinite(columns["rating"]))[0]
        raise ProblemError(f"ratings must be finite, but row {row} has {columns['rating'][row]:g}; leave out such rows")
    usual = columns["rating"].mean()
    if not _LOWEST <= usual <= _HIGHEST:
        raise ProblemError(
            f"ratings are in stars, {_LOWEST:g} to {_HIGHEST:g}, but their mean is {usual:g}; rescale them"
        )
    return columns


def _numbered_by_first_use(names) -> np.ndarray:
    """The names replaced by numbers: 0 for the first name that occurs, 1 for the next new one."""
    _, first, places = np.unique(names, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[places]


def _well_known(items, batch) -> np.ndarray:
    """For each rating: whether its item was well known before its batch.

    Well known are the items with the most earlier ratings which together have half of all earlier ratings.
    """
    counts, known = np.zeros(items.max() + 1), np.zeros(len(items))
    for begin in range(0, len(items), batch):
        now = items[begin : begin + batch]
        if begin:
            most = np.sort(counts)[::-1]
            known[begin : begin + batch] = counts[now] >= most[np.searchsorted(np.cumsum(most), begin / 2)]
        counts += np.bincount(now, minlength=len(counts))
    return known


def _biases(count) -> Box:
    return Box(np.full(count, -2.0), np.full(count, 2.0))
