"""Statistics of a study's table: means with intervals, slopes over the horizons, paired differences.

All functions take `Study.table()` and leave out games that could not be played or had a round that was not finite. A
figure that does not exist (an interval from one seed, the slope of something negative) is NaN. The same table gives
the same bits.
"""

import functools
import itertools

import numpy as np
import polars as pl

from .rows import CURVES

SUMMARISED = ("regret", "regret_bound", "violation", "score", "multiplier", "lmo_calls", "gradient_calls")
COMPARED = ("regret", "violation", "score")
LEVEL = 0.95  # of all intervals
BAND = (0.1, 0.9)  # quantiles over the seeds
_GAME = ("problem", "learner", "horizon")


def played(table: pl.DataFrame) -> pl.DataFrame:
    """The games that were played to the end with finite values.

    Figures that need a comparator are null where there is none, so that means skip them.
    """
    rows = table.filter(pl.col("reason").is_null() & (pl.col("bad_round") < 0))
    return rows.with_columns(
        pl.col("regret", "regret_upper", "regret_bound", "score", "comparator", "gap").fill_nan(None)
    )


def at_largest_horizon(rows: pl.DataFrame) -> pl.DataFrame:
    """The games at the largest horizon of each problem."""
    return rows.filter(pl.col("horizon") == pl.col("horizon").max().over("problem"))


def half_width(deviation, games):
    """Half the width of Student's confidence interval of a mean over `games` games."""
    from scipy.special import stdtrit

    deviation, games = np.asarray(deviation, float), np.asarray(games)
    return np.where(games > 1, deviation / games**0.5 * stdtrit(np.maximum(games - 1, 1), (1 + LEVEL) / 2), np.nan)


def summary(table: pl.DataFrame) -> pl.DataFrame:
    """For each problem, learner and horizon: the number of games, and the mean, interval and quantiles of each figure.

    The interval of a figure `x` is `x_mean` ± `x_half`; `x_low` and `x_high` are quantiles over the seeds. `gap_max` is
    the comparators' largest duality gap.
    """
    aggregates = [pl.len().cast(pl.Int64).alias("games"), pl.col("gap").max().fill_null(np.nan).alias("gap_max")]
    for figure in SUMMARISED:
        aggregates += [*_mean_and_band(figure), pl.col(figure).std().fill_null(np.nan).alias(f"{figure}_half")]
        aggregates.append(pl.col(figure).count().alias(f"{figure}_count"))
    rows = played(table).group_by(_GAME, maintain_order=True).agg(aggregates)
    halves = [pl.Series(f"{x}_half", half_width(rows[f"{x}_half"], rows[f"{x}_count"])) for x in SUMMARISED]
    return rows.with_columns(halves).drop(f"{x}_count" for x in SUMMARISED)


def over_rounds(curves: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The mean and quantiles over the seeds of each curve in `Study.curves()`, by round."""
    rows = curves.join(played(table), on=[*_GAME, "seed"], how="semi", maintain_order="left")
    rows = rows.with_columns(pl.col("regret", "score", "regret_bound").fill_nan(None))
    aggregates = [column for figure in CURVES for column in _mean_and_band(figure)]
    return rows.group_by(*_GAME, "round", maintain_order=True).agg(aggregates)


def slopes(table: pl.DataFrame, *, figures=("regret", "violation"), resamples: int = 2000) -> pl.DataFrame:
    r"""For each problem, learner and figure: the p in $\mathrm{mean}(T) \approx c\,T^p$.

    It is fitted to logarithms by least squares, if at least three horizons were played and all means are positive; of
    violations, only positive parts count. `low` and `high` are a bootstrap interval over the seeds. A resample whose
    means are not all positive counts as infinite on both sides, so that it widens the interval.
    """
    rows = []
    for (problem, learner), games in played(table).group_by("problem", "learner", maintain_order=True):
        for figure in figures:
            horizons, values = _by_seed_and_horizon(games, figure)
            values = values.clip(0) if figure == "violation" else values
            rows.append((problem, learner, figure, len(horizons), *_slope_with_interval(horizons, values, resamples)))
    schema = {"problem": pl.String, "learner": pl.String, "figure": pl.String, "horizons": pl.Int64}
    return pl.DataFrame(rows, {**schema, **dict.fromkeys(("slope", "low", "high"), pl.Float64)}, orient="row")


def differences(table: pl.DataFrame) -> pl.DataFrame:
    """For every two learners, at each problem's largest horizon: `learner` minus `other` on the same seeds.

    The interval of the paired differences is `mean` ± `half`.
    """
    rows = []
    for (problem, horizon), games in at_largest_horizon(table).group_by("problem", "horizon", maintain_order=True):
        learners, values, exists = _by_learner_and_seed(games)
        pairs = list(itertools.combinations(range(len(learners)), 2))
        first, second = np.array(pairs, int).reshape(-1, 2).T
        intervals = _mean_and_interval(values[first] - values[second], exists[first] & exists[second])
        for pair, *of_pair in zip(pairs, *(column.tolist() for column in intervals)):
            names = [learners[i] for i in pair]
            rows += [(problem, horizon, figure, *names, *numbers) for figure, *numbers in zip(COMPARED, *of_pair)]
    schema = {"problem": pl.String, "horizon": pl.Int64, "figure": pl.String, "learner": pl.String, "other": pl.String}
    return pl.DataFrame(rows, {**schema, "games": pl.Int64, "mean": pl.Float64, "half": pl.Float64}, orient="row")


def is_constrained(table: pl.DataFrame) -> bool:
    """Whether any of these games had a constraint, even one that is always 0."""
    return bool((table["constraints"] > 0).any())


def _mean_and_band(figure):
    """Expressions for the mean and the quantiles of one figure."""
    column = pl.col(figure)
    aggregates = {
        "mean": column.mean(),
        "low": column.quantile(BAND[0], "linear"),
        "high": column.quantile(BAND[1], "linear"),
    }
    return [value.fill_null(np.nan).alias(f"{figure}_{name}") for name, value in aggregates.items()]


def _by_learner_and_seed(games):
    """(learners, values, exists) at one problem and horizon; both arrays are by learner, figure and seed.

    `exists` says where a value is known.
    """
    groups = {name: group for (name,), group in played(games).group_by("learner", maintain_order=True)}
    seeds = {seed: place for place, seed in enumerate(games["seed"].unique(maintain_order=True))}
    values = np.zeros((len(groups), len(COMPARED), len(seeds)))
    exists = np.zeros(values.shape, bool)
    for i, group in enumerate(groups.values()):
        places = [seeds[seed] for seed in group["seed"]]
        values[i][:, places] = group.select(COMPARED).to_numpy().T
        exists[i][:, places] = group.select(pl.col(COMPARED).is_not_null()).to_numpy().T
    return list(groups), values, exists


def _mean_and_interval(values, exists):
    """(how many exist, mean, half of its interval) along the last axis."""
    n = exists.sum(-1)
    with np.errstate(invalid="ignore"):
        mean = np.where(exists, values, 0).sum(-1) / n
        deviation = (np.where(exists, values - mean[..., None], 0) ** 2).sum(-1) / (n - 1)
        return n, mean, half_width(deviation**0.5, n)


def _by_seed_and_horizon(games, figure):
    """(horizons, values): a row of values for each seed that was played at every horizon."""
    games = games.select("seed", "horizon", figure).drop_nulls()
    seeds, row = np.unique(games["seed"].to_numpy(), return_inverse=True)
    horizons, column = np.unique(games["horizon"].to_numpy(), return_inverse=True)
    values = np.empty((len(seeds), len(horizons)))
    values[row, column] = games[figure].to_numpy()
    return horizons, values[np.bincount(row, minlength=len(seeds)) == len(horizons)]


def _slope_with_interval(horizons, values, resamples):
    """(slope, low, high) from one row of values per seed; NaN where they do not exist."""
    if len(horizons) < 3 or not len(values) or not (values.mean(0) > 0).all():
        return np.nan, np.nan, np.nan
    slope = float(_slope(horizons, values.mean(0)))
    if len(values) < 2:
        return slope, np.nan, np.nan
    means = values.take(_picks(len(values), resamples).T, axis=0).mean(0)
    positive = (means > 0).all(1)
    resampled = _slope(horizons, np.where(positive[:, None], means, 1.0))
    low = np.quantile(np.where(positive, resampled, -np.inf), (1 - LEVEL) / 2, method="lower")
    high = np.quantile(np.where(positive, resampled, np.inf), (1 + LEVEL) / 2, method="higher")
    return slope, float(low), float(high)


@functools.lru_cache(maxsize=8)
def _picks(seeds, resamples):
    """(resamples, seeds): the seeds that each bootstrap resample draws; always the same."""
    return np.random.default_rng(0).integers(seeds, size=(resamples, seeds))


def _slope(horizons, means):
    """The least-squares slope of log(means), along the last axis, against log(horizons)."""
    x = np.log(horizons) - np.log(horizons).mean()
    return np.log(means) @ x / (x @ x)
