"""System calls that fail, each in turn: a round that was refused never comes back, an acknowledged one is there."""

import os
import resource
import shutil

import power_tools as power
import pytest
import session_tools as tools

import cocoax as cx


@pytest.fixture
def folder():
    with power.memory_folder() as folder:
        yield folder


class _Calls:
    """Lets calls fail from one number on, so many of them."""

    def __init__(self, kind, first, times):
        self.kind, self.left, self.times = kind, first, times

    def __call__(self, what, file):
        self.left -= 1
        if -self.times <= self.left < 0:
            raise power.failure(self.kind, what)


def _copy_opens_with(folder, rounds):
    """As a crash would leave the files now."""
    copy = tools.copied(folder / "work", folder / "copy")
    with tools.told(), tools.session(copy, snapshot_every=5) as it:
        assert it.rounds in rounds
        assert tools.bits(it) == tools.uninterrupted().after(it.rounds)


@pytest.mark.filterwarnings("ignore::cocoax.errors.SessionWarning")  # a snapshot that was not stored
@pytest.mark.parametrize("times", [1, 2, 1000])
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO"])
def test_a_call_of_observe_that_fails_costs_no_acknowledged_round(folder, kind, times):
    (folder / "work").mkdir()
    path, failed = folder / "work" / "session", 0
    with power.recorded() as log:
        it = tools.session(path, snapshot_every=5)
        for first in range(32):
            before, log.fails = it.rounds, _Calls(kind, first, times)
            try:
                tools.observe(it, 1)
                acknowledged, possible = it.rounds, {before + 1}
            except cx.SessionError as error:
                acknowledged, failed = before, failed + 1
                possible = {before, before + 1} if "to see" in str(error) else {before}
            log.fails = lambda what, file: None
            assert acknowledged in possible
            _copy_opens_with(folder, possible)
            try:
                tools.observe(it, 1)
            except cx.SessionError as error:
                assert "open" in str(error)  # it says so, and opens again
                it.close()
                it = tools.session(path, snapshot_every=5)
                assert it.rounds in possible
                tools.observe(it, 1)
            assert tools.bits(it) == tools.uninterrupted().after(it.rounds)
            tools.observe(it, 3 - it.rounds % 5)  # so that rounds with a snapshot are hit too
        it.close()
        assert failed >= 3  # two writes and a sync


@pytest.mark.parametrize("room", range(4))
def test_a_process_without_free_handles_is_told_so_and_loses_nothing(folder, room):
    path = folder / "session"
    with tools.session(path) as it:
        tools.observe(it, 2)
    it = tools.session(folder / "other")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open("/", os.O_RDONLY) for _ in range(room + 1)]  # the lowest numbers, which may have gaps
    for handle in free:
        os.close(handle)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1], hard))
    try:
        if room < 3:
            with pytest.raises(cx.SessionError, match="cannot"):
                tools.session(path)
        else:
            tools.session(path).close()
        tools.observe(it, 3)  # an open session needs no more of them
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    it.close()
    shutil.copytree(folder, folder / "copy")
    for name, rounds in (("session", 2), ("other", 3)):
        with tools.session(folder / "copy" / name) as again:
            assert tools.bits(again) == tools.uninterrupted().after(rounds)
