"""What a function of a user refers to: globals, closures, and members of the user's own modules."""

import dis
import importlib
import sys
import sysconfig
import types
from typing import Any, NamedTuple

import jax
import numpy as np

_STANDARD = sysconfig.get_paths()["stdlib"]


def is_installed(name: str) -> bool:
    """Whether a module is installed, so that its code changes only with its version."""
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return name.split(".")[0] in ("cocoax", "builtins") or "site-packages" in path or path.startswith(_STANDARD)


def cells(function: types.FunctionType) -> list:
    """What the closure of a function holds."""
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not filled yet
            values.append(None)
    return values


def referred(function: types.FunctionType) -> dict[str, Any]:
    """The globals that a function's code names, inner functions included, in that order; of a user's own modules, those
    that could be meant: `package.module.NAME` and `getattr(module, "NAME")` too, or all if the name is computed."""
    names, attributes, texts, modules, codes = {}, set(), set(), {}, [function.__code__]
    while codes:
        code = codes.pop()
        steps = list(dis.get_instructions(code))
        names |= {step.argval: None for step in steps if step.opname in _LOADS}
        attributes |= set(code.co_names)
        texts |= {constant for constant in code.co_consts if isinstance(constant, str)}
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        modules |= dict(_imported(steps, function.__globals__))
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    computed = texts if _LOOK_UP & attributes else None
    waiting = [*used.items(), *modules.items(), *zip(function.__code__.co_freevars, cells(function))]
    for name, value in waiting:  # which grows
        if isinstance(value, types.ModuleType) and not is_installed(value.__name__) and len(waiting) < _MOST:
            members = vars(value)
            chosen = attributes & members.keys()
            if computed is not None:
                telling = {inner for inner in members if tells(inner, members[inner])}
                chosen |= computed & members.keys() or telling
            found = {f"{name}.{inner}": members[inner] for inner in sorted(chosen) if members[inner] is not value}
            waiting += [item for item in found.items() if item[0] not in used]
            used |= found
    return used


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_LOOK_UP = {"getattr", "vars", "attrgetter", "__dict__"}  # which reach members by texts
_MOST = 1000  # modules that name each other in a circle end here


def _imported(steps, namespace):
    """The user's own modules that a function imports itself."""
    for level, step in zip(steps, steps[2:]):  # the level, then the names, then the module
        if step.opname != "IMPORT_NAME":
            continue
        relative = "." * (level.argval if isinstance(level.argval, int) else 0) + step.argval
        try:
            module = importlib.import_module(relative, namespace.get("__package__"))
        except Exception:  # of any kind: it is the user's module
            continue
        yield f"import {relative}", module


def tells(name: str, value: Any) -> bool:
    """Whether an attribute of a class determines what the class does."""
    return _is_code(value) or (not name.startswith("__") and isinstance(value, _DATA))


_DATA = (
    int | float | complex | str | bytes | tuple | list | dict | set | frozenset | np.ndarray | np.generic | jax.Array
)


def _is_code(value) -> bool:
    return isinstance(value, types.FunctionType | property | staticmethod | classmethod) or callable(
        getattr(value, "__wrapped__", None)
    )


class NamelessCode(NamedTuple):
    """Code whose globals have numbers in place of names."""

    co_code: bytes
    co_names: tuple[str, ...]
    co_varnames: tuple[str, ...]
    co_consts: tuple


def nameless_code(code: types.CodeType, used: dict[str, Any]) -> NamelessCode:
    """The code with the places in `used` instead of the names of globals; a name that is an attribute too stays."""
    places = {name: f"global {place}" for place, name in enumerate(used)}
    steps = [step for step in dis.get_instructions(code) if step.opcode in dis.hasname]
    attributes = {step.argval for step in steps if step.opname not in _LOADS}
    names = tuple(name if name in attributes else places.get(name, name) for name in code.co_names)
    inner = (nameless_code(one, used) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return NamelessCode(code.co_code, names, code.co_varnames, tuple(inner))


def nameless(used: dict[str, Any]) -> list:
    """The values in `used`, in order; those that a module has, with the name that they have there."""
    return [(name.rpartition(".")[2], value) if "." in name else value for name, value in used.items()]
