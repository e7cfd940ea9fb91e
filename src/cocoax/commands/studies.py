"""A study that a command plays, from its folder to its report."""

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from ..errors import LabError
from ..lab.run import cluster as clusters


class Options(NamedTuple):
    """How a command plays its study."""

    out: Path
    resume: bool
    quiet: bool
    workers: int | None
    cluster: str | None
    certify: bool


@contextlib.contextmanager
def begun(options: Options):
    """JAX keeps what it compiles; results are not mixed with older ones unasked; a cluster starts, if one is wanted."""
    if not options.resume and any((options.out / "store").glob("*.parquet")):
        raise LabError(f"{options.out} already holds results; go on with --resume, or give another --out")
    # Decompositions of small matrices: threads of OpenBLAS would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with clusters.started(options.workers, options.cluster) as client:
        from ..core.compilation_cache import use_compilation_cache

        use_compilation_cache()
        yield client


def typed() -> str:
    """The command as it was typed."""
    return shlex.join(["cocoax", *sys.argv[1:]])


def finish(study, options: Options, client, *, tables=None, **report):
    """Play the study, and write its report, with the tables that are made of the study then."""
    from ..lab.report.write import write_report  # here, so that what it needs is not missed after all games

    study.certify = options.certify
    try:
        dask = client()
        if dask is not None and not options.quiet:
            print(f"cocoax: the dashboard is at {dask.dashboard_link}", file=sys.stderr)
        study.run(quiet=options.quiet, client=dask)
        made = {} if tables is None else tables(study)
        page = write_report(study, command=typed(), client=dask, tables=made, **report)
    except KeyboardInterrupt:
        print("cocoax: stopped; what was finished is kept, --resume goes on", file=sys.stderr)
        sys.exit(130)
    print(page)
    if study.refused:
        reason = next(iter(study.refused.values()))
        print(f"cocoax: {len(study.refused)} games could not be played: {reason:.200}", file=sys.stderr)
