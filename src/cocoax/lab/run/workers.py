"""Long studies in several processes: most of the time of one process is a chain of small steps."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import filelock

from ...errors import LabError

if TYPE_CHECKING:
    from ..study import Study

_WORTH_HELP = 20_000  # rounds
_PATIENCE = 60.0  # seconds without progress until a process stops waiting for the others
_LOCK_PATIENCE = 20.0  # seconds until a process plays without the lock
_PARENT = "COCOAX_PARENT"  # environment variable: process id of the parent
_PLAYING, _COMPARING = 4, 5  # processes beside an accelerator: tracing takes longer than playing


class Stripe(NamedTuple):
    """A share of the work: every `step`-th item, from item `first` on."""

    first: int
    step: int

    def of(self, items) -> list:
        return list(items)[self.first :: self.step]


@contextlib.contextmanager
def device_lock(folder: Path) -> Iterator[None]:
    """One process at a time: an accelerator that several processes use at once is slower than one after the other.

    The lock of a process that dies is free. A process that cannot have it, because files cannot be locked or because
    it waited too long, goes on without it: only time is lost.
    """
    lock = filelock.FileLock(folder / ".device-lock", timeout=_LOCK_PATIENCE, poll_interval=0.005)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, NotImplementedError):  # filelock.Timeout is an OSError
            stack.enter_context(lock)
        yield


class Role(NamedTuple):
    """What a helper does ("play", "play backwards" or "compare"), and its share of that work."""

    what: str
    share: Stripe = Stripe(0, 1)

    @classmethod
    def of(cls, text: str) -> "Role":
        """Read an argument of the command line."""
        what, *numbers = text.split(",")
        return cls(what, Stripe(*map(int, numbers)))

    def __str__(self):
        return ",".join(map(str, (self.what, *self.share)))


class Team(NamedTuple):
    """The other processes of this command, beside an accelerator."""

    playing: Sequence[subprocess.Popen]
    comparing: Sequence[subprocess.Popen]

    def draw(self, device: str) -> None:
        """Let those who compare draw the figures of games on this kind of device, once the games are played."""
        for helper in self.comparing:
            assert helper.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                helper.stdin.write(f"{device}\n".encode())

    def has_drawn(self) -> bool:
        """Wait for the figures; False if they do not come."""
        until = time.monotonic() + _PATIENCE
        try:
            return all(helper.wait(max(until - time.monotonic(), 0)) == 0 for helper in self.comparing)
        except subprocess.TimeoutExpired:
            return False


@contextlib.contextmanager
def team() -> Iterator[Team | None]:
    """Start helpers, if there are enough cores, before anything else is loaded; they end with this process."""
    if not _accelerator() or len(_cores()) < _PLAYING + _COMPARING + 1:
        yield None
        return
    playing = [Role("play", Stripe(i, _PLAYING)) for i in range(1, _PLAYING)]
    comparing = [Role("compare", Stripe(i, _COMPARING)) for i in range(_COMPARING)]
    with _helpers(playing) as players, _helpers(comparing, JAX_PLATFORMS="cpu") as comparers:
        _settle(Role("play"))
        yield Team(players, comparers)


def begin_to_help(role: Role) -> None:
    """Prepare a helper, before anything else is loaded. It ends when its parent ends."""
    if _PARENT not in os.environ:
        raise LabError("--helper is for the processes that this command starts itself; leave it out")
    _end_with_parent()
    if role.what != "play backwards":
        _settle(role)


def worth_keeping(role: Role | None) -> float:
    """Minimum compile time worth caching, in seconds. Those who compare share many small programs."""
    return 0.02 if role is not None and role.what == "compare" else 0.5


def run(study: "Study", quiet: bool, others: Team | None) -> bool:
    """`study.run()`, with helpers where they are worth it. Returns whether helpers draw the figures."""
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
        study.run(quiet=quiet, share=Stripe(0, _PLAYING))
        report.load()
        _wait_for(study, others.playing)
        study.run(quiet=quiet)  # games that helpers left out
        return not study.refused
    return False


def _wait_for(study, players):
    """Wait until all games are played, or until nobody seems to play any more."""
    last, since = None, time.monotonic()
    while (missing := len(study.missing())) and any(player.poll() is None for player in players):
        if missing != last:
            last, since = missing, time.monotonic()
        if time.monotonic() - since > _PATIENCE:
            return
        time.sleep(0.05)


def help_with(study: "Study", role: Role, slopes: Any = None) -> None:
    """Do a helper's work."""
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
    """JAX's GPU kernel for threefry compiles faster, but makes games up to 12% slower: worth it in short games."""
    import jax

    from .batch import SHORT

    if max(map(max, study.horizons.values())) <= SHORT:
        jax.config.update("jax_threefry_gpu_kernel_lowering", True)


def _draw(study, slopes, share):
    """Draw some figures, each as soon as all games of its problem are played."""
    from ..report import write as report

    report.load()
    report.draw_once()
    for name, kind in share.of((name, kind) for name in study.sources for kind in report.KINDS):
        while any(game.problem == name for game in study.missing()):
            time.sleep(0.1)
        report.write_figures(study, [name], slopes, [kind])


def _settle(role):
    """Pin each process that compares to its own core: its small steps would wait long beside compilations."""
    if hasattr(os, "sched_setaffinity"):
        cores = _cores()
        own = [cores[-1 - role.share.first]] if role.what == "compare" else cores[:-_COMPARING] or cores
        os.sched_setaffinity(0, own)


def _cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _worth_help(study):
    rounds = sum(sum(study.horizons[name]) for name in study.sources)
    return rounds * len(study.seeds) * len(study.learners) >= _WORTH_HELP


def _accelerator():
    """Whether JAX may have a GPU. To ask JAX would take a second."""
    return importlib.util.find_spec("jax_plugins") is not None and os.environ.get("JAX_PLATFORMS") != "cpu"


@contextlib.contextmanager
def _helpers(roles, **environment):
    """Run this command in other processes; they are killed at the end of the block."""
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
