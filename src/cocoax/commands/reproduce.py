"""`cocoax reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .options import Certify, Cluster, Out, Quiet, Resume, Workers, numbers
from .studies import Options, begun, finish


@app.command()
def reproduce(
    quick: Annotated[bool, typer.Option("--quick", help="5 instances, 3 horizons.")] = False,
    instances: Annotated[int | None, typer.Option(min=1, help="How many; 30 in the paper.")] = None,
    horizons: Annotated[str | None, typer.Option(help="Numbers of rounds, as 10,100,1000.")] = None,
    learners: Annotated[
        str | None, typer.Option(help="Whole names or words of them as OCG, separated by commas.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first instance.")] = 0,
    out: Out = Path("out/reproduce"),
    resume: Resume = False,
    quiet: Quiet = False,
    workers: Workers = None,
    cluster: Cluster = None,
    certify: Certify = False,
):
    """The paper's experiment, the baselines, and the variant whose constraint binds; ends with a report."""
    options = Options(out, resume, quiet, workers, cluster, certify)
    with begun(options) as client:
        from ..lab import paper

        study = paper.reproduction(
            out,
            instances=instances or (5 if quick else 30),
            horizons=numbers(horizons),
            names=learners,
            seed=seed,
            quick=quick,
        )
        words = {"title": "The paper's experiment", "descriptions": paper.DESCRIPTIONS, "groups": paper.groups()}
        finish(study, options, client, slopes=paper.slopes(), **words)
