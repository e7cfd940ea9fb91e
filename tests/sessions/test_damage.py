"""Damaged files of fleets, of late feedback and of exports: refused, or a true state, and what is lost is told."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import power_tools as power
import pytest
import session_tools as tools

import cocoax as cx
from cocoax.sessions import maintenance

NAMES = [f"c{i}" for i in range(4)]
FEW, MANY = 12, 900  # flipped bytes; a twentieth as many cuts


class Kind(NamedTuple):
    opened: Callable[[Any], Any]
    turns: Callable[[Any], Iterator]  # plays, and stops after each event that is acknowledged
    state: Callable[[Any], Any]


def _fleet(path, **options):
    learner, key = tools.learner("DPP"), jax.random.key(3)
    return cx.Fleet(tools.problem(), learner, path, key=key, horizon=tools.HORIZON, snapshot_every=7, **options)


def _rounds(number):
    return jax.tree.map(lambda leaf: np.take(leaf, range(number, number + 4), axis=0, mode="wrap"), tools.cycle())


def _play_fleet(it):
    for name in NAMES:
        yield it.decide([name])
    for number in range(18):
        yield it.observe(NAMES, _rounds(number))
        if number == 9:
            yield it.end(NAMES[3:])
            yield it.decide(NAMES[3:])


def _play_late_fleet(it):
    for name in NAMES:  # a campaign begins, and then gets its ticket
        yield it.begin([name])
    for number in range(12):
        tickets = [[f"{name} {turn}" for name in NAMES] for turn in (number, number - 1)]
        yield it.decide(NAMES, tickets=tickets[0])
        if number:
            yield it.observe(NAMES, _rounds(number), tickets=tickets[1])


def _play_tickets(it):
    for number in range(16):
        yield it.decide(ticket=f"t{number}")
        if number:
            yield it.observe(tools.a_round(number), ticket=f"t{number - 1}")


def _of_fleet(it):
    return {name: it.summary(name) for name in it.names}


KINDS = {
    "fleet": Kind(_fleet, _play_fleet, _of_fleet),
    "late fleet": Kind(lambda path: _fleet(path, pending=2), _play_late_fleet, _of_fleet),
    "tickets": Kind(lambda path: tools.session(path, pending=3, snapshot_every=6), _play_tickets, tools.bits),
}


@pytest.fixture(scope="module", params=KINDS)
def played(request, tmp_path_factory):
    """(a kind, a folder as killed, one as closed, all true states in order)."""
    kind, folder = KINDS[request.param], tmp_path_factory.mktemp("played")
    (folder / "work").mkdir()
    with kind.opened(folder / "work" / "session") as it:
        states = [kind.state(it), *(kind.state(it) for _ in kind.turns(it))]
        tools.copied(folder / "work", folder / "killed")
        it.export(folder / "export")
    tools.copied(folder / "work", folder / "closed")
    return kind, folder, states


def _damaged_ways(data, flips):
    draw = np.random.default_rng(flips)
    for at in draw.choice(len(data), min(flips, len(data)), replace=False).tolist():
        yield data[:at] + bytes([data[at] ^ int(draw.integers(1, 256))]) + data[at + 1 :]
    for length in draw.integers(0, len(data), 1 + flips // 20).tolist():
        yield data[:length]


@pytest.mark.parametrize("flips", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how, file", [("killed", "session"), ("killed", "session-wal"), ("closed", "session")])
def test_a_flipped_byte_or_a_cut_costs_nothing_silently(played, how, file, flips):
    kind, folder, states = played
    opened = 0
    with power.memory_folder() as memory, tools.little_memory(64 * 2**20):
        for changed in _damaged_ways((folder / how / file).read_bytes(), flips):
            path = tools.copied(folder / how, memory / "copy")
            path.with_name(file).write_bytes(changed)
            with tools.told() as sentences:
                try:
                    it = kind.opened(path)
                except cx.SessionError as error:
                    assert "\n" not in str(error)
                    continue
            with it, tools.told():
                opened += 1
                state = kind.state(it)
                assert state in states and (state == states[-1] or sentences)
    assert opened > 0


@pytest.mark.parametrize("flips", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_an_export_is_imported_whole_or_refused(played, flips):
    _, folder, _ = played
    with power.memory_folder() as memory, tools.little_memory(64 * 2**20):
        for changed in _damaged_ways((folder / "export").read_bytes(), flips):
            (memory / "export").write_bytes(changed)
            with pytest.raises(cx.SessionError, match="damaged"):
                maintenance.import_file(memory / "export", memory / "new")
            assert not (memory / "new").exists()
