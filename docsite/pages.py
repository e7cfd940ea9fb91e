"""Pages of the repository as pages of the site, and the navigation between them."""

import os
import re
from pathlib import Path, PurePosixPath

import yaml

from . import ROOT

OUTSIDE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
GENERATED = ("tutorials/", "gallery/", "reference/")
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def written_pages() -> dict[str, Path]:
    """Markdown files of the repository by the names that they have in the site."""
    docs = ROOT / "docs"
    inside = {path.relative_to(docs).as_posix(): path for path in docs.rglob("*.md")}
    return inside | {name: ROOT / source for source, name in OUTSIDE.items() if source != "README.md"}


def place(source: str) -> str | None:
    """The page, or the file of the site, that shows a file of the repository; None if there is none."""
    parts = PurePosixPath(source).parts
    if source in OUTSIDE:
        return OUTSIDE[source]
    if parts[:1] == ("examples",) and len(parts) == 2 and source.endswith(".py"):
        return f"gallery/{PurePosixPath(source).stem}.md"
    if parts[:2] == ("docs", "tutorials") and source.endswith(".py"):
        return f"tutorials/{PurePosixPath(source).stem}.md"
    return "/".join(parts[1:]) if parts[:1] == ("docs",) else None


def relink(text: str, source: str, page: str) -> str:
    """Links of a Markdown file of the repository, as they must be in the site; files that it lacks lose their link."""

    def moved(match: re.Match) -> str:
        picture, label, link = match.groups()
        if re.match(r"[a-z]+:|#", link):
            return match[0]
        path, _, anchor = link.partition("#")
        target = os.path.normpath(PurePosixPath(source).parent / path)
        found = place(target)
        if found is None:
            return label
        relative = os.path.relpath(found, PurePosixPath(page).parent)
        return f"{picture}[{label}]({relative}{'#' + anchor if anchor else ''})"

    return outside_code(text, lambda prose: LINK.sub(moved, prose))


def outside_code(text: str, change) -> str:
    """Markdown, changed everywhere but in blocks of code."""
    parts, end = [], 0
    for block in FENCE.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def plain(text: str) -> str:
    """Text of a docstring as Markdown: <a, b> is no tag, and pages of docs/ are links (from a folder of the site)."""
    pieces = re.split(r"(```.*?```|`[^`]*`|\$[^$]*\$)", text, flags=re.DOTALL)
    prose = [re.sub(r"\bdocs/(\w+)\.md", r"[\1](../\1.md)", piece.replace("<", "&lt;")) for piece in pieces[::2]]
    return "".join(part for pair in zip(prose, [*pieces[1::2], ""]) for part in pair)


def title(text: str) -> str:
    heading = re.search(r"^# (.+)", text, re.MULTILINE)
    if heading is None:
        raise ValueError("a page has no heading; begin it with '# '")
    return re.sub(r"[`*]", "", heading[1])


def configuration() -> tuple[str, list]:
    """The text of mkdocs.yml before its navigation, and the navigation."""
    head, _, tail = (ROOT / "docsite" / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    return head, yaml.safe_load("nav:\n" + tail)["nav"]


def navigation(pages: list[str]) -> list:
    """The navigation of mkdocs.yml, complete: every page stands in it, in the order of `pages` where it has none."""
    _, sections = configuration()
    listed = {name for section in sections for names in section.values() for name in names}
    missing = listed - set(pages) - set(GENERATED)
    if missing:
        raise ValueError(f"docsite/mkdocs.yml names {sorted(missing)[0]}, which does not exist; mend its nav")
    complete = []
    for section in sections:
        ((heading, names),) = section.items()
        entries = []
        for name in names:
            folder = name.endswith("/")
            entries += [page for page in pages if page.startswith(name) and page not in listed] if folder else [name]
        if heading == "More":
            entries += [page for page in pages if page not in listed and not page.startswith(GENERATED)]
        complete.append({heading: entries})
    return complete
