"""Sessions of a small pacing problem, and processes that observe until they are killed."""

import contextlib
import functools
import json
import multiprocessing
import os
import resource
import shutil
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import cocoax as cx
from cocoax.sessions import packing

RANDOM = "Blocks"  # a randomised learner, with a horizon
HORIZON = 20_000
_CYCLE = 400  # different rounds


@functools.cache
def problem():
    return cx.problems.pacing(jax.random.key(0), segments=4).problem


@functools.cache
def learner(name=RANDOM):
    return {
        "Auto": cx.learners.Auto,
        RANDOM: lambda: cx.learners.Blocks(cx.primal.ORGFW()),
        "DPP": cx.learners.DPP,
        "PDOGD": cx.baselines.PDOGD,
    }[name]()


@functools.cache
def cycle():
    instance = cx.problems.pacing(jax.random.key(0), segments=4)
    return jax.tree.map(np.asarray, instance.rounds(_CYCLE, jax.random.key(1)))


def a_round(number):
    """What happens in round `number`, whoever plays."""
    return {name: column[number % _CYCLE] for name, column in cycle().items()}


def stacked(count):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *[a_round(i) for i in range(count)])


def session(path=None, name=RANDOM, *, key=7, **options):
    planned = {} if name == "Auto" or "state" in options else {"horizon": HORIZON}
    return cx.Session(problem(), learner(name), path, key=jax.random.key(key), **planned | options)


def observe(session, count):
    """The next rounds, of which some are not played as decided."""
    for number in range(session.rounds, session.rounds + count):
        played = np.full(4, 0.25) if number % 5 == 4 else None
        session.observe(a_round(number), played)


def bits(session):
    """All that a session is, exactly."""
    copies = session._copies
    return packing.pack(copies.arrays()) + json.dumps(copies.notes()).encode()


def assert_same(first, second):
    assert first.rounds == second.rounds and bits(first) == bits(second)
    if first._copies.pending == 0:
        assert np.array_equal(first.decide(), second.decide())


class Uninterrupted:
    """A session that was never disturbed, asked for what it was after any number of rounds."""

    def __init__(self, name=RANDOM, **options):
        self._session = session(None, name, **options)
        self._bits = [bits(self._session)]

    def after(self, rounds):
        while len(self._bits) <= rounds:
            observe(self._session, 1)
            self._bits.append(bits(self._session))
        return self._bits[rounds]


@functools.cache
def uninterrupted(name=RANDOM):
    return Uninterrupted(name)


@contextlib.contextmanager
def told():
    """The warnings of sessions, as a list of sentences."""
    sentences = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", cx.SessionWarning)
        yield sentences
        sentences.extend(str(each.message) for each in caught)


def copied(folder, to):
    """The files of a session, open or not, as a power cut would leave them."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return Path(to) / "session"


def prepared(folder, *rounds, closed=False, every=7, **options):
    """A folder with a session that was closed after some rounds, ..., and killed after the last ones, or closed."""
    work, to = Path(folder) / "work", Path(folder) / "prepared"
    work.mkdir(parents=True)
    for count in rounds:
        with session(work / "session", snapshot_every=every, **options) as it:
            observe(it, count)
            copied(work, to)
    if closed:
        copied(work, to)
    return to


@contextlib.contextmanager
def little_memory(most=16 * 2**20):
    """The process, with what C allocates, takes at most so many bytes more, at any time."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak until now
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < most


@functools.cache
def _is_loaded():
    """The memory that the first session of a process takes is not the file's."""
    session().close()
    return True


def assert_refused(path, **options):
    """In one short sentence, and without much being read."""
    assert _is_loaded()
    with little_memory(), told(), pytest.raises(cx.SessionError) as caught:
        session(path, **options).close()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def as_in_tests():
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", os.environ["SESSION_CACHE"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _observe_until_killed(path, name, every, send):
    as_in_tests()
    observe(session(None, name), 5)  # so that all is compiled
    with told():
        send.send_bytes(b"opening")
        it = session(path, name, snapshot_every=every)
        while True:
            observe(it, 1)
            send.send_bytes(str(it.rounds).encode())


def in_process(function, *arguments):
    """(process, what it sends): a new process that has not computed anything yet."""
    os.environ["SESSION_CACHE"] = str(jax.config.jax_compilation_cache_dir)  # pyright: ignore[reportAttributeAccessIssue]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["session_tools"])
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(*arguments, send))
    process.start()
    send.close()
    return process, receive


def run_and_kill(path, name, seconds, every=7):
    """The number of the last acknowledged round of a process that is killed so long after it began to open."""
    process, receive = in_process(_observe_until_killed, path, name, every)
    assert receive.recv_bytes() == b"opening"
    process.join(seconds)
    assert process.is_alive(), "the worker ended by itself"
    process.kill()
    process.join()
    last = 0
    with contextlib.suppress(EOFError):
        while True:
            last = int(receive.recv_bytes())
    return last
