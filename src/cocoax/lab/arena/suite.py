"""The arena as a study: an untuned learner, the start, and rivals that were tuned for each problem."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ... import learners
from ...errors import LabError
from ...learners.base import AbstractLearner
from ..names import closest
from ..study import Study
from . import tuning
from .problems import ARENA, HORIZONS
from .ranking import START
from .rivals import FAMILIES, tuned_rivals

FIRST_SEED = 70000  # of the reported seeds; nothing was chosen by looking at them


def arena_study(
    out: Path | str | None = None,
    *,
    seeds: Sequence[int] = range(FIRST_SEED, FIRST_SEED + 10),
    horizons: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    challenger: AbstractLearner | None = None,
    beside: Mapping[str, AbstractLearner] | None = None,
) -> Study:
    """The study behind `cocoax race arena`: `challenger`, the start, and on each problem the rivals tuned for it.

    **Arguments:**

    - `out`, `seeds`: as in `Study`; seeds on which rivals were tuned are refused.
    - `horizons`: horizons to play instead of each problem's own.
    - `names`: names of problems; all by default.
    - `challenger`: a learner; `learners.Auto()` by default.
    - `beside`: more learners by name, which play along.
    """
    chosen = list(ARENA) if names is None else [closest(name, ARENA, "problem of the arena") for name in names]
    rivals = tuned_rivals(tuning.tuned(), chosen, FAMILIES)
    taken = {"Auto", START, *rivals} & set(beside or {})
    if taken:
        raise LabError(f"the arena has a learner {min(taken)!r}; give yours another name")
    first = learners.Auto() if challenger is None else challenger
    return Study(
        {name: ARENA[name] for name in chosen},
        {
            "Auto" if challenger is None else challenger.known_as: first,
            **(beside or {}),
            START: learners.Stay(),
            **rivals,
        },
        {name: horizons or HORIZONS[name] for name in chosen},
        tuning.unseen(seeds),
        out,
        tol=tuning.TOLERANCE,
    )
