"""`cocoax theory`."""

from fractions import Fraction
from typing import Annotated

import typer

from ..errors import LabError
from .app import app
from .console import show
from .options import numbers


@app.command()
def theory(
    diameter: Annotated[float, typer.Option(help="R, of the domain, in the l2 norm.")] = 1.0,
    lipschitz: Annotated[float, typer.Option(help="D, of losses and constraints, in the l2 norm.")] = 1.0,
    smoothness: Annotated[float, typer.Option(help="L, of losses and constraints.")] = 1.0,
    bound: Annotated[float, typer.Option(help="G, of the constraints' values.")] = 1.0,
    dimension: Annotated[int, typer.Option(min=1, help="d, of a decision.")] = 10,
    beta: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Trades regret for violation, as far as a theorem allows."),
    ] = 0.0,
    horizons: Annotated[str, typer.Option(help="Numbers of rounds.")] = "1000,1000000",
    learners: Annotated[
        str | None, typer.Option(help="Methods, whole names or words of them as OCG, separated by commas.")
    ] = None,
):
    """Rates and bounds for these constants, and the horizon from which each bound is not vacuous."""
    from ..lab import guarantees

    if not all(0 < value < float("inf") for value in (diameter, lipschitz, smoothness, bound)):
        raise LabError("diameter, lipschitz, smoothness and bound must be positive and finite")
    sizes = {"diameter": diameter, "lipschitz": lipschitz, "constraint_bound": bound}
    methods = guarantees.methods(smoothness=smoothness, dimension=dimension, beta=beta, **sizes)
    methods = guarantees.pick(methods, learners)
    at = numbers(horizons) or [1000]
    columns = ["method", "regret rate", "violation rate", *(f"regret, T={T:g}" for T in at)]
    columns += [*(f"violation, T={T:g}" for T in at), "regret useful from", "violation useful from"]
    rows = []
    for name, method in methods.items():
        values = guarantees.table({name: method}, at, **sizes)
        useful = [
            guarantees.useful_from(method, slope, which)
            for which, slope in (("regret", diameter * lipschitz), ("violation", bound))
        ]
        rows.append(
            [
                name,
                *(f"T^{Fraction(rate).limit_denominator(1000)}" for rate in method.rates[:2]),
                *(_against(row.regret, row.trivial_regret) for row in values),
                *(_against(row.violation, row.trivial_violation) for row in values),
                *(">1e15" if T is None else f"{T:.3g}" for T in useful),
            ]
        )
    show(
        "Proven bounds, each under its theorem's conditions (cocoax list primals); in brackets where vacuous",
        columns,
        rows,
    )


def _against(bound, trivial):
    return f"{bound:.3g}" if bound < trivial else f"({bound:.3g})"
