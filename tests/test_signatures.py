"""Every public function and method says the types of its arguments and of what it returns."""

import importlib
import inspect
import types

import pytest

import cocoax

PACKAGES = [
    "",
    ".data",
    ".problems.real",
    ".domains",
    ".dual",
    ".lab",
    ".lab.arena",
    ".learners",
    ".primal",
    ".problem",
    ".problems",
    ".testing",
]


def missing(function):
    """The parameters without a type, and `return`."""
    signature = inspect.signature(function)
    names = {p.name for p in signature.parameters.values() if p.annotation is p.empty} - {"self", "cls"}
    untyped = signature.return_annotation is signature.empty and function.__name__ != "__init__"
    return names | {"return"} if untyped else names


def methods(cls):
    """The public methods and properties that a class of cocoax defines itself."""
    for name, member in vars(cls).items():
        member = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
        is_ours = isinstance(member, types.FunctionType) and member.__module__.startswith("cocoax.")
        if is_ours and (name == "__init__" or not name.startswith("_")):
            yield name, member


def missing_in_class(cls):
    """As `missing`, by method; a method that overrides another one takes over the types of the other's parameters."""
    for name, method in methods(cls):
        names = missing(method)
        for base in cls.__mro__[1:]:
            inherited = dict(methods(base)).get(name)
            if inherited is not None:
                names &= missing(inherited) | (names - {"return", *inspect.signature(inherited).parameters})
        if names:
            yield f"{name}: {', '.join(sorted(names))}"


def public():
    for package in PACKAGES + [f".theory{part}" for part in ("", ".constants", ".regret")]:
        module = importlib.import_module("cocoax" + package)
        for name in getattr(module, "__all__", vars(module)):
            member = getattr(module, name)
            if name[0] != "_" and getattr(member, "__module__", "").startswith("cocoax"):
                yield f"cocoax{package}.{name}", member


@pytest.mark.parametrize("member", [pytest.param(member, id=name) for name, member in public()])
def test_public_signatures_are_annotated(member):
    if inspect.isclass(member):
        assert not list(missing_in_class(member))
    elif callable(member):
        assert not missing(inspect.unwrap(member))


def test_signatures_without_types_are_found():
    class Base:
        def typed(self, x: int) -> int:
            return x

    class Derived(Base):
        def __init__(self, x):
            self.x = x

        def typed(self, x, y=2):
            return x

        def untyped(self, x: int):
            return x

    for cls in (Base, Derived):
        for _, method in inspect.getmembers(cls, inspect.isfunction):
            method.__module__ = cocoax.__name__ + ".example"
    assert list(missing_in_class(Derived)) == ["__init__: x", "typed: y", "untyped: return"]
