"""A hash of objects by their numbers, structure and code: the key of stored results."""

import dis
import functools
import hashlib
import importlib
import sys
import sysconfig
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import LabError
from .former_names import former_fields, former_module, former_name

_STANDARD = sysconfig.get_paths()["stdlib"]


def fingerprint(*parts: Any, code: bool = True) -> str:
    """32 hexadecimal digits. Equal for equal numbers, structures and code, in every process.

    Functions are hashed by their bytecode, constants, defaults, closures and the globals that they name; classes by
    their methods: a comment changes nothing, a number does. Installed code (cocoax, JAX, NumPy, ...) is hashed by its
    name only, so add the version of cocoax to the parts. Bytecode depends on the version of Python: `code=False` leaves
    it out, and a function is hashed by its names, constants and what it refers to.
    """
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, parts, {}, code)
    return digest.hexdigest()


def _feed(digest, part, seen, code):
    if isinstance(part, types.FunctionType | type):  # they may refer to themselves
        if id(part) in seen:
            digest.update(f"again {seen[id(part)]};".encode())
            return
        seen[id(part)] = len(seen)

    def feed(name, *inner):
        digest.update(f"{name}:{len(inner)};".encode())
        for item in inner:
            _feed(digest, item, seen, code)

    match part:
        case None | bool() | int() | float() | complex() | str() | bytes():
            digest.update(f"{type(part).__name__}={part!r};".encode())
        case jax.Array() if jnp.issubdtype(part.dtype, jax.dtypes.prng_key):
            feed("key", np.asarray(jax.random.key_data(part)))
        case np.ndarray() | jax.Array() | np.generic():
            array = np.asarray(part)
            digest.update(f"array {array.dtype} {array.shape};".encode() + array.tobytes())
        case dict():
            feed("dict", *(item for key in sorted(part, key=repr) for item in (key, part[key])))
        case list() | tuple() | range() | set() | frozenset():
            feed("list", *(sorted(part, key=repr) if isinstance(part, set | frozenset) else part))
        case types.FunctionType() if _installed(part):
            digest.update(f"{former_name(part)};".encode())
            feed("closure", *_cells(part))
        case types.FunctionType():
            defaults = part.__defaults__, part.__kwdefaults__
            feed(f"function {part.__qualname__}", part.__code__, *defaults, _cells(part), _globals(part))
        case types.CodeType():
            feed("code", part.co_code if code else b"", part.co_names, part.co_varnames, part.co_consts)
        case types.MethodType():
            feed("method", part.__self__, part.__func__)
        case functools.partial():
            feed("partial", part.func, part.args, part.keywords)
        case types.ModuleType():
            digest.update(f"module {former_module(part.__name__)};".encode())
        case types.BuiltinFunctionType():
            feed(f"built in {part.__qualname__}", getattr(part, "__self__", None))
        case np.ufunc():
            digest.update(f"ufunc {part.__name__};".encode())
        case property() | staticmethod() | classmethod():
            feed(type(part).__name__, getattr(part, "fget", None) or getattr(part, "__func__", None))
        case type():
            own = {} if _installed(part) else {name: value for name, value in vars(part).items() if _tells(name, value)}
            feed(f"class {former_name(part)}", own, *(part.__bases__ if own else ()))
        case _ if hasattr(part, "__fingerprint__"):  # objects that also hold caches or counters
            feed(type(part).__qualname__, part.__fingerprint__())
        case _ if callable(getattr(part, "__wrapped__", None)):  # jax.jit and its like
            feed("wrapped", part.__wrapped__)
        case _ if hasattr(part, "__dict__"):
            feed("object", type(part), former_fields(part))
        case _ if _installed(type(part)) and " at 0x" not in repr(part):
            digest.update(f"{type(part).__qualname__} {part!r};".encode())
        case _:
            raise LabError(
                f"a {type(part).__name__} cannot be hashed, so results would be stored under the wrong name; give "
                "numbers, arrays, functions and modules made of them"
            )


def _installed(part) -> bool:
    """Whether it belongs to an installed package, whose code changes only with its version."""
    return _is_installed(getattr(part, "__module__", None) or "")


def _is_installed(name) -> bool:
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return name.split(".")[0] in ("cocoax", "builtins") or "site-packages" in path or path.startswith(_STANDARD)


def _cells(function):
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not filled yet
            cells.append(None)
    return cells


def _globals(function):
    """The values of the globals that a function's code names, inner functions included; of a user's own modules, those
    that could be meant: `package.module.NAME` and `getattr(module, "NAME")` too, or all if the name is computed."""
    names, attributes, texts, modules, codes = set(), set(), set(), {}, [function.__code__]
    while codes:
        code = codes.pop()
        steps = list(dis.get_instructions(code))
        names |= {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        attributes |= set(code.co_names)
        texts |= {constant for constant in code.co_consts if isinstance(constant, str)}
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        modules |= dict(_imported(steps, function.__globals__))
    used = {name: function.__globals__[name] for name in sorted(names & function.__globals__.keys())}
    computed = texts if _LOOK_UP & attributes else None
    waiting = [*used.items(), *modules.items(), *zip(function.__code__.co_freevars, _cells(function))]
    for name, value in waiting:  # which grows
        if isinstance(value, types.ModuleType) and not _is_installed(value.__name__) and len(waiting) < _MOST:
            members = vars(value)
            chosen = attributes & members.keys()
            if computed is not None:
                telling = {inner for inner in members if _tells(inner, members[inner])}
                chosen |= computed & members.keys() or telling
            found = {f"{name}.{inner}": members[inner] for inner in sorted(chosen) if members[inner] is not value}
            waiting += [item for item in found.items() if item[0] not in used]
            used |= found
    return used


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


def _tells(name, value) -> bool:
    """Whether an attribute of a class determines what the class does."""
    return _is_code(value) or (not name.startswith("__") and isinstance(value, _DATA))


_DATA = (
    int | float | complex | str | bytes | tuple | list | dict | set | frozenset | np.ndarray | np.generic | jax.Array
)


def _is_code(value) -> bool:
    return isinstance(value, types.FunctionType | property | staticmethod | classmethod) or callable(
        getattr(value, "__wrapped__", None)
    )
