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
    found = _from_toml(path) if path.suffix.lower() == ".toml" else _from_python(path)
    for name in ("problems", "learners"):
        if name not in found:
            raise LabError(f"{path} does not define {name}, a dict by name")
    return Study(found["problems"], found["learners"], found["horizons"], found["seeds"], out)


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
        given = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path} is not TOML: {error}") from None
    unknown = sorted(set(given) - {"problems", "learners", "horizons", "seeds"})
    if unknown:
        raise LabError(f"{path} has {unknown[0]!r}; a study has problems, learners, horizons and seeds")
    if type(given.get("seeds")) is int:
        given["seeds"] = range(given["seeds"])
    made = {
        "problems": _each(given.get("problems", {}), path, lambda options: _problem(path, options)),
        "learners": _each(given.get("learners", {}), path, lambda options: _build(path, learners, "learner", options)),
    }
    return _DEFAULTS | given | {name: each for name, each in made.items() if each}


def _each(tables, path, build):
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise LabError(
            f"{path}: write problems and learners as tables, for example [learners.mine] with a line name = ..."
        )
    return {name: build(dict(table)) for name, table in tables.items()}


def _problem(path, options):
    make = _named(path, problems, "problem", options)

    def instance(key):
        return _called(path, make, {"key": key, **options})

    return instance


def _build(path, module, what, options) -> Any:
    """A part by its class's name and parameters; parts of it are tables or names themselves."""
    make = _named(path, module, what, options)
    for name, kind in (("primal", primal), ("dual", dual)):
        if name in options:
            inner = options[name] if isinstance(options[name], dict) else {"name": options[name]}
            options[name] = _build(path, kind, name, dict(inner))
    return _called(path, make, options)


def _named(path, module, what, options):
    if "name" not in options:
        raise LabError(f"{path}: each {what} needs a line name = ..., one of {', '.join(offered(module))}")
    return getattr(module, closest(str(options.pop("name")), offered(module), what))


def _called(path, make, options):
    try:
        return make(**options)
    except (CocoaxError, TypeError) as error:
        raise LabError(f"{path}: {make.__name__}: {error}") from None
