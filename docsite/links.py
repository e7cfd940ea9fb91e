"""Links of the built site lead to files and headings that exist, and nothing is fetched from a network."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class _Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, bool]] = []  # an address, and whether a browser fetches it by itself
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value for name, value in attrs if value}
        self.ids |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append((attributes["href"], False))
        address = attributes.get(FETCHED.get(tag, ""))
        if address and attributes.get("rel") not in ("canonical", "prev", "next"):
            self.links.append((address, True))


def broken(site: Path) -> Iterator[str]:
    """One sentence for each link that leads nowhere."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site).as_posix()
        for address, fetched in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if fetched and parts.scheme != "data":
                    yield f"{where} fetches {address} from a network"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{where} links to {address}, which does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids | {"__top"}:
                yield f"{where} links to {address}, a page without that heading"
