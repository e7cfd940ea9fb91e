"""Studies from files: Python that defines them, or TOML that names ready parts."""

import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

from .. import dual, learners, primal, problems
from ..core.facts import offered
from ..errors import CocoaxError, LabError
from .names import closest
from .study import Study

_DEFAULTS = {"horizons": [100, 300, 1000], "seeds": range(10)}


def study_from(path: Path, out: Path) -> Study:
    """The study that a file describes."""
    if not path.is_file():
        raise LabError(f"there is no file {path}; give a Python or a TOML file that describes a study")
    arguments = _from_toml(path) if path.suffix.lower() == ".toml" else _from_python(path)
    for name in ("problems", "learners"):
        if name not in arguments:
            raise LabError(f"{path} does not define {name}, a dict by name")
    return Study(**arguments, out=out)


def _from_python(path):
    sys.path.insert(0, str(path.resolve().parent))  # as `python FILE` would
    try:
        names = runpy.run_path(str(path))
    except CocoaxError as error:
        raise LabError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        raise LabError(f"{path} raised {type(error).__name__}: {error}; mend it and run again") from error
    return _DEFAULTS | {key: names[key] for key in ("problems", "learners", "horizons", "seeds") if key in names}


def _from_toml(path):
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path} is not TOML: {error}") from None
    unknown = sorted(set(content) - {"problems", "learners", "horizons", "seeds"})
    if unknown:
        raise LabError(f"{path} has {unknown[0]!r}; a study has problems, learners, horizons and seeds")
    if type(content.get("seeds")) is int:
        content["seeds"] = range(content["seeds"])
    made = {
        "problems": _make_all(content.get("problems", {}), path, lambda options: _problem(path, options)),
        "learners": _make_all(
            content.get("learners", {}), path, lambda options: _part(path, learners, "learner", options)
        ),
    }
    return _DEFAULTS | content | {name: parts for name, parts in made.items() if parts}


def _make_all(tables, path, make):
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise LabError(
            f"{path}: write problems and learners as tables, for example [learners.mine] with a line name = ..."
        )
    return {name: make(dict(table)) for name, table in tables.items()}


def _problem(path, options):
    """A function of a key."""
    make = _maker(path, problems, "problem", options)

    def instance(key):
        return _call(path, make, {"key": key, **options})

    return instance


def _part(path, module, what, options) -> Any:
    """A learner, primal or dual from its class's name and parameters; its own parts are tables or names."""
    make = _maker(path, module, what, options)
    for name, kind in (("primal", primal), ("dual", dual)):
        if name in options:
            inner = options[name] if isinstance(options[name], dict) else {"name": options[name]}
            options[name] = _part(path, kind, name, dict(inner))
    return _call(path, make, options)


def _maker(path, module, what, options):
    """The class or function that the line `name = ...` names."""
    if "name" not in options:
        raise LabError(f"{path}: each {what} needs a line name = ..., one of {', '.join(offered(module))}")
    return getattr(module, closest(str(options.pop("name")), offered(module), what))


def _call(path, make, options):
    try:
        return make(**options)
    except (CocoaxError, TypeError) as error:
        raise LabError(f"{path}: {make.__name__}: {error}") from None
