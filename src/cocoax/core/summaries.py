"""Short summaries of results: as text for `print`, and as HTML with small plots for notebooks."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from . import tree

_WIDTH, _HEIGHT, _POINTS = 160, 40, 160  # of a small plot


class Summary(NamedTuple):
    """A title, named rows of words and numbers, and named curves.

    >>> print(Summary("Game of 3 rounds", [("loss", "mean 0.5"), ("budget", "met")], []))
    Game of 3 rounds
      loss    mean 0.5
      budget  met
    """

    title: str
    rows: Sequence[tuple[str, str]]
    curves: Sequence[tuple[str, np.ndarray]] = ()  # each (T,), or (n, T) for n lines

    def __str__(self):
        width = max((len(name) for name, _ in self.rows), default=0)
        return "\n".join([self.title, *(f"  {name:<{width}}  {text}" for name, text in self.rows)])

    def html(self) -> str:
        """The same as a table, above the curves."""
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in self.rows)
        plots = "".join(
            f"<figure style='display:inline-block;margin:0 1em 0 0'><figcaption>{html.escape(name)}</figcaption>"
            f"{small_plot(curve, name)}</figure>"
            for name, curve in self.curves
        )
        style = "style='text-align:left'"
        return f"<div><table {style}><caption {style}>{html.escape(self.title)}</caption>{rows}</table>{plots}</div>"


def is_known(*leaves: Any) -> bool:
    """Whether these are arrays with values: no tracers, shapes, or what else stands for arrays in a PyTree."""
    arrays = all(isinstance(leaf, np.ndarray | np.generic | jax.Array) for leaf in leaves)
    return arrays and not tree.is_traced(*leaves)


def number(values: Any) -> str:
    """One number; or, of several, their mean and spread.

    >>> number(1234.5678), number(np.array([1.0, 3.0]))
    ('1235', '2 ± 1.4')
    """
    values = np.asarray(values, float).ravel()
    spread = f" ± {values.std(ddof=1):.2g}" if len(values) > 1 else ""
    return f"{values.mean():.4g}{spread}" if len(values) else "none"


def point(x: Any) -> str | None:
    """A short decision in words; None where it is long, or no array."""
    if not is_known(x) or np.size(x) > 12 or np.ndim(x) > 1:
        return None
    return np.array2string(np.asarray(x), precision=4, suppress_small=True, max_line_width=200)


def small_plot(curve: Any, name: str) -> str:
    """An SVG of some lines, thinned, with the zero line where it is within reach."""
    lines = np.atleast_2d(np.asarray(curve, float))[:8]
    at = np.unique(np.linspace(0, lines.shape[-1] - 1, _POINTS).astype(int))
    lines = np.where(np.isfinite(lines[:, at]), lines[:, at], np.nan)
    low, high = (np.nanmin(lines), np.nanmax(lines)) if np.isfinite(lines).any() else (0.0, 0.0)
    unit = (high - low) or 1.0
    xs = _WIDTH * (at - at[0]) / max(at[-1] - at[0], 1)

    def height(value):
        return _HEIGHT - 2 - (_HEIGHT - 4) * (value - low) / unit

    drawn = "".join(
        f"<polyline fill='none' stroke='currentColor' stroke-opacity='{1 / len(lines) ** 0.5:.2f}' points='"
        + " ".join(f"{x:.1f},{height(y):.1f}" for x, y in zip(xs, line) if np.isfinite(y))
        + "'/>"
        for line in lines
    )
    zero = f"<path d='M0 {height(0):.1f}H{_WIDTH}' stroke='gray' stroke-dasharray='3'/>" if low < 0 < high else ""
    label = html.escape(f"{name}: from {lines[0, 0]:.4g} to {lines[0, -1]:.4g}", quote=True)
    return (
        f"<svg role='img' aria-label='{label}' width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}'>"
        f"<title>{label}</title>{zero}{drawn}</svg>"
    )
