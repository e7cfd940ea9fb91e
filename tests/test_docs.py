"""Links between the pages lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def anchors(page):
    """Those that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith("http"):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_scores_of_the_arena_of_2026_in_the_readme_are_those_of_its_page():
    def rows(text):
        cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
        return {row[0]: [re.sub(r" \(-?[\d.].*\)$", "", cell) for cell in row] for row in cells}

    readme = (ROOT / "README.md").read_text().split("### On real data")[1].split("\n## ")[0]
    page = (ROOT / "docs" / "real_data.md").read_text().split("## The arena of 2026")[1]
    assert len(rows(readme)) == 18 and rows(readme) == {
        name: row for name, row in rows(page).items() if name in rows(readme)
    }
