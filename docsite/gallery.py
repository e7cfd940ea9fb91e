"""The gallery: every file of examples/, run when the site is built, with its output and its picture."""

import ast
import html
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import ROOT
from .pages import plain
from .runs import kept

SECONDS = 240  # that one example may take


def examples() -> list[Path]:
    """Quickstart first, the others by name."""
    return sorted((ROOT / "examples").glob("*.py"), key=lambda path: (path.stem != "quickstart", path.stem))


def run(source: Path) -> tuple[dict, Path]:
    """Output, seconds and pictures of an example, and the folder of the pictures; raises if it fails."""

    def start(folder: Path) -> dict:
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, str(source)], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
        if done.returncode:
            raise RuntimeError(f"examples/{source.name} failed; mend it\n{done.stderr[-3000:]}")
        pictures = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
        return {"output": done.stdout, "seconds": round(time.monotonic() - began, 1), "pictures": pictures}

    return kept(source, start)


def described(source: Path) -> tuple[str, str]:
    """The title, made of the file's name, and the docstring."""
    docstring = ast.get_docstring(ast.parse(source.read_text("utf-8")))
    if not docstring:
        raise ValueError(f"examples/{source.name} has no docstring; say in one what it shows")
    return source.stem.replace("_", " ").capitalize().replace("Llm", "LLM"), docstring


def page(source: Path, results: dict) -> str:
    name, docstring = described(source)
    lines = [f"# {name}", "", plain(docstring), ""]
    lines += [f"![{name}]({picture_name(source, picture)})\n" for picture in results["pictures"]]
    if results["output"].strip():
        lines += ["```text", results["output"].rstrip(), "```", ""]
    lines += [f"`python examples/{source.name}`, {results['seconds']} s when this site was built, compiling included."]
    return "\n".join([*lines, "", "```python", code(source), "```", ""])


def code(source: Path) -> str:
    """An example without its docstring, which the page shows as text."""
    text = source.read_text("utf-8")
    return "\n".join(text.splitlines()[ast.parse(text).body[0].end_lineno :]).strip()


def picture_name(source: Path, picture: str) -> str:
    return f"{source.stem}-{Path(picture).name}"


def write(source: Path, pages: Path) -> dict:
    """Writes the page of an example and its pictures; returns what the overview needs."""
    results, folder = run(source)
    (pages / "gallery").mkdir(parents=True, exist_ok=True)
    (pages / "gallery" / f"{source.stem}.md").write_text(page(source, results), "utf-8")
    for picture in results["pictures"]:
        shutil.copy(folder / picture, pages / "gallery" / picture_name(source, picture))
    return results


def overview(results: dict[Path, dict]) -> str:
    """A card for each example."""
    cards = []
    for source, found in results.items():
        name, docstring = described(source)
        picture = f'<img src="{picture_name(source, found["pictures"][0])}" alt="">' if found["pictures"] else ""
        text = html.escape(re.sub(r"^[^:.]{1,24}: ", "", " ".join(docstring.split("\n\n")[0].split())))
        text = text[0].upper() + text[1:]
        cards.append(f'<a href="{source.stem}.html">{picture}<b>{name}</b><span>{text}</span></a>')
    intro = "Every example is run when this site is built: output and pictures are what the code below them gave."
    return "\n".join(["# Gallery", "", intro, "", '<div class="gallery">', *cards, "</div>", ""])
