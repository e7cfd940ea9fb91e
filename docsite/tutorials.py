"""Tutorials: Python files with cells (`# %%`), which become a page and a notebook, both with their output."""

import base64
import copy
import json
import re
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

from . import ROOT
from .pages import outside_code, relink, title
from .runs import kept

SECONDS = 200  # that one cell may take
SITE_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)\.md(#[^)\s]*)?\)")


def sources() -> list[Path]:
    return sorted((ROOT / "docs" / "tutorials").glob("*.py"))


def notebook(source: Path) -> nbformat.NotebookNode:
    """The notebook of a tutorial, not run yet; its links lead to the site's pages."""
    book = jupytext.read(source, fmt="py:percent")
    repository, page = f"docs/tutorials/{source.name}", f"tutorials/{source.stem}.md"
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"  # the same in every build
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, repository, page)
    book.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    book.nbformat, book.nbformat_minor = 4, 5
    return book


def run(source: Path) -> nbformat.NotebookNode:
    """The notebook, with the output of every cell; raises if a cell fails."""

    def start(folder: Path) -> dict:
        book = notebook(source)
        quiet = ["--IPKernelApp.log_level=40"]
        where = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=where, extra_arguments=quiet).execute()
        nbformat.validate(book)
        return book

    results, _ = kept(source, start)
    return nbformat.reads(json.dumps(results), as_version=4)


def page(source: Path, book: nbformat.NotebookNode, pictures: dict[str, bytes]) -> str:
    """Markdown of a tutorial that was run; its pictures are added to `pictures`."""
    lines = []
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "markdown":
            lines += [cell.source, ""]
            continue
        lines += ["```python", cell.source, "```", ""]
        for output in joined(cell.outputs):
            lines += shown(output, f"{source.stem}-{number}", pictures)
    text = "\n".join(lines)
    heading = title(text)
    note = f"*This page is also a [notebook]({source.stem}.ipynb). It was run when the site was built.*"
    return text.replace(f"# {heading}\n", f"# {heading}\n\n{note}\n", 1)


def joined(outputs) -> list[nbformat.NotebookNode]:
    """Outputs, with what a cell printed in several pieces as one."""
    whole: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = whole[-1] if whole else None
        if last and output.output_type == "stream" == last.output_type and output.name == last.name:
            last.text += output.text
        else:
            whole.append(copy.deepcopy(output))
    return whole


def shown(output, name: str, pictures: dict[str, bytes]) -> list[str]:
    if output.output_type == "stream":
        return ["```text", output.text.rstrip(), "```", ""] if output.name == "stdout" else []
    data = output.get("data", {})
    if "image/png" in data:
        pictures[f"{name}.png"] = base64.b64decode(data["image/png"])
        return [f"![]({name}.png)", ""]
    if "text/plain" in data:
        return ["```text", data["text/plain"].rstrip(), "```", ""]
    return []


def write(source: Path, pages: Path) -> None:
    """Writes the page of a tutorial, its notebook and its pictures."""
    book, pictures = run(source), {}
    folder = pages / "tutorials"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{source.stem}.md").write_text(page(source, book, pictures), "utf-8")
    for name, content in pictures.items():
        (folder / name).write_bytes(content)
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = outside_code(cell.source, lambda prose: SITE_LINK.sub(r"](\1.html\2)", prose))
    nbformat.write(book, folder / f"{source.stem}.ipynb")
