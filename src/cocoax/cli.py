"""The command line: `cocoax reproduce`, `race`, `serve`, `theory` and `list`."""

import contextlib
import os
import shlex
import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated

try:
    import typer
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
except ModuleNotFoundError as missing:
    sys.exit(f'cocoax: {missing.name} is missing; the command line needs it: pip install "cocoax[lab]"')

from .errors import CocoaxError, LabError, SessionError
from .lab.run import cluster as clusters

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Constrained online convex optimization in JAX, without projections.",
)
Out = Annotated[Path, typer.Option(help="Folder of the results.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the games that are already in --out.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes on this machine; beside a GPU most cores, else 1.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, as tcp://head:8786.")]


def main():
    """Run a command. What a user can mend is one sentence and exit status 2."""
    try:
        app()
    except CocoaxError as error:
        print("cocoax:", " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # before anything was played
        sys.exit(130)


@app.command()
def reproduce(
    quick: Annotated[bool, typer.Option("--quick", help="5 instances, 3 horizons.")] = False,
    instances: Annotated[int | None, typer.Option(min=1, help="How many; 30 in the paper.")] = None,
    horizons: Annotated[str | None, typer.Option(help="Numbers of rounds, as 10,100,1000.")] = None,
    learners: Annotated[str | None, typer.Option(help="Names, separated by commas; all by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first instance.")] = 0,
    out: Out = Path("out/reproduce"),
    resume: Resume = False,
    quiet: Quiet = False,
    workers: Workers = None,
    cluster: Cluster = None,
):
    """The paper's experiment, the baselines, and the variant whose constraint binds; ends with a report."""
    with _begun(out, resume, workers, cluster) as client:
        from .lab import paper

        study = paper.reproduction(
            out,
            instances=instances or (5 if quick else 30),
            horizons=_numbers(horizons),
            names=_names(learners),
            seed=seed,
            quick=quick,
        )
        _finish(study, quiet, client, cluster, title="The paper's experiment", slopes=paper.slopes())


@app.command()
def race(
    file: Annotated[
        Path,
        typer.Argument(
            help="A Python file that defines problems and learners, a TOML file, or the word arena or requests."
        ),
    ],
    problems: Annotated[
        str | None, typer.Option(help="In the arena: names, separated by semicolons; all by default.")
    ] = None,
    horizons: Annotated[str | None, typer.Option(help="In the arena: numbers of rounds, as 100,300,1000.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="In the arena: how many; 10 by default.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; out/race or out/arena by default.")] = None,
    resume: Resume = False,
    quiet: Quiet = False,
    workers: Workers = None,
    cluster: Cluster = None,
):
    """Every learner of a file on every problem of it, against the same rounds; ends with a report.

    `race arena` plays the untuned learner against rivals that were tuned by hand, and ends with a table as well; `race
    requests` does so with decisions that are taken after a request.
    """
    if str(file) in ("arena", "requests"):
        which, out = str(file), out or Path("out", file)
        _race_arena(which, out, resume, quiet, workers, cluster, problems, horizons, seeds)
        return
    if (problems, horizons, seeds) != (None, None, None):
        raise LabError(
            "--problems, --horizons and --seeds are for `cocoax race arena` and requests; a file says them itself"
        )
    out = out or Path("out/race")
    with _begun(out, resume, workers, cluster) as client:
        from .lab.files import study_from

        _finish(study_from(file, out), quiet, client, cluster, title=f"Race: {file.stem}")


def _race_arena(which, out, resume, quiet, workers, cluster, problems, horizons, seeds):
    with _begun(out, resume, workers, cluster) as client:
        from .lab.arena import requests, suite
        from .lab.arena.ranking import markdown

        make, first, table, title = {
            "arena": (suite.arena_study, suite.FIRST_SEED, markdown, "The arena"),
            "requests": (requests.requests_study, requests.FIRST_SEED, requests.requests_markdown, "Requests"),
        }[which]
        names = None if problems is None else [name.strip() for name in problems.split(";") if name.strip()]
        study = make(out, seeds=range(first, first + (seeds or 10)), horizons=_numbers(horizons), names=names)
        _finish(study, quiet, client, cluster, title=title)
    text = table(study, shlex.join(["cocoax", *sys.argv[1:]]))
    (out / f"{which}.md").write_text(text, "utf-8")
    print(f"\n{text}")


@app.command()
def serve(
    file: Annotated[Path, typer.Argument(help="A Python file that defines fleet = cx.Fleet(...).")],
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8000,
    tokens: Annotated[
        Path | None, typer.Option(help="A file with a role (play, read, admin) and a token a line.")
    ] = None,
    body: Annotated[int, typer.Option(min=1, help="Largest body of a request, in bytes.")] = 1 << 20,
    queue: Annotated[int, typer.Option(min=1, help="Requests that may wait; more are refused with 429.")] = 4096,
    log_all: Annotated[bool, typer.Option("--log-all", help="Log every request, not only refused ones.")] = False,
):
    """A fleet as an HTTP service, until SIGTERM or Ctrl-C."""
    try:
        from .service import access, run
    except ModuleNotFoundError as missing:
        raise SessionError(f'{missing.name} is missing; a service needs it: pip install "cocoax[serve]"') from None
    run.serve(file, host, port, access.tokens_from(tokens), largest_body=body, longest_queue=queue, log_all=log_all)


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
    learners: Annotated[str | None, typer.Option(help="Methods, separated by commas; all by default.")] = None,
):
    """Rates and bounds for these constants, and the horizon from which each bound is not vacuous."""
    from .lab import guarantees

    if not all(0 < value < float("inf") for value in (diameter, lipschitz, smoothness, bound)):
        raise LabError("diameter, lipschitz, smoothness and bound must be positive and finite")
    sizes = {"diameter": diameter, "lipschitz": lipschitz, "constraint_bound": bound}
    methods = guarantees.methods(smoothness=smoothness, dimension=dimension, beta=beta, **sizes)
    methods = guarantees.pick(methods, _names(learners))
    at = _numbers(horizons) or [1000]
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
    _show(
        "Proven bounds, each under its theorem's conditions (cocoax list primals); in brackets where vacuous",
        columns,
        rows,
    )


@app.command("list")
def list_parts(
    kind: Annotated[str | None, typer.Argument(help="domains, primals, duals, learners or problems.")] = None,
    cite: Annotated[bool, typer.Option("--cite", help="BibTeX entries instead.")] = False,
):
    """Domains, primals, duals, learners and problems, with their cost a round and their guarantee."""
    from .lab.catalogue import COLUMNS, catalogue
    from .lab.names import closest

    parts = catalogue()
    chosen = parts if kind is None else {closest(kind, parts, "kind"): parts[closest(kind, parts, "kind")]}
    if cite:
        from .learners.citations import CITATIONS

        names = [entry.name for entries in chosen.values() for entry in entries]
        print("\n\n".join(dict.fromkeys(CITATIONS[name] for name in names if name in CITATIONS)))
        return
    for title, entries in chosen.items():
        _show(title, ["name", "what it is", *COLUMNS[title]], [list(entry) for entry in entries])


@contextlib.contextmanager
def _begun(out: Path, resume: bool, workers: int | None, cluster: str | None):
    """JAX keeps what it compiles; results are not mixed with older ones unasked; a cluster starts, if one is wanted."""
    if not resume and any((out / "store").glob("*.parquet")):
        raise LabError(f"{out} already holds results; go on with --resume, or give another --out")
    # Decompositions of small matrices: threads of OpenBLAS would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with clusters.started(workers, cluster) as client:
        import jax

        if not getattr(jax.config, "jax_compilation_cache_dir", None):
            home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
            jax.config.update("jax_compilation_cache_dir", str(home / "cocoax"))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        yield client


def _finish(study, quiet, client, cluster, **options):
    from .lab.report.write import write_report  # here, so that what it needs is not missed after all games

    try:
        dask = client()
        if dask is not None and cluster is None:
            clusters.alike(dask, max(map(max, study.horizons.values())))
        if dask is not None and not quiet:
            print(f"cocoax: the dashboard is at {dask.dashboard_link}", file=sys.stderr)
        study.run(quiet=quiet, client=dask)
        page = write_report(study, command=shlex.join(["cocoax", *sys.argv[1:]]), client=dask, **options)
    except KeyboardInterrupt:
        print("cocoax: stopped; what was finished is kept, --resume goes on", file=sys.stderr)
        sys.exit(130)
    print(page)
    if study.refused:
        reason = next(iter(study.refused.values()))
        print(f"cocoax: {len(study.refused)} games could not be played: {reason:.200}", file=sys.stderr)


def _numbers(text):
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise LabError(f"horizons must be whole numbers from 1 on, separated by commas, got {text!r}")
    return numbers


def _names(text):
    names = [part.strip() for part in (text or "").split(",") if part.strip()]
    if text is not None and not names:
        raise LabError("learners must be names separated by commas; leave --learners out for all")
    return names or None


def _against(bound, trivial):
    return f"{bound:.3g}" if bound < trivial else f"({bound:.3g})"


def _show(title, columns, rows):
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
