"""A hash of objects by their numbers, structure and code: the key of stored results."""

import collections
import functools
import hashlib
import logging
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import LabError
from .former_names import former_fields, former_module, former_name
from .referred import NamelessCode, cells, is_installed, nameless, nameless_code, referred, tells


class _How(NamedTuple):
    code: bool
    names: bool


def fingerprint(*parts: Any, code: bool = True, names: bool = True) -> str:
    """32 hexadecimal digits. Equal for equal numbers, structures and code, in every process.

    Functions are hashed by their bytecode, constants, defaults, closures and the globals that they name; classes by
    their methods: a comment changes nothing, a number does. Installed code (cocoax, JAX, NumPy, ...) is hashed by its
    name only, so add the version of cocoax to the parts. Bytecode depends on the version of Python: `code=False` leaves
    it out, and a function is hashed by its names, constants and what it refers to. `names=False` leaves out what the
    user's own functions, classes and modules are called and where they are: the same code under another name is equal.
    Names of attributes, fields and parameters always count.
    """
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, parts, {}, _How(code, names))
    return digest.hexdigest()


def _feed(digest, part, seen, how):
    if isinstance(part, types.FunctionType | type):  # they may refer to themselves
        if id(part) in seen:
            digest.update(f"again {seen[id(part)]};".encode())
            return
        seen[id(part)] = len(seen)

    def feed(name, *inner):
        digest.update(f"{name}:{len(inner)};".encode())
        for item in inner:
            _feed(digest, item, seen, how)

    match part:
        case None | bool() | int() | float() | complex() | str() | bytes():
            digest.update(f"{type(part).__name__}={part!r};".encode())
        case jax.Array() if jnp.issubdtype(part.dtype, jax.dtypes.prng_key):
            feed("key", np.asarray(jax.random.key_data(part)))
        case np.ndarray() | jax.Array() | np.generic():
            array = np.asarray(part)
            digest.update(f"array {array.dtype} {array.shape};".encode() + array.tobytes())
        case dict():
            factory = [part.default_factory] if isinstance(part, collections.defaultdict) else []
            feed("dict", *(item for key in sorted(part, key=repr) for item in (key, part[key])), *factory)
        case types.CodeType() | NamelessCode():
            feed("code", part.co_code if how.code else b"", part.co_names, part.co_varnames, part.co_consts)
        case list() | tuple() | range() | set() | frozenset():
            feed("list", *(sorted(part, key=repr) if isinstance(part, set | frozenset) else part))
        case types.FunctionType() if _installed(part):
            digest.update(f"{former_name(part)};".encode())
            feed("closure", *cells(part))
        case types.FunctionType():
            defaults, used = (part.__defaults__, part.__kwdefaults__), referred(part)
            more = [own] if (own := _own(part, seen, how)) else []
            if how.names:
                feed(f"function {part.__qualname__}", part.__code__, *defaults, cells(part), used, *more)
            else:
                feed("function", nameless_code(part.__code__, used), *defaults, cells(part), nameless(used), *more)
        case types.MethodType():
            feed("method", part.__self__, part.__func__)
        case functools.partial():
            feed("partial", part.func, part.args, part.keywords)
        case types.ModuleType() if not (how.names or is_installed(part.__name__)):
            digest.update(b"module;")  # of which `referred` has what counts
        case types.ModuleType():
            digest.update(f"module {former_module(part.__name__)};".encode())
        case logging.Logger():
            digest.update(b"logger;")  # which holds all others
        case types.BuiltinFunctionType():
            feed(f"built in {part.__qualname__}", getattr(part, "__self__", None))
        case np.ufunc():
            digest.update(f"ufunc {part.__name__};".encode())
        case property() | staticmethod() | classmethod():
            feed(type(part).__name__, getattr(part, "fget", None) or getattr(part, "__func__", None))
        case type() if _installed(part):
            feed(f"class {former_name(part)}", {})
        case type():
            above = [*part.__bases__, *([] if _installed(type(part)) else [type(part)])]
            feed(f"class {former_name(part)}" if how.names else "class", _own(part, seen, how), *above)
        case _ if hasattr(part, "__fingerprint__"):  # objects that also hold caches or counters
            is_named = how.names or _installed(type(part))
            feed(type(part).__qualname__ if is_named else "", part.__fingerprint__())
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


def _own(part, seen, how) -> dict:
    """The attributes of a user's class or function that determine what it does, where they can be hashed."""
    own = {}
    for name, value in vars(part).items():
        if tells(name, value) or (not name.startswith("__") and _can_be_hashed(value, seen, how)):
            own[name] = value
    return own


def _can_be_hashed(value, seen, how) -> bool:
    is_code = isinstance(value, type | types.FunctionType | types.MethodType | functools.partial)
    is_of_others = _installed(type(value)) and hasattr(value, "__dict__") and jax.tree_util.all_leaves([value])
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType) or (is_of_others and not is_code):
        return False  # the place of a slot; or a client, a pool, a figure, which are never the same twice
    try:
        _feed(hashlib.blake2b(), value, dict(seen), how)
    except (LabError, RecursionError):  # a lock, or objects that hold each other
        return False
    return True


def _installed(part) -> bool:
    """Whether it belongs to an installed package, whose code changes only with its version."""
    return is_installed(getattr(part, "__module__", None) or "")
