"""What a study plays at a time: games on instances that are in memory together."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...errors import CocoaxError, LabError
from ..arguments import check_rounds
from ..sources import Drawn
from .batch import Batch, chunk_size, traced_for
from .progress import Reporter
from .threads import all_drawn, compiled_first

if TYPE_CHECKING:
    from ..study import Study

Seeds = tuple[int, ...]


class Planned(NamedTuple):
    """One game of a study, and under which key its result is stored."""

    problem: str
    learner: str
    horizon: int
    seed: int
    key: str


class Part(NamedTuple):
    """Instances of one problem, and all that is played on them."""

    problem: str
    keys: dict[tuple[str, Seeds], dict[int, dict[int, str]]]  # of games: by (learner, seeds), horizon, and seed
    ready: Iterator[tuple[str, Seeds]]  # in which order they are played
    drawn: dict[int, Drawn]
    stacked: Callable[[Seeds], Batch]


def parts(study: "Study", missing: list[Planned], reporter: Reporter) -> Iterator[Part]:
    """By problem, and as many instances at a time as fit into memory."""
    for name in dict.fromkeys(game.problem for game in missing):
        todo = [game for game in missing if game.problem == name]
        source, longest = study.sources[name], max(study.horizons[name])
        with blamed(name):
            first = source.draw(todo[0].seed, longest)
        check_rounds(name, first, longest)
        size = chunk_size(first, longest)

        def draw(seed, first=first, of_first=todo[0].seed, source=source, longest=longest):
            return first if seed == of_first else source.draw(seed, longest)

        for i in range(0, len(study.seeds), size):
            chunk = set(study.seeds[i : i + size])
            keys = _keys([game for game in todo if game.seed in chunk])
            if not keys:
                continue
            jobs = {
                (learner, each): functools.partial(traced_for, first, len(each), study.learner(learner, name), list(T))
                for (learner, each), T in keys.items()
            }
            ready, seeds = compiled_first(jobs), sorted({seed for _, each in keys for seed in each})
            reporter.now(f"{name}: drawing {len(seeds)} instances")
            with blamed(name):
                drawn = dict(zip(seeds, all_drawn(draw, seeds)))
            stacked = functools.cache(lambda chosen, drawn=drawn: Batch([drawn[seed] for seed in chosen], chosen))
            stacked(next(iter(keys))[1])  # now, not when it is wanted
            yield Part(name, keys, ready, drawn, stacked)


def _keys(games: list[Planned]) -> dict[tuple[str, Seeds], dict[int, dict[int, str]]]:
    keys: dict[tuple[str, int], dict[int, str]] = {}
    for game in games:
        keys.setdefault((game.learner, game.horizon), {})[game.seed] = game.key
    found = {}
    for (learner, horizon), by_seed in keys.items():
        found.setdefault((learner, tuple(sorted(by_seed))), {})[horizon] = dict(sorted(by_seed.items()))
    return found


def told(error: Exception) -> str:
    """The error in one line; its kind too, where it is not one of ours."""
    text = " ".join(str(error).split("\n--------------------")[0].split())
    return text if isinstance(error, CocoaxError) else f"{type(error).__name__}: {text}"


@contextlib.contextmanager
def blamed(problem):
    """Around the code that makes a problem and its rounds."""
    try:
        yield
    except Exception as error:
        raise LabError(f"the problem {problem!r} raised {told(error)}; mend it and run again") from error
