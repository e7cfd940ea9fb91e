"""Parts from a user's own Python file, such as "mine.py:MomFW"."""

from pathlib import Path
from types import ModuleType
from typing import Any

from .. import dual, learners
from ..core.scripts import names_in
from ..errors import LabError
from ..learners.base import AbstractLearner
from ..primal.base import AbstractPrimal
from .names import closest


def part_from(text: str, folder: Path = Path()) -> Any:
    """The object that a text such as "mine.py:MomFW" or "mine:MomFW" names; the file is looked for in `folder`."""
    file, _, name = text.rpartition(":")
    path = folder / (file if file.endswith(".py") else f"{file}.py")
    if not file:
        raise LabError(f"a part is named as FILE.py:NAME, got {text!r}; say which name of the file")
    if not path.is_file():
        raise LabError(f"there is no file {path}; name a part as FILE.py:NAME, got {text!r}")
    names = names_in(path, LabError)
    parts = [key for key, part in names.items() if not (key.startswith("_") or isinstance(part, ModuleType))]
    return names[closest(name, parts, f"part in {path} called")]


def learner_from(text: str) -> tuple[str, AbstractLearner]:
    """(name, learner) for such a text. A class is called without arguments; a primal gets a dual."""
    part = part_from(text)
    return text.rpartition(":")[2], as_learner(_instantiated(part, text), text)


def as_learner(part: Any, text: str) -> AbstractLearner:
    """`part` if it is a learner; a primal is combined with `RobustPI`, the dual that needs no constants."""
    if isinstance(part, AbstractPrimal):
        return learners.PrimalDual(part, dual.RobustPI())
    if not isinstance(part, AbstractLearner):
        raise LabError(f"{text} must be a learner or a primal, or a class of them, got {type(part).__name__}")
    return part


def _instantiated(part, text):
    """`part`, or an instance with default arguments if it is a class."""
    if not isinstance(part, type):
        return part
    try:
        return part()
    except Exception as error:  # a user's class can raise anything
        raise LabError(f"{text} needs arguments ({error}); name an object, as mine = {part.__name__}(...)") from None
