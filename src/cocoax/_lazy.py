"""Packages whose names are imported when they are first asked for."""

import ast
import importlib
import pkgutil
import sys


def attach(package: str, unlisted=()):
    """The `__getattr__`, `__dir__` and `__all__` of a package, for the names that its `__init__.pyi` imports."""
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    source = {alias.name: line.module for line in imports for alias in line.names}
    names = sorted(source.keys() - set(unlisted))

    def __getattr__(name: str):
        if name not in source:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f".{source[name] or name}", package)
        found = getattr(module, name) if source[name] else module
        setattr(sys.modules[package], name, found)  # so that it is asked for once
        return found

    def __dir__():
        return {*vars(sys.modules[package]), *names}

    return __getattr__, __dir__, names
