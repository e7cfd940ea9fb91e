"""The data of interactive plots, which the page's script draws."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from .figures import LABELS, Line, Style, lines, on_log_scale, proven_bounds, reference, shade, ticks
from .page import fraction

DASHES = {"-": "", "--": "7 4", "-.": "7 3 2 3", ":": "2 3"}  # of SVG, by Matplotlib's names


def against_horizon(rows: pl.DataFrame, figure: str, looks: dict[str, Style], rates: Mapping[str, float]) -> dict:
    """The data of a plot of one figure against T, with reference lines for the theorems' `rates`, by learner.

    `rows` are one problem's rows of `statistics.summary`.
    """
    drawn = lines(rows, figure, "horizon")
    references = []
    for learner, exponent in rates.items():
        if learner in drawn and (curve := reference(drawn[learner], exponent)) is not None:
            x, y = map(_numbers, curve)
            look = {"colour": looks[learner].colour, "label": f"T^{fraction(exponent)}"}
            references.append({"learner": learner, "x": x, "y": y, **look})
    spec = _spec(drawn, figure, looks, "horizon T", marked=True)
    return spec | {"references": references, "ticks": ticks(rows["horizon"])}


def over_rounds(rows: pl.DataFrame, figure: str, looks: dict[str, Style]) -> dict:
    """The data of a plot of one figure over the rounds; regret has its proven bounds.

    `rows` are rows of `statistics.over_rounds` for one problem and one horizon.
    """
    bounds = proven_bounds(rows) if figure == "regret" else {}
    return _spec(lines(rows, figure, "round"), figure, looks, "round", marked=False, bounds=bounds)


def _spec(drawn: dict[str, Line], figure, looks, xlabel, *, marked, bounds: Mapping = MappingProxyType({})):
    """The data of a plot of these lines, as JSON can hold them."""
    return {
        "label": LABELS.get(figure, figure),
        "xlabel": xlabel,
        "scale": "log" if on_log_scale(drawn, figure, xlabel != "round", bounds.values()) else "linear",
        "shade": shade(drawn),
        "marked": marked,
        "references": [],
        "ticks": None,
        "lines": [
            {
                "learner": name,
                **{part: _numbers(values) for part, values in line._asdict().items()},
                "bound": _numbers(bounds[name]) if name in bounds else None,
                "colour": looks[name].colour,
                "dash": DASHES[looks[name].dash],
                "marker": looks[name].marker,
            }
            for name, line in drawn.items()
        ],
    }


def _numbers(values):
    """A list for JSON, with None for numbers that are not finite."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
