"""Studies from files: Python that defines them, or TOML that names ready parts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.scripts import names_in
from ..errors import LabError
from . import toml
from .arguments import by_name
from .names import select
from .study import Study

_DEFAULTS = {"horizons": [100, 300, 1000], "seeds": range(10)}


def study_from(
    path: Path,
    out: Path,
    *,
    horizons: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    learners: str | None = None,
    allow_code: bool = False,
) -> Study:
    """The study that a Python or TOML file describes.

    **Arguments:**

    - `horizons`, `seeds`: values to use instead of the file's.
    - `learners`: names, short or whole, separated by commas; all by default.
    - `allow_code`: whether a TOML file may name parts of a Python file in the same folder, as "mine:MomFW".
    """
    if not path.is_file():
        raise LabError(f"there is no file {path}; give a Python or a TOML file that describes a study")
    if path.suffix.lower() not in (".py", ".toml"):
        raise LabError(f"{path} is neither a .py nor a .toml file; give one that describes a study")
    arguments = _DEFAULTS | (
        toml.study_arguments(path, allow_code) if path.suffix.lower() == ".toml" else _from_python(path)
    )
    for name in ("problems", "learners"):
        if name not in arguments:
            raise LabError(f"{path} does not define {name}, a dict by name")
    arguments |= {name: value for name, value in (("horizons", horizons), ("seeds", seeds)) if value is not None}
    if learners is not None:
        arguments["learners"] = chosen(learners, by_name(arguments["learners"], "learner"))
    return Study(**arguments, out=out)


def chosen(text: str | Sequence[str] | None, learners: Mapping) -> dict:
    """The learners that a text names, by whole or short names, or by a class that only one of them has."""
    kinds = [getattr(learner, "known_as", type(learner).__name__) for learner in learners.values()]
    classes = {kind: name for kind, name in zip(kinds, learners) if kinds.count(kind) == 1}
    return {name: learners[name] for name in select(text, learners, "learner", classes) or learners}


def _from_python(path):
    names = names_in(path, LabError)
    return {key: names[key] for key in toml.KEYS if key in names}
