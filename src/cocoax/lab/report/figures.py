"""The figures of a report, with Matplotlib: panels with bands and one legend."""

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

# Okabe and Ito's palette, which the colour-blind can tell apart too, without its yellow; grey for black
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
Rates = Mapping[str, Mapping[str, float]]  # proven exponents of T, by figure and learner
LABELS = {"multiplier": "largest multiplier", "loss": "total loss"}  # of figures; others are called by their names


class Size(NamedTuple):
    """The size of a figure and of its parts, in inches."""

    panel: float  # width
    height: float  # without the legend
    entry: float  # width of a legend's entry
    row: float  # height of a legend's row


NOTEBOOK = Size(4.2, 3.1, 2.1, 0.2)
PAPER = Size(2.25, 1.9, 2.2, 0.145)  # three panels fill the text width of two columns, 6.75 inches
PAPER_FONTS: dict[Any, Any] = {
    "font.size": 8,
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
    "pdf.fonttype": 42,  # TrueType, as publishers ask
}


class Style(NamedTuple):
    """How a learner is drawn, in all figures."""

    colour: str
    dash: str
    marker: str


class Line(NamedTuple):
    """A mean with its band, over x."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def styles(learners) -> dict[str, Style]:
    """A style for each learner: colours vary first, then dashes."""
    n = len(COLOURS)
    return {
        name: Style(COLOURS[i % n], DASHES[i // n % len(DASHES)], MARKERS[i % len(MARKERS)])
        for i, name in enumerate(learners)
    }


def lines(rows: pl.DataFrame, figure: str, x: str) -> dict[str, Line]:
    """The line of each learner, for one figure such as "regret".

    `rows` are one problem's rows of `statistics.summary` or `statistics.over_rounds`; `x` is "horizon" or "round".
    """
    columns = [x, *(f"{figure}_{part}" for part in ("mean", "low", "high"))]
    return {
        str(name): Line(*(group[column].to_numpy() for column in columns))
        for (name,), group in rows.group_by("learner", maintain_order=True)
    }


def proven_bounds(rows: pl.DataFrame) -> dict[str, np.ndarray]:
    """The mean proven bound on the regret of each learner that has one, by round.

    `rows` are one problem's rows of `statistics.over_rounds`.
    """
    means = {str(name): group["regret_bound_mean"].to_numpy() for (name,), group in rows.group_by("learner")}
    return {name: mean for name, mean in means.items() if np.isfinite(mean).any()}


def draw_bound(axis, line: Line, bound: np.ndarray, look: Style) -> None:
    """Hatch the band between the mean regret and its proven bound, where the bound is finite."""
    known = np.isfinite(bound)
    options = {"color": look.colour, "alpha": 0.12, "hatch": "///", "linewidth": 0}
    axis.fill_between(line.x[known], line.mean[known], bound[known], **options)


def reference(line: Line, exponent: float) -> tuple[np.ndarray, np.ndarray] | None:
    """(x, y) of the curve c T^exponent through the line's first positive mean; None if there is none."""
    positive = np.flatnonzero(line.mean > 0)
    if not len(positive) or positive[0] == len(line.x) - 1:
        return None
    first = positive[0]
    x = np.geomspace(line.x[first], line.x[-1], 25)
    return x, line.mean[first] * (x / line.x[first]) ** exponent


def ticks(horizons, most: int = 6) -> list[int]:
    """At most `most` of the horizons, spread evenly on a logarithmic scale, with the first and the last."""
    distinct = np.unique(horizons)
    wanted = np.linspace(np.log(distinct[0]), np.log(distinct[-1]), most)
    near = np.abs(np.log(distinct)[:, None] - wanted).argmin(0)
    return distinct.tolist() if len(distinct) <= most else distinct[np.unique(near)].tolist()


def shade(drawn) -> float:
    """The opacity of bands: lower for more lines."""
    return min(0.15, 0.9 / max(len(drawn), 1))


def on_log_scale(drawn: Mapping[str, Line], figure: str, against_horizon: bool, bounds: Iterable = ()) -> bool:
    """Whether a panel gets a logarithmic y axis.

    It does for regret and score against T, whose slopes are read, for positive values against T, and where one line or
    bound ends so far out that the others would look flat.
    """
    values = _all_values(drawn)
    if against_horizon and (figure in ("regret", "score") or (len(values) and (values > 0).all())):
        return True
    last = np.abs([*(line.mean[-1] for line in drawn.values()), *(bound[-1] for bound in bounds)])
    last = last[np.isfinite(last) & (last > 0)]
    return len(last) > 1 and bool(last.max() > 10 * np.median(last))


def draw_horizons(rows: pl.DataFrame, looks: Mapping[str, Style], rates: Rates, *, constrained=True):
    """A Matplotlib figure of regret, violation and score against T, with the theorems' `rates` as dotted lines.

    `rows` are one problem's rows of `statistics.summary`.
    """
    panels = {figure: lines(rows, figure, "horizon") for figure in _paper_panels(constrained)}
    figure, axes = draw_panels(panels, "horizon T", looks, PAPER, marked=True)
    for name, axis in axes.items():
        axis.set_xscale("log")
        axis.set_xticks(marks := ticks(rows["horizon"]), map(str, marks))
        axis.set_xticks([], minor=True)
        for learner, exponent in rates.get(name, {}).items():
            line = panels[name].get(learner)
            if line is not None and (drawn := reference(line, exponent)) is not None:
                axis.plot(*drawn, color=looks[learner].colour, linestyle=(0, (1, 3)), linewidth=0.8)
        if on_log_scale(panels[name], name, True):
            _logarithmic(axis, panels[name])
    return figure


def draw_rounds(rows: pl.DataFrame, looks: Mapping[str, Style], *, constrained=True):
    """A Matplotlib figure of regret with its proven bounds, violation and score, over the rounds.

    `rows` are one problem's rows of `statistics.over_rounds`.
    """
    panels = {x: lines(rows, x, "round") for x in _paper_panels(constrained)}
    figure, axes = draw_panels(panels, "round", looks, PAPER)
    bounds = proven_bounds(rows)
    for learner, bound in bounds.items():
        draw_bound(axes["regret"], panels["regret"][learner], bound, looks[learner])
    for name, axis in axes.items():
        if on_log_scale(panels[name], name, False, bounds.values() if name == "regret" else ()):
            _logarithmic(axis, panels[name])
    return figure


def _paper_panels(constrained):
    return ("regret", "violation", "score") if constrained else ("regret",)


def image_files(figure) -> Iterator[tuple[str, bytes]]:
    """Yields ("png", bytes) and ("pdf", bytes) of a figure.

    The layout is computed once for both, since it takes as long as drawing.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)  # measures texts for the layout, and keeps their sizes for drawing
    figure.set_dpi(200)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine(None)
    forms = {"png": {"pil_kwargs": {"compress_level": 1}}, "pdf": {"metadata": {"CreationDate": None}}}
    for form, settings in forms.items():
        with matplotlib.rc_context(PAPER_FONTS):
            figure.savefig(content := io.BytesIO(), format=form, dpi=figure.dpi, **settings)
        yield form, content.getvalue()


def draw_panels(panels, xlabel, looks, size: Size, *, marked=False):
    """(figure, axes by name): a row of panels, with one legend below.

    `panels` has the lines by panel and learner; `looks` has a style by learner; `marked` adds markers.
    """
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context(PAPER_FONTS if size is PAPER else {}):
        width, count = size.panel * len(panels), len(looks)
        columns = max(1, min(count, int(width // size.entry)))
        shape = width, size.height + size.row * -(-count // columns)
        figure, axes = pyplot.subplots(1, len(panels), figsize=shape, layout="constrained", squeeze=False)
        pyplot.close(figure)  # a notebook shows what is returned, once; scripts keep no window
        for axis, (name, drawn) in zip(axes[0], panels.items()):
            axis.axhline(0, color="black", linewidth=0.6)
            for learner, line in drawn.items():
                look = looks[learner]
                axis.fill_between(line.x, line.low, line.high, color=look.colour, alpha=shade(drawn), linewidth=0)
                marker = {"marker": look.marker, "markersize": 3} if marked else {}
                axis.plot(line.x, line.mean, look.dash, color=look.colour, linewidth=1.3, label=learner, **marker)
            axis.set(xlabel=xlabel, ylabel=LABELS.get(name, name))
            axis.grid(alpha=0.25, linewidth=0.6)
            axis.spines[["top", "right"]].set_visible(False)
        handles = {}
        for axis in axes[0]:
            handles |= dict(zip(*reversed(axis.get_legend_handles_labels())))
        if handles:
            small = None if size is PAPER else "small"
            where = {"loc": "outside lower center", "ncols": columns, "frameon": False, "fontsize": small}
            figure.legend(handles.values(), handles.keys(), **where)
        return figure, dict(zip(panels, axes[0]))


def _all_values(drawn):
    """All finite numbers of these lines, in one array."""
    values = np.concatenate([part for line in drawn.values() for part in line[1:]] or [[]])
    return values[np.isfinite(values)]


def _logarithmic(axis, drawn):
    """Make the y axis logarithmic, or linear around zero and logarithmic outside if a value is not positive."""
    values = _all_values(drawn)
    if not len(values) or not np.abs(values).max():
        return
    if (values > 0).all():
        axis.set_yscale("log")
        for extra in [line for line in axis.lines if not np.any(np.asarray(line.get_ydata()) > 0)]:
            extra.remove()  # the line at zero
    else:
        axis.set_yscale("symlog", linthresh=10.0 ** (np.floor(np.log10(np.abs(values).max())) - 2), linscale=0.5)
