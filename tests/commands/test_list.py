"""`cocoax list`, `--version` and what to cite."""

import re
import tomllib
from pathlib import Path

import pytest
from cli_tools import refused, run

import cocoax as cx
from cocoax.lab import catalogue, plain_math
from cocoax.lab.citations import CITATIONS, OWN

ROOT = Path(__file__).parents[2]


def test_version():
    answer = run("--version")
    assert answer.status == 0 and answer.out == f"cocoax {cx.__version__}\n"


@pytest.mark.parametrize("kind", ["domain", "primal", "dual", "learner", "baseline", "problem"])
def test_a_kind_is_named_in_the_singular_or_the_plural(kind):
    one, many = run("list", kind), run("list", f"{kind}s")
    assert one.status == 0 and one.out == many.out != ""


def test_formulas_are_readable_in_a_terminal():
    summaries = [entry.summary for entries in catalogue.catalogue().values() for entry in entries]
    commands = {name for text in summaries for name in re.findall(r"\\([A-Za-z]+)", text)}
    assert commands - {"frac"} <= plain_math._SYMBOLS.keys() and len(commands) > 20
    assert not any(set(r"\$") & set(plain_math.plain(text)) for text in summaries)
    assert "½" in run("list", "problems").out


def test_entries_are_picked_by_name():
    answer = run("list", "--cite", "OCG", "PDMFW", "cocoax")
    assert answer.out.strip() == "\n\n".join([CITATIONS["OCG"], CITATIONS["PDMFW"], OWN])
    assert run("list", "--cite", "ocg").out.strip() == CITATIONS["OCG"]
    of_duals = run("list", "duals", "--cite").out
    assert CITATIONS["RobustPI"] in of_duals and CITATIONS["OCG"] not in of_duals
    everything = run("list", "--cite").out
    assert all(entry in everything for entry in (OWN, *CITATIONS.values()))
    refused(run("list", "--cite", "OCGG"), "did you mean 'OCG'?")


def test_cocoax_can_be_cited():
    """The BibTeX entry and CITATION.cff are complete, and of this version."""
    assert all(f"\n  {field} " in OWN for field in ("title", "author", "year", "version", "note"))
    assert f"version = {{{cx.__version__}}}" in OWN
    cff = (ROOT / "CITATION.cff").read_text("utf-8")
    fields = dict(re.findall(r"^([\w-]+): *(.+)$", cff, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert fields["cff-version"] == "1.2.0" and fields["type"] == "software" and "authors:\n  - name: " in cff
    assert fields["version"] == cx.__version__ and fields["license"] == project["license"]
    assert (
        fields["title"].strip('"') in OWN and re.findall(r"^  - ([^:\n]+)$", cff, re.MULTILINE) == project["keywords"]
    )
