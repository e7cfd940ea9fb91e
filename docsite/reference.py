"""The API reference: a page for each package, with every public name."""

import importlib
import inspect
import types
from collections.abc import Iterator

import cocoax

from .pages import plain

INTRODUCED = {
    "": "The names that `import cocoax as cx` gives: problems, games, comparators and sessions.",
    "domains": "Sets of decisions, each with its linear minimisation oracle (LMO). [A table of all](../domains.md).",
    "learners": "What `cx.play` plays. [Which one?](../which_learner.md)",
    "baselines": "Published methods to compare with. `cx.play` plays them as it plays learners.",
    "primal": "How a decision moves: the primal half of `cx.learners.PrimalDual` and `cx.learners.Blocks`.",
    "dual": "How much a constraint weighs: the dual half of `cx.learners.PrimalDual`.",
    "problems": "Ready problems with their rounds: functions of a key that return an `Instance`.",
    "theory": "Rates, parameters, and every bound as a number. [The bounds in words](../theory.md).",
    "testing": "The contracts that all parts keep, for [parts of your own](../guides/own_parts.md).",
    "lab": 'Studies, reports and the arena ([how it works](../lab.md)). Needs `pip install "cocoax[lab]"`.',
    "errors": "What cocoax raises: subclasses of `CocoaxError`. Every message is one sentence that says what to do.",
}
PACKAGES = list(INTRODUCED) + [
    name
    for name in vars(cocoax)["__all__"]
    if isinstance(getattr(cocoax, name), types.ModuleType) and name not in INTRODUCED
]


def public_names(package: str) -> dict[str, object]:
    """The public parts of a package, in the order of the alphabet; without the packages that have their own page."""
    module = importlib.import_module(f"cocoax.{package}" if package else "cocoax")
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, part in vars(module).items() if getattr(part, "__module__", "") == module.__name__]
    parts = {name: getattr(module, name) for name in sorted(names, key=str.lower) if not name.startswith("_")}
    return {name: part for name, part in parts.items() if not (not package and isinstance(part, types.ModuleType))}


def undocumented() -> Iterator[str]:
    """Public names, and public methods and functions of what they name, that have no docstring."""
    for package in PACKAGES:
        for name, part in public_names(package).items():
            name = f"{package}.{name}" if package else name
            documented = isinstance(part, type | types.FunctionType | types.ModuleType)
            if documented and not (vars(part).get("__doc__") if isinstance(part, type) else inspect.getdoc(part)):
                yield name
            if isinstance(part, type | types.ModuleType):
                yield from (f"{name}.{member}" for member in without_docstring(part))


def without_docstring(part) -> Iterator[str]:
    """The functions of a module, or the methods and properties of a class, that nobody documents."""
    for name, member in vars(part).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name.startswith("_") or not isinstance(function, types.FunctionType):
            continue
        bases = part.__mro__[1:] if isinstance(part, type) else ()
        inherited = any(getattr(getattr(base, name, None), "__doc__", None) for base in bases)
        if not (function.__doc__ or inherited):
            yield name


def pages() -> dict[str, str]:
    """Markdown of all pages of the reference, by name."""
    return {page_of(package): page(package) for package in PACKAGES}


def page_of(package: str) -> str:
    return f"reference/{package or 'index'}.md"


def page(package: str) -> str:
    prefix = f"cocoax.{package}" if package else "cocoax"
    parts = public_names(package)
    lines = [f"# {prefix if package else 'cocoax: the top level'}", "", introduction(package), ""]
    if not package:
        rows = ", ".join(f"[`cocoax.{name}`]({name}.md)" for name in PACKAGES if name)
        lines += [f"Its packages have pages of their own: {rows}.", "", f"Version {cocoax.__version__}.", ""]
    lines += ["| name | |", "| --- | --- |"]
    lines += [f"| [`{name}`](#{prefix}.{name}) | {summary(part)} |" for name, part in parts.items()]
    for name in parts:
        lines += ["", f"::: {prefix}.{name}"]
    return "\n".join(lines) + "\n"


def introduction(package: str) -> str:
    return INTRODUCED.get(package) or summary(getattr(cocoax, package))


def summary(part) -> str:
    """The first sentence of a docstring, short enough for a table."""
    if not isinstance(part, type | types.FunctionType | types.ModuleType):
        return "A constant."
    first = " ".join((inspect.getdoc(part) or "").split("\n\n")[0].split())
    return plain(first).replace("|", r"\|")
