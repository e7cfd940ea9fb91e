"""Baselines for predicting ratings: each returns the next-batch RMSE on the rounds of `ratings`."""

from collections.abc import Iterator

import numpy as np

from ...problem.problem import Round

_START = 3.0


def running_mean(rounds: Round) -> float:
    """The RMSE of predicting the mean of all earlier ratings."""
    errors, total, count = [], 0.0, 0
    for _, _, stars in _batches(rounds):
        errors.append(stars - (total / count if count else _START))
        total, count = total + stars.sum(), count + len(stars)
    return _rmse(errors)


def damped_means(rounds: Round, damping: float = 5.0) -> float:
    """The RMSE of predicting: mean + the item's mean deviation + the user's mean deviation from both.

    Each deviation is averaged with `damping` more ratings of 0.
    """
    users, items = (np.zeros((2, _size(rounds, name))) for name in ("user", "item"))
    errors, total, count = [], 0.0, 0

    def means(sums):
        return sums[0] / (sums[1] + damping)

    for user, item, stars in _batches(rounds):
        mean = total / count if count else _START
        of_items = means(items)[item]
        errors.append(stars - mean - means(users)[user] - of_items)
        total, count = total + stars.sum(), count + len(stars)
        above = stars - total / count
        items += _sums(item, above, items.shape[1])
        users += _sums(user, above - of_items, users.shape[1])
    return _rmse(errors)


def sgd_factorisation(
    rounds: Round, *, rank: int = 10, step: float = 0.05, damping: float = 0.02, seed: int = 0
) -> float:
    """The RMSE of predicting: mean + biases + a product of factors of this rank.

    It is trained with one stochastic gradient step per rating, in their order.
    """
    draw = np.random.default_rng(seed)
    of_users, of_items = (draw.normal(0, 0.1, (_size(rounds, name), rank)) for name in ("user", "item"))
    users, items = np.zeros(len(of_users)), np.zeros(len(of_items))
    errors, total, count = [], 0.0, 0
    for user, item, stars in _batches(rounds):
        mean = total / count if count else _START
        factors = (of_users[user] * of_items[item]).sum(1)
        errors.append(stars - mean - users[user] - items[item] - factors)
        for u, i, star in zip(user, item, stars, strict=True):
            p, q = of_users[u], of_items[i]
            error = star - mean - users[u] - items[i] - p @ q
            users[u] += step * (error - damping * users[u])
            items[i] += step * (error - damping * items[i])
            of_users[u], of_items[i] = (
                p + step / 2 * (error * q - damping * p),
                q + step / 2 * (error * p - damping * q),
            )
        total, count = total + stars.sum(), count + len(stars)
    return _rmse(errors)


def _batches(rounds) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields (user, item, rating) for each round, without the triples that only fill it."""
    columns = [np.asarray(rounds[name]) for name in ("user", "item", "rating")]
    for real, *batch in zip(np.asarray(rounds["weight"]) > 0, *columns, strict=True):
        yield tuple(column[real] for column in batch)


def _sums(places, values, size) -> np.ndarray:
    """Sums of the values at each place, and how many there are."""
    return np.stack([np.bincount(places, values, size), np.bincount(places, minlength=size)])


def _size(rounds, name) -> int:
    return int(np.asarray(rounds[name]).max()) + 1


def _rmse(errors) -> float:
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
