"""Studies in TOML, which names ready parts; and the user's own, where running code is allowed."""

import tomllib
from pathlib import Path
from typing import Any

from .. import dual, learners, primal, problems
from ..core.facts import offered
from ..errors import CocoaxError, LabError
from .code import as_learner, part_from
from .names import closest

KEYS = ("problems", "learners", "horizons", "seeds")  # what a file says of a study


def study_arguments(path: Path, allow_code: bool) -> dict[str, Any]:
    """The arguments of a `Study`."""
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
    """Makes parts from the tables of one file."""

    def __init__(self, path: Path, allow_code: bool):
        self.path, self.allow_code = path, allow_code

    def all_of(self, tables, make):
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise LabError(
                f"{self.path}: write problems and learners as tables, such as [learners.mine] with a line name = ..."
            )
        return {name: make(dict(table)) for name, table in tables.items()}

    def problem(self, options):
        """A function of a key."""
        make = self._maker(problems, "problem", options)

        def instance(key):
            return self._call(make, {"key": key, **options})

        return instance

    def learner(self, options):
        """A learner, or a primal by its name: Algorithm 1 plays it, or if it is the user's own, `Auto`'s dual."""
        name = str(options.get("name"))
        if name in offered(primal) and name not in offered(learners):
            options |= {"name": "Blocks", "primal": name}
        made = self._part(learners, "learner", options)
        return as_learner(made, f"{self.path}: {name}") if ":" in name else made

    def _part(self, module, what, options) -> Any:
        """A learner, primal or dual from its class's name and parameters; its own parts are tables or names."""
        make = self._maker(module, what, options)
        for name, kind in (("primal", primal), ("dual", dual)):
            if name in options:
                inner = options[name] if isinstance(options[name], dict) else {"name": options[name]}
                options[name] = self._part(kind, name, dict(inner))
        return self._call(make, options) if callable(make) else make

    def _maker(self, module, what, options):
        """The class or function that the line `name = ...` names."""
        if "name" not in options:
            raise LabError(f"{self.path}: each {what} needs a line name = ..., one of {', '.join(offered(module))}")
        name = str(options.pop("name"))
        if ":" not in name:
            return getattr(module, closest(name, offered(module), what))
        if not self.allow_code:
            raise LabError(f"{self.path} runs code of its own, {name!r}; if you trust it, say so with --allow-code")
        return part_from(name, self.path.parent)

    def _call(self, make, options):
        try:
            return make(**options)
        except (CocoaxError, TypeError) as error:
            raise LabError(f"{self.path}: {getattr(make, '__name__', make)}: {error}") from None
