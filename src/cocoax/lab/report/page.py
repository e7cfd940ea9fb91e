"""Makes the report's page from its templates: one HTML file with its style sheet and scripts inside."""

import importlib.resources
import math
from fractions import Fraction

import jinja2

from .headline import listed

_PACKAGE = "cocoax.lab.report"


def render(**data) -> str:
    """The HTML of `page.html.j2` filled with `data`; texts are escaped."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {part.__name__: part for part in (number, plus_minus, exact, fraction, listed, math.isfinite)}
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    assets = {"css": _asset("page.css"), "scripts": [_asset("plot.js"), _asset("page.js")]}
    return templates.get_template("page.html.j2").render(**assets, **data)


def _asset(name: str) -> str:
    return importlib.resources.files(_PACKAGE).joinpath(name).read_text("utf-8")


def exact(value: float | None) -> str:
    """All digits, for programs; empty if the value is not finite."""
    return repr(float(value)) if value is not None and math.isfinite(value) else ""


def number(value: float | None, digits: int = 4, missing: str = "–") -> str:
    """A number with few digits, for people to read."""
    if value is None or not math.isfinite(value):
        return missing
    return f"{value:.{digits}g}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")


def plus_minus(mean: float, half: float, sign: str = " ± ") -> str:
    """A mean and half of its interval, as in "1.23 ± 0.45": two digits of the interval, the mean to the same place."""
    if not (math.isfinite(mean) and math.isfinite(half)) or half <= 0:
        return number(mean)
    places = 1 - math.floor(math.log10(half))
    if places > 6 or max(abs(mean), half) >= 1e7:
        return f"{number(mean, 3)}{sign}{number(half, 2)}"
    digits = max(places, 0)
    return f"{mean:.{digits}f}{sign}{half:.{digits}f}".replace("-", "−")


def fraction(exponent: float) -> str:
    """3/4 for 0.75; three digits if no fraction with a small denominator is near."""
    near = Fraction(exponent).limit_denominator(24)
    return str(near) if abs(near - exponent) < 1e-6 else number(exponent, 3)
