"""Ctrl-C at every line of a fleet's calls: all campaigns of a call count, or none."""

import contextlib
import functools

import jax
import numpy as np
import power_tools as power
import pytest
import session_tools as tools
from line_tools import at_lines, interrupt, number_of_lines

import cocoax as cx

NAMES = ["a", "b", "c"]


@functools.cache
def _problem():
    return cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: (r["v"] - x[0]) ** 2, request=True)


def _fleet(path=None):
    learner, key = tools.learner("DPP"), jax.random.key(0)
    return cx.Fleet(_problem(), learner, path, key=key, horizon=9999, snapshot_every=7)


def _turn(it, number):
    """One round, in the request-first order; a request that is open already is observed."""
    names = [*NAMES, f"new {number // 50}"]
    request = {"v": np.arange(len(names)) / (1.0 + number)}
    if not all(name in it and it._campaigns.columns["number"][it._campaigns.rows[name], 0] >= 0 for name in names):
        it.decide(names, request)
    it.observe(names)


def _bits(it):
    return [it.summary(name) for name in it.names]


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_a_line_of_a_call(stride):
    with power.memory_folder() as folder, _fleet() as alone:
        it = _fleet(folder / "fleet")
        _turn(it, 0)
        _turn(alone, 0)
        count, number = number_of_lines(lambda: _turn(it, 1)), 2
        _turn(alone, 1)
        assert count > 100
        for line in range(0, count, stride):
            before = _bits(alone)
            with contextlib.suppress(KeyboardInterrupt), at_lines({line: interrupt}):
                _turn(it, number)
            try:
                it.decide(["probe"], {"v": np.zeros(1)})
            except cx.SessionError as error:
                assert "open it again" in str(error)
                it = _fleet(folder / "fleet")
                it.decide(["probe"], {"v": np.zeros(1)})
            it.skip(["probe"])
            it.end(["probe"])
            said = [each for each in _bits(it) if each["rounds"] or each in before]
            _turn(alone, number)
            if said == [each for each in before if each["rounds"]]:  # it does not count
                _turn(it, number)
            assert _bits(it) == _bits(alone), line
            number += 1
        it.close()
        with _fleet(folder / "fleet") as it:
            assert _bits(it) == _bits(alone)
