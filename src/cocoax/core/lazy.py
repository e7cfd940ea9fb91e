"""Packages that import a public name when it is first used."""

import ast
import importlib
import pkgutil
import sys


def attach(package: str, unlisted=(), extra: str | None = None):
    """`__getattr__`, `__dir__` and `__all__` of a package, for the names that its `__init__.pyi` imports.

    `unlisted` names are importable but not in `__all__`. `extra` is the extra of cocoax that the package needs: a
    missing dependency is reported with the command that installs it.
    """
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    module_of = {alias.name: "." * line.level + (line.module or "") for line in imports for alias in line.names}
    names = sorted(module_of.keys() - set(unlisted))

    def __getattr__(name: str):
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = _load(package, module_of[name], name)
        except ModuleNotFoundError as error:
            if extra is None or (error.name or "").startswith("cocoax"):
                raise
            install = f'pip install "cocoax[{extra}]"'
            raise ModuleNotFoundError(f"{error.name} is missing; {package} needs it: {install}") from None
        setattr(sys.modules[package], name, value)  # the next access finds it without `__getattr__`
        return value

    def __dir__():
        return {*vars(sys.modules[package]), *names}

    return __getattr__, __dir__, names


def _load(package, module, name):
    """What `from .module import name` gives: an attribute, or a submodule."""
    parent = importlib.import_module(module, package)
    if module.strip(".") and hasattr(parent, name):
        return getattr(parent, name)
    return importlib.import_module(f"{parent.__name__}.{name}")
