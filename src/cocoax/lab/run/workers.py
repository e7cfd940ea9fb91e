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

from ...errors import LabError
from .shares import Share

if TYPE_CHECKING:
    from ..study import Study

_WORTH_HELP = 20_000  # rounds
_PATIENCE = 60.0  # seconds
_PARENT = "COCOAX_PARENT"  # in the environment: whose helper this is
_PLAYING, _COMPARING = 4, 5  # processes beside an accelerator: tracing takes longer than playing


class Role(NamedTuple):
    """What a helper does, "play", "play backwards" or "compare", and its share of it."""

    what: str
    share: Share = Share(0, 1)

    @classmethod
    def of(cls, text: str) -> "Role":
        """From the command line."""
        what, *numbers = text.split(",")
        return cls(what, Share(*map(int, numbers)))

    def __str__(self):
        return ",".join(map(str, (self.what, *self.share)))


class Team(NamedTuple):
    """Processes beside an accelerator that do this command's work with this one."""

    playing: Sequence[subprocess.Popen]
    comparing: Sequence[subprocess.Popen]

    def draw(self, device: str) -> None:
        """Those who compare then draw the figures, of games that are played on such a device."""
        for helper in self.comparing:
            assert helper.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                helper.stdin.write(f"{device}\n".encode())

    def has_drawn(self) -> bool:
        """Whether the figures are there, as they soon should be."""
        until = time.monotonic() + _PATIENCE
        try:
            return all(helper.wait(max(until - time.monotonic(), 0)) == 0 for helper in self.comparing)
        except subprocess.TimeoutExpired:
            return False


@contextlib.contextmanager
def team() -> Iterator[Team | None]:
    """Started before anything else is loaded, where there are the cores for it; they end with this process."""
    if not _accelerator() or len(_cores()) < _PLAYING + _COMPARING + 1:
        yield None
        return
    playing = [Role("play", Share(i, _PLAYING)) for i in range(1, _PLAYING)]
    comparing = [Role("compare", Share(i, _COMPARING)) for i in range(_COMPARING)]
    with _helpers(playing) as players, _helpers(comparing, JAX_PLATFORMS="cpu") as comparers:
        _settle(Role("play"))
        yield Team(players, comparers)


def begin_to_help(role: Role) -> None:
    """Before anything else is loaded. A helper does not go on alone."""
    if _PARENT not in os.environ:
        raise LabError("--helper is for the processes that this command starts itself; leave it out")
    _end_with_parent()
    if role.what != "play backwards":
        _settle(role)


def worth_keeping(role: Role | None) -> float:
    """How many seconds of compilation. Those who compare need the same small programs, and keep them for each other."""
    return 0.02 if role is not None and role.what == "compare" else 0.5


def run(study: "Study", quiet: bool, others: Team | None) -> bool:
    """`study.run()`. Returns whether others draw the figures."""
    from ..report import write as report

    if not _worth_help(study):
        study.run(quiet=quiet)
    elif others is None:
        missing = sum(game.horizon for game in study.missing())
        alone = len(_cores()) == 1 or missing < _WORTH_HELP or _accelerator()
        with _helpers([] if alone else [Role("play backwards")]):
            study.run(quiet=quiet)
    else:
        _use_kernel_for_random_numbers(study)
        others.draw(study.device)
        study.run(quiet=quiet, share=Share(0, _PLAYING))
        report.load()
        _wait_for(study, others.playing)
        study.run(quiet=quiet)  # what a helper left undone
        return not study.refused
    return False


def _wait_for(study, players):
    """Until all is played, or nobody seems to play any more."""
    known, since = None, time.monotonic()
    while (missing := len(study.missing())) and any(player.poll() is None for player in players):
        if missing != known:
            known, since = missing, time.monotonic()
        if time.monotonic() - since > _PATIENCE:
            return
        time.sleep(0.05)


def help_with(study: "Study", role: Role, slopes: Any = None) -> None:
    """What a helper does."""
    if role.what == "play backwards":
        study.run(quiet=True, backwards=True)
    elif _worth_help(study):
        if role.what == "play":
            _use_kernel_for_random_numbers(study)
            study.run(quiet=True, share=role.share)
        else:
            study.compare(role.share)
            study.device = sys.stdin.readline().strip()
            _draw(study, slopes, role.share)


def _use_kernel_for_random_numbers(study):
    """JAX's own, which is compiled sooner, but makes games up to 12% slower: in short ones that is less."""
    import jax

    from .batch import SHORT

    if max(map(max, study.horizons.values())) <= SHORT:
        jax.config.update("jax_threefry_gpu_kernel_lowering", True)


def _draw(study, slopes, share):
    """Some figures, each once all games of its problem are played."""
    from ..report import write as report

    report.load()
    report.draw_once()
    for name, kind in share.of((name, kind) for name in study.sources for kind in report.KINDS):
        while any(game.problem == name for game in study.missing()):
            time.sleep(0.1)
        report.write_figures(study, [name], slopes, [kind])


def _settle(role):
    """Each who compares has a core, and the others the rest: small steps would wait long beside compilations."""
    if hasattr(os, "sched_setaffinity"):
        cores = _cores()
        own = [cores[-1 - role.share.first]] if role.what == "compare" else cores[:-_COMPARING] or cores
        os.sched_setaffinity(0, own)


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
    env, silent = os.environ | environment | {_PARENT: str(os.getpid())}, subprocess.DEVNULL
    how = {"env": env, "bufsize": 0, "stdin": subprocess.PIPE, "stdout": silent, "stderr": silent}
    helpers = []
    try:
        for role in roles:
            words = [sys.executable, "-m", "cocoax.cli", *sys.argv[1:], "--helper", str(role)]
            helpers.append(subprocess.Popen(words, **how))
        yield helpers
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()
            helper.stdin.close()


def _end_with_parent():
    def watch():
        while os.getppid() == int(os.environ[_PARENT]):
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
