"""Builds the site; any fault is told, and ends the build."""

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import yaml

from . import ROOT, SITE, STAGE, gallery, pages, reference, tutorials

FOLDER = STAGE / "pages"
FETCHED = re.compile(
    r'<(?:img|script|iframe|source|video)\b[^>]*\bsrc="(?:https?:)?//|<link\b[^>]*stylesheet[^>]*"(?:https?:)?//'
)


def stage() -> None:
    """Writes all that Zensical reads; runs what has not been run since it changed."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(ROOT / "docs", FOLDER, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copytree(ROOT / "docsite" / "assets", FOLDER / "assets")
    for page, source in pages.written_pages().items():
        text = pages.relink(source.read_text("utf-8"), source.relative_to(ROOT).as_posix(), page)
        (FOLDER / page).write_text(text, "utf-8")
    (FOLDER / "reference").mkdir()
    for page, text in reference.pages().items():
        (FOLDER / page).write_text(text, "utf-8")
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        shown = {source: executor.submit(gallery.write, source, FOLDER) for source in gallery.examples()}
        written = [executor.submit(tutorials.write, source, FOLDER) for source in tutorials.sources()]
        (FOLDER / "gallery").mkdir(exist_ok=True)
        overview = gallery.overview({source: run.result() for source, run in shown.items()})
        (FOLDER / "gallery" / "index.md").write_text(overview, "utf-8")
        for run in written:
            run.result()
    head, _ = pages.configuration()
    nav = yaml.safe_dump(pages.navigation(all_pages()), sort_keys=False, allow_unicode=True)
    (STAGE / "mkdocs.yml").write_text(f"{head}\nnav:\n{nav}", "utf-8")


def all_pages() -> list[str]:
    """Every page of the site, the generated ones in their order."""
    made = [f"tutorials/{source.stem}.md" for source in tutorials.sources()]
    made += ["gallery/index.md", *(f"gallery/{source.stem}.md" for source in gallery.examples())]
    return [*sorted(pages.written_pages()), *made, *reference.pages()]


def main() -> None:
    began = time.monotonic()
    without = list(reference.undocumented())
    if without:
        sys.exit(f"public names without a docstring: {', '.join(without)}")
    stage()
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])  # for docsite/docstrings.py, which it loads
    zensical = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(STAGE / "mkdocs.yml")],
        cwd=STAGE,
        env=os.environ | {"PYTHONPATH": path},
    )
    if zensical.returncode:
        sys.exit("Zensical found faults; they stand above")
    (STAGE / "site" / "404.html").unlink(missing_ok=True)  # for servers: its links do not work from a file
    online = [page.name for page in (STAGE / "site").rglob("*.html") if FETCHED.search(page.read_text("utf-8"))]
    if online:
        sys.exit(f"these pages fetch something from a network: {', '.join(online)}")
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(STAGE / "site", SITE)
    print(f"wrote {SITE / 'index.html'} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
