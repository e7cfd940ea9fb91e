"""Long studies, with the help of other processes: most of the time of each is one chain of small steps."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .lab.study import Study

_WORTH_HELP = 20_000  # rounds
_PATIENCE = 60.0  # seconds
_PARENT = "COCOAX_PARENT"  # in the environment: whose helper this is
_PLAYING, _COMPARING = 4, 5  # processes beside an accelerator: tracing takes longer than playing


class Team(NamedTuple):
    """Processes beside an accelerator that do this command's work with this one."""

    playing: Sequence[subprocess.Popen]
    drawing: subprocess.Popen

    def has_drawn(self) -> bool:
        """Whether the figures are there, as they soon should be."""
        try:
            return self.drawing.wait(_PATIENCE) == 0
        except subprocess.TimeoutExpired:
            return False


@contextlib.contextmanager
def team() -> Iterator[Team | None]:
    """Started before anything else is loaded, where there are the cores for it; they go with this process."""
    if not _accelerator() or len(_cores()) < _PLAYING + _COMPARING + 1:
        yield None
        return
    playing = [f"play {i} {_PLAYING}" for i in range(1, _PLAYING)]
    comparing = [f"compare {i} {_COMPARING}" for i in range(_COMPARING)]
    with _helpers(playing) as players, _helpers(comparing, JAX_PLATFORMS="cpu"), _helpers(["draw"]) as [drawer]:
        _settle("play")
        yield Team(players, drawer)


def begin_to_help(role: str) -> None:
    """Before anything else is loaded. A helper does not go on alone."""
    _end_with_parent()
    if role != "backwards":
        _settle(role)


def worth_keeping(role: str | None) -> float:
    """How many seconds of compilation. Those who compare need the same small programs, and keep them for each other."""
    return 0.02 if role is not None and role.startswith("compare") else 0.5


def run(study: "Study", quiet: bool, others: Team | None) -> bool:
    """`study.run()`. Returns whether another draws the figures."""
    from .lab.study import Share

    if not _worth_help(study):
        study.run(quiet=quiet)
    elif others is None:
        missing = sum(game.horizon for game in study.missing())
        with _helpers(["backwards"] if len(_cores()) > 1 and missing >= _WORTH_HELP and not _accelerator() else []):
            study.run(quiet=quiet)
    else:
        study.run(quiet=quiet, share=Share(0, _PLAYING))
        while study.missing() and any(player.poll() is None for player in others.playing):
            time.sleep(0.05)
        study.run(quiet=quiet)  # what a helper left undone
        return not study.refused
    return False


def help_with(study: "Study", role: str, slopes: Any = None) -> None:
    """What a helper does: "backwards", "play 1 4", "compare 0 5" or "draw"."""
    from .lab.study import Share

    what, *numbers = role.split()
    if what == "backwards":
        study.run(quiet=True, backwards=True)
    elif _worth_help(study):
        if what == "play":
            study.run(quiet=True, share=Share(*map(int, numbers)))
        elif what == "compare":
            study.compare(Share(*map(int, numbers)))
        else:
            _draw(study, slopes)


def _draw(study, slopes):
    """The figures of each problem, once all its games are played."""
    from .lab.report import write_figures

    for name in study.sources:
        while any(game.problem == name for game in study.missing()):
            time.sleep(0.1)
        write_figures(study, [name], slopes)


def _settle(role):
    """Each who compares has a core, and the others the rest: small steps would wait long beside compilations."""
    if hasattr(os, "sched_setaffinity"):
        what, *numbers = role.split()
        os.sched_setaffinity(
            0, [_cores()[-1 - int(numbers[0])]] if what == "compare" else _cores()[:-_COMPARING] or _cores()
        )


def _cores() -> list[int]:
    """Those that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _worth_help(study):
    rounds = sum(sum(study.horizons[name]) for name in study.sources)
    return rounds * len(study.seeds) * len(study.learners) >= _WORTH_HELP


def _accelerator():
    """Whether JAX may have a GPU, without the second that it takes to look."""
    return importlib.util.find_spec("jax_plugins") is not None and os.environ.get("JAX_PLATFORMS") != "cpu"


@contextlib.contextmanager
def _helpers(roles, **environment):
    """This command in other processes, as long as this one needs them."""
    words = [sys.executable, "-m", "cocoax.cli", *sys.argv[1:], "--helper"]
    env, silent = os.environ | environment | {_PARENT: str(os.getpid())}, subprocess.DEVNULL
    helpers = []
    try:
        for role in roles:
            helpers.append(subprocess.Popen([*words, role], env=env, stdout=silent, stderr=silent))
        yield helpers
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def _end_with_parent():
    def watch():
        while os.getppid() == int(os.environ[_PARENT]):
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
