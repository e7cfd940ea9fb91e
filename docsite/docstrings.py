"""Docstrings as the site shows them, with cost, guarantee and citation below: an extension of Griffe."""

import ast
import importlib
import re

import griffe

from cocoax.core.facts import DomainFacts, Facts, ProblemFacts
from cocoax.lab.citations import entries
from docsite.pages import plain

HEADINGS = {
    Facts: ("A round costs", "Guarantee"),
    DomainFacts: ("An LMO costs", "Runs"),
    ProblemFacts: ("Domain", "What it is for"),
}
COMMENT = re.compile(r"""^(?:'[^']*'|"[^"]*"|[^#'"])*  # (.+)$""")
DOCTEST = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)


def facts_of(path: str) -> str:
    """Markdown with the facts of a class or function, by its canonical path; empty if it has none."""
    module, _, name = path.rpartition(".")
    try:
        part = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return ""
    facts = vars(part).get("facts") if hasattr(part, "__dict__") else None
    if facts is None or type(facts) not in HEADINGS:
        return ""
    lines = [f"- **{heading}:** {text}" for heading, text in zip(HEADINGS[type(facts)], facts.columns())]
    if isinstance(facts, Facts):
        lines += [f"- **Cite:** {reference(key)}" for key in facts.cites]
    return "\n".join(lines)


def reference(key: str) -> str:
    """Authors, title and year of an entry of references.bib, in one line."""
    found = dict(re.findall(r"^  (\w+) *= \{(.*)\},?$", entries()[key], re.MULTILINE))
    names = [name.split(",")[0].strip("{} ") for name in found.get("author", "").split(" and ") if name]
    who = f"{', '.join(names)} ({found.get('year', 'no year')}). " if names else ""
    where = found.get("journal") or found.get("booktitle") or found.get("note") or ""
    return re.sub(r"[{}\\]", "", f"{who}*{found['title']}*. {where}".strip()) + f" (`{key}`)"


class Docstrings(griffe.Extension):
    """Makes docstrings Markdown as they are collected: doctests become blocks of code; fields and facts are added."""

    def on_instance(self, *, obj: griffe.Object, **kwargs) -> None:
        if obj.docstring:
            text = plain(DOCTEST.sub(r"```pycon\n\1\n```", obj.docstring.value.rstrip()))
            obj.docstring.value = f"{text}\n\n{facts_of(obj.path) if obj.is_function else ''}"

    def on_class_members(self, *, cls: griffe.Class, **kwargs) -> None:
        if cls.docstring:
            cls.docstring.value += f"\n\n{fields_of(cls)}\n\n{facts_of(cls.path)}"

    def on_alias_instance(self, *, node: ast.AST | griffe.ObjectNode, alias: griffe.Alias, **kwargs) -> None:
        """`from .experts import mixture as mixture`: the name stands on the page of the module that says so."""
        module = alias.parent
        if isinstance(node, ast.ImportFrom) and module and getattr(module.filepath, "suffix", "") == ".py":
            alias.public = any(one.asname == one.name == alias.name for one in node.names) or None


def fields_of(cls: griffe.Class) -> str:
    """Markdown with the public fields of a class, and the comments behind them; empty if none has a comment."""
    lines, has_comments = [], False
    for name, field in cls.members.items():
        if not (isinstance(field, griffe.Attribute) and field.annotation and field.lines) or name.startswith("_"):
            continue
        if "ClassVar" in str(field.annotation):
            continue
        comment = COMMENT.match(field.lines[-1])
        has_comments |= comment is not None
        lines.append(f"- `{name}`: {plain(comment[1])}" if comment else f"- `{name}`")
    return "**Fields:**\n\n" + "\n".join(lines) if has_comments else ""
