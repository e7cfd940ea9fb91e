"""A summary of a game as text, its curves for small plots in notebooks, and its figure."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import check
from ..core.summaries import Summary, number, point
from ..errors import ProblemError
from .metrics import metric_columns

if TYPE_CHECKING:
    from .game import Game

_FEW = 20  # rounds that show no growth
_NEARLY_LINEAR = 1.5


def summary(game: "Game") -> Summary:
    """The results of a game as rows of text; for a batch of games, means and standard deviations over the batch."""
    horizon, batch = game.loss.shape[-1], game.loss.shape[:-1]
    title = f"Game of {horizon:,} rounds"
    if batch:
        title = f"{int(np.prod(batch)):,} games of {horizon:,} rounds each, mean ± standard deviation"
    loss = np.asarray(game.loss, float)
    rows = [("loss", f"mean {number(loss.mean(-1))}, total {number(loss.sum(-1))}")]
    violation, hard = (np.asarray(x)[..., -1, :] for x in (game.violation(), game.hard_violation()))
    for i, name in enumerate(game.names):
        kept = "kept" if np.all(violation[..., i] <= 0) else "exceeded"
        rows.append(
            (
                name,
                f"violation {number(violation[..., i])} ({kept}), hard {number(hard[..., i])}, "
                f"last multiplier {number(game.multiplier[..., -1, i])}",
            )
        )
    growing = [name for name, grows in zip(game.names, _still_growing(game)) if grows]
    if growing:
        proof = "if no decision can keep within the limits, cx.hindsight proves it"
        rows.append(("still growing", f"{', '.join(growing)}; {proof}"))
    rows += [(name, f"mean {number(np.mean(column, -1))}") for name, column in metric_columns(game.metrics).items()]
    calls = (np.asarray(x).sum(-1) for x in (game.lmo_calls, game.gradient_calls))
    rows.append(("calls", "{} LMOs, {} gradients".format(*map(number, calls))))
    bad = np.asarray(game.bad_round).ravel()
    if np.any(bad >= 0):
        rows.append(("not finite", f"from round {bad[bad >= 0].min()} on"))
    if not batch and (decision := point(game.decision)) is not None:
        rows.append(("next decision", decision))
    return Summary(title, rows, list(curves(game).items()))


def _still_growing(game: "Game") -> list[bool]:
    r"""For each constraint: whether its violation is 1.5 times what it was at half of the game, and was never larger.

    Linear growth gives 2. Growth like $\sqrt T$, the most that theorems allow, gives 1.41.
    """
    violation = np.asarray(game.violation())
    length = violation.shape[-2]
    if length < _FEW:
        return [False] * violation.shape[-1]
    end, half = violation[..., -1, :], violation[..., (length + 1) // 2 - 1, :]
    grows = (half > 0) & (end > _NEARLY_LINEAR * half) & (end >= violation.max(-2))
    return list(map(bool, np.atleast_1d(grows.all(axis=tuple(range(grows.ndim - 1))))))


def curves(game: "Game", comparator: Any = None) -> dict[str, np.ndarray]:
    """The curves to plot, by name, each (T,) or (games, T): loss or regret, violations, multipliers and metrics."""
    rounds = np.arange(1, game.loss.shape[-1] + 1)
    mean_loss = np.cumsum(np.asarray(game.loss, float), -1) / rounds
    shown = {"mean loss": mean_loss} if comparator is None else {"regret": np.asarray(game.regret(comparator))}
    violation = np.asarray(game.violation())
    for i, name in enumerate(game.names):
        shown |= {f"{name}: violation": violation[..., i], f"{name}: multiplier": np.asarray(game.multiplier)[..., i]}
    shown |= metric_columns(game.metrics)
    return {name: curve.reshape(-1, len(rounds)) if curve.ndim > 1 else curve for name, curve in shown.items()}


def figure(game: "Game", comparator: Any, title: str | None) -> Any:
    """A matplotlib `Figure` with one panel per curve; a batch shows its mean and its range."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ProblemError('matplotlib is missing; game.plot() needs it: pip install "cocoax[figures]"') from None
    if title is not None and not isinstance(title, str):
        raise ProblemError(f"title must be a text, got {check.described(title)}")
    shown = curves(game, comparator)
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    made = Figure(figsize=(4 * columns, 2.6 * rows), layout="constrained")
    rounds = np.arange(1, game.loss.shape[-1] + 1)
    for place, (name, curve) in enumerate(shown.items(), 1):
        axes = made.add_subplot(rows, columns, place, title=name, xlabel="round")
        axes.axhline(0, color="gray", linewidth=0.5)
        lines = np.atleast_2d(curve)
        axes.plot(rounds, lines.mean(0))
        if len(lines) > 1:
            axes.fill_between(rounds, lines.min(0), lines.max(0), alpha=0.2)
    if title is not None:
        made.suptitle(title)
    return made
