"""Every page, example and public name is in the site, without building it."""

import inspect
import re

import griffe
import jupytext
import nbformat
import pytest

import cocoax as cx
from docsite import ROOT, docstrings, gallery, pages, reference, runs, tutorials
from docsite import __main__ as build


def test_the_navigation_names_every_page_once():
    listed = [page for section in pages.navigation(build.all_pages()) for names in section.values() for page in names]
    assert sorted(listed) == sorted(build.all_pages())
    assert {"index.md", "changelog.md", "gallery/quickstart.md", "reference/learners.md"} <= set(listed)


def test_a_new_page_needs_no_line_in_the_configuration():
    *_, more = pages.navigation([*build.all_pages(), "new.md"])
    assert more["More"][-1] == "new.md"


def test_every_file_of_docs_and_examples_has_a_page():
    sources = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/tutorials/*.py"), *ROOT.glob("examples/*.py")]
    assert {pages.place(source.relative_to(ROOT).as_posix()) for source in sources} <= set(build.all_pages())


def test_links_that_leave_docs_are_moved():
    text = "[a](../CHANGELOG.md) [b](../examples/routing.py#x) [c](../src/cocoax/cli.py)\n```\n[d](../README.md)\n```\n"
    moved = pages.relink(text, "docs/auto.md", "auto.md")
    assert moved == "[a](changelog.md) [b](gallery/routing.md#x) c\n```\n[d](../README.md)\n```\n"


@pytest.mark.parametrize("package", reference.PACKAGES)
def test_the_reference_has_every_public_name(package):
    module = __import__("cocoax", fromlist=[package]) if not package else getattr(__import__("cocoax"), package)
    names = set(getattr(module, "__all__", [name for name in vars(module) if name.endswith(("Error", "Warning"))]))
    entries = re.findall(r"^::: (\S+)$", reference.page(package), re.MULTILINE)
    named = {entry.removeprefix("cocoax.").removeprefix(f"{package}." if package else "") for entry in entries}
    assert named == (names if package else names - set(reference.PACKAGES))


def test_every_public_name_has_a_docstring():
    assert list(reference.undocumented()) == []


def test_the_reference_shows_cost_guarantee_and_citation():
    facts = docstrings.facts_of("cocoax.primal.ofw.OFW")
    assert "**A round costs:** 1 LMO" in facts and "regret T^(3/4), proven" in facts and "Weibel" in facts
    assert docstrings.facts_of("cocoax.games.play.play") == ""
    assert docstrings.DOCTEST.sub(r"<\1>", "a\n\n>>> 1\n1\n\nb") == "a\n\n<>>> 1\n1>\n\nb"


def test_the_reference_shows_fields_with_their_comments():
    extensions = griffe.Extensions(docstrings.Docstrings())
    comparator = griffe.load("cocoax.comparators.comparator", search_paths=[ROOT / "src"], extensions=extensions)
    text = comparator["Comparator"].docstring.value
    assert "- `loss`: (T,): f_t(x*)\n" in text and "- `value`\n" in text and "```pycon\n>>> import" in text


def test_the_reference_shows_a_modules_functions_wherever_they_are_written():
    extensions = griffe.Extensions(docstrings.Docstrings())
    module = griffe.load("cocoax.theory.regret", search_paths=[ROOT / "src"], extensions=extensions)
    shown = {name for name, part in module.members.items() if part.is_public and not name.startswith("_")}
    functions = {name for name, part in vars(cx.theory.regret).items() if inspect.isfunction(part)}
    assert shown == functions - {"ftpl_constants", "kappa"}  # of `theory.constants`
    assert "```pycon" in module["mixture"].docstring.value


def test_there_are_notebooks_that_jupyter_opens():
    books = [tutorials.notebook(source) for source in tutorials.sources()]
    assert len(books) >= 3
    for book in books:
        nbformat.validate(book)
        assert nbformat.reads(nbformat.writes(book), as_version=4) == book
        assert {"markdown", "code"} <= {cell.cell_type for cell in book.cells}


def test_a_tutorial_becomes_a_page_with_its_output(tmp_path):
    source = tmp_path / "short.py"
    source.write_text("# %% [markdown]\n# # Short\n\n# %%\nprint(2)\n")
    book = jupytext.read(source, fmt="py:percent")
    book.cells[1].outputs = [nbformat.v4.new_output("stream", text="2\n")]
    assert "# Short\n\n*This page is also a [notebook](short.ipynb)." in (text := tutorials.page(source, book, {}))
    assert text.endswith("```python\nprint(2)\n```\n\n```text\n2\n```\n")


@pytest.mark.parametrize("source", gallery.examples(), ids=lambda path: path.stem)
def test_every_example_says_what_it_shows(source):
    text = gallery.page(source, {"output": "seen", "seconds": 1.0, "pictures": []})
    assert "```text\nseen\n```" in text and "import cocoax as cx" in text
    assert text.count(source.read_text()[3:60]) == 1  # its docstring, as text alone


def test_docstrings_become_text_and_links():
    given = "max <c, v> of `x < 1` and $a<b$; see docs/auto.md"
    assert pages.plain(given) == "max &lt;c, v> of `x < 1` and $a<b$; see [auto](../auto.md)"


def test_an_example_that_fails_breaks_the_build_and_one_that_ran_is_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "STAGE", tmp_path)
    monkeypatch.setattr(runs, "key_of", lambda source: str(len(source.read_text())))
    source = tmp_path / "mine.py"
    source.write_text("import pathlib; pathlib.Path('a.png').write_text('x'); print('once')")
    results, folder = gallery.run(source)
    assert results["output"] == "once\n" and results["pictures"] == ["a.png"]
    (folder / "a.png").unlink()
    assert gallery.run(source)[0] == results and not (folder / "a.png").exists()
    source.write_text("raise SystemExit('no')")
    with pytest.raises(RuntimeError, match=r"examples/mine.py failed; mend it\nno"):
        gallery.run(source)


def test_an_example_is_run_again_when_it_or_the_data_change(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    monkeypatch.setenv("COCOAX_DATA", str(tmp_path / "data"))
    source = tmp_path / "mine.py"
    source.write_text("1")
    first = runs.key_of(source)
    assert runs.key_of(source) == first
    (tmp_path / "data" / "ratings").mkdir(parents=True)
    with_data = runs.key_of(source)
    source.write_text("2")
    assert len({first, with_data, runs.key_of(source)}) == 3
