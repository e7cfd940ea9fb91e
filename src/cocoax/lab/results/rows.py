"""What is stored about a game and its comparator: figures of the last round, and curves of some rounds."""

from typing import NamedTuple

import jax
import numpy as np
import polars as pl

from ...comparators.comparator import Comparator
from ...games.game import Game

MARKS = 60  # rounds that a curve keeps at most
CURVES = ("regret", "violation", "multiplier", "score", "regret_bound")  # what is kept of some rounds
GAME = ["problem", "learner", "horizon", "seed"]
FIGURES = [
    "regret",
    "regret_upper",
    "regret_bound",
    "violation",
    "hard_violation",
    "score",
    "loss",
    "multiplier",
    "lmo_calls",
    "gradient_calls",
    "comparator",
    "gap",
    "constraints",
    "bad_round",
    "reason",
]


class Played(NamedTuple):
    """Games of one call, and what they took."""

    games: Game  # NumPy arrays with a leading axis of games; losses, constraints and multipliers in float64
    seconds: float  # a game and round, without compilation


def marks(horizon: int) -> np.ndarray:
    """Rounds, counted from 1, evenly spaced on a logarithmic scale: the first and the last among them."""
    return np.unique(np.round(np.geomspace(1, horizon, min(MARKS, horizon))).astype(int))


def comparator_row(key: str, comparator: Comparator | str) -> pl.DataFrame:
    """The stored row of a comparator, or of the reason (a text) why there is none."""
    if isinstance(comparator, str):
        return pl.DataFrame({"key": [key], "reason": [comparator]})
    return pl.DataFrame(
        {
            "key": [key],
            "loss": [np.asarray(comparator.loss, np.float64)],
            "multiplier": [np.asarray(comparator.multiplier, np.float64)],
            "price": [np.asarray(comparator.price, np.float64)],
            "value": [float(comparator.value)],
            "lower_bound": [float(comparator.lower_bound)],
            "reason": pl.Series([None], dtype=pl.String),
        }
    )


def stored_comparator(row) -> Comparator | str:
    """The comparator, or the reason, from a row of `comparator_row`; the decision itself was not stored."""
    if row["reason"] is not None:
        return row["reason"]
    loss, multiplier = np.asarray(row["loss"], np.float64), np.asarray(row["multiplier"], np.float64)
    value, lower = np.asarray(row["value"]), np.asarray(row["lower_bound"])
    price = np.asarray(row["price"], np.float64)
    return Comparator(np.zeros(0), loss, np.zeros((len(loss), len(multiplier))), value, lower, multiplier, price)


def game_rows(keys, played: Played, comparators) -> pl.DataFrame:
    """A stored row for each game, with its key and its comparator."""
    games = [jax.tree.map(lambda leaf, i=i: leaf[i], played.games) for i in range(len(keys))]
    rows = [_game_row(*game, played.seconds) for game in zip(keys, games, comparators)]
    return pl.DataFrame(rows, schema=SCHEMA)


def refused_rows(reasons: dict[str, str]) -> pl.DataFrame:
    """Stored rows without figures for games that could not be played; `reasons` are by key."""
    rows = [dict.fromkeys(SCHEMA) | {"key": key, "reason": reason} for key, reason in reasons.items()]
    return pl.DataFrame(rows, schema=SCHEMA)


def table(stored: pl.DataFrame) -> pl.DataFrame:
    """A row per stored game: what was played, and the figures of the last round."""
    return stored.select(*GAME, *FIGURES)


def curves(stored: pl.DataFrame) -> pl.DataFrame:
    """A row for each stored round of each game that could be played."""
    lists = ["round", *CURVES]
    rows = stored.filter(pl.col("reason").is_null())
    return rows.select(*GAME, *(pl.col(f"{x}_curve").alias(x) for x in lists)).explode(lists)


def harmless(rows: pl.DataFrame) -> pl.DataFrame:
    """The table for CSV, with an apostrophe before texts that a spreadsheet would read as a formula.

    Numbers are not changed.
    """
    text = pl.col(pl.String)
    return rows.with_columns(pl.when(text.str.contains(r"^[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep())


def seconds(stored: pl.DataFrame) -> pl.DataFrame:
    """The median of the measured seconds per round, by problem, learner and horizon."""
    rows = stored.filter(pl.col("reason").is_null())
    return rows.group_by(GAME[:-1], maintain_order=True).agg(pl.col("seconds").median())


def _game_row(key, game: Game, comparator: Comparator | str, seconds):
    """The row of one game, by column."""
    is_comparator = isinstance(comparator, Comparator)
    unknown = np.full(len(game.loss), np.nan)
    regret, score = (game.regret(comparator), game.score(comparator)) if is_comparator else (unknown, unknown)
    gap = float(comparator.gap) if is_comparator else np.nan
    worst = game.violation().max(axis=1) if game.names else np.zeros(len(game.loss))
    largest = np.max(game.multiplier, axis=1, initial=0.0)
    bound = unknown if game.certified is None else game.certified
    at, curves = marks(len(game.loss)) - 1, (regret, worst, largest, score, bound)
    return {
        "key": key,
        "regret": regret[-1],
        "regret_upper": regret[-1] + gap,
        "regret_bound": bound[-1],
        "violation": worst[-1],
        "hard_violation": game.hard_violation()[-1].max(initial=0.0),
        "score": score[-1],
        "loss": game.loss.sum(),
        "multiplier": largest.max(),
        "lmo_calls": game.lmo_calls.mean(),
        "gradient_calls": game.gradient_calls.mean(),
        "comparator": float(comparator.value) if is_comparator else np.nan,
        "gap": gap,
        "constraints": len(game.names),
        "bad_round": int(game.bad_round),
        "reason": None,
        "seconds": seconds,
        "round_curve": (at + 1).tolist(),
        **{f"{name}_curve": values[at].tolist() for name, values in zip(CURVES, curves)},
    }


SCHEMA = {
    "key": pl.String,
    **dict.fromkeys(FIGURES[:-3], pl.Float64),
    "constraints": pl.Int64,
    "bad_round": pl.Int64,
    "reason": pl.String,
    "seconds": pl.Float64,
    "round_curve": pl.List(pl.Int64),
    **{f"{name}_curve": pl.List(pl.Float64) for name in CURVES},
}
