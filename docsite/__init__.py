"""The documentation site: `make docs` runs `python -m docsite`, which writes `site/`.

Pages come from `docs/`, from `examples/` and `docs/tutorials/` (run, with their output), and from the docstrings of all
public names. A failing example, a broken link or a public name without a docstring breaks the build.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
STAGE = ROOT / "out" / "docs"  # what Zensical reads, and what runs have left
SITE = ROOT / "site"
