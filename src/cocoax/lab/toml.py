"""Studies in TOML files, which name ready parts, or users' own if running code is allowed."""

import tomllib
from pathlib import Path
from typing import Any

from .. import baselines, dual, learners, primal, problems
from ..core.facts import offered
from ..errors import CocoaxError, LabError
from .code import as_learner, part_from
from .names import closest

KEYS = ("problems", "learners", "horizons", "seeds")  # what a file says of a study


def study_arguments(path: Path, allow_code: bool) -> dict[str, Any]:
    """The arguments of `Study` that the file gives."""
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path} is not TOML: {error}") from None
    unknown = sorted(set(content) - set(KEYS))
    if unknown:
        raise LabError(f"{path} has {unknown[0]!r}; a study has problems, learners, horizons and seeds")
    if type(content.get("seeds")) is int:
        content["seeds"] = range(content["seeds"])
    reader = _Reader(path, allow_code)
    made = {
        "problems": reader.all_of(content.get("problems", {}), reader.problem),
        "learners": reader.all_of(content.get("learners", {}), reader.learner),
    }
    return content | {name: parts for name, parts in made.items() if parts}


class _Reader:
    """Makes the parts that one file describes."""

    def __init__(self, path: Path, allow_code: bool):
        self.path, self.allow_code = path, allow_code

    def all_of(self, tables, make):
        """A part for each table, by name; `make` is `problem` or `learner`."""
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise LabError(
                f"{self.path}: write problems and learners as tables, such as [learners.mine] with a line name = ..."
            )
        return {name: make(dict(table)) for name, table in tables.items()}

    def problem(self, options):
        """A function from a key to the instance that a table describes."""
        make = self._maker(offered(problems), "problem", options)

        def instance(key):
            return self._call(make, {"key": key, **options})

        return instance

    def learner(self, options):
        """The learner that a table describes.

        A primal's name is allowed: a ready primal is played by Algorithm 1, the user's own with `RobustPI`.
        """
        name = str(options.get("name"))
        known = offered(learners) | offered(baselines)
        if name in offered(primal) and name not in known:
            options |= {"name": "Blocks", "primal": name}
        made = self._part(known, "learner", options)
        return as_learner(made, f"{self.path}: {name}") if ":" in name else made

    def _part(self, known, what, options) -> Any:
        """A learner, primal or dual from its class's name and parameters; its own parts are tables or names."""
        make = self._maker(known, what, options)
        for name, kind in (("primal", primal), ("dual", dual)):
            if name in options:
                inner = options[name] if isinstance(options[name], dict) else {"name": options[name]}
                options[name] = self._part(offered(kind), name, dict(inner))
        return self._call(make, options) if callable(make) else make

    def _maker(self, known, what, options):
        """The class or function that the line `name = ...` names, of those `known`."""
        if "name" not in options:
            raise LabError(f"{self.path}: each {what} needs a line name = ..., one of {', '.join(known)}")
        name = str(options.pop("name"))
        if ":" not in name:
            return known[closest(name, known, what)]
        if not self.allow_code:
            raise LabError(f"{self.path} runs code of its own, {name!r}; if you trust it, say so with --allow-code")
        return part_from(name, self.path.parent)

    def _call(self, make, options):
        """`make(**options)`, with errors that name the file."""
        try:
            return make(**options)
        except (CocoaxError, TypeError) as error:
            raise LabError(f"{self.path}: {getattr(make, '__name__', make)}: {error}") from None
