"""What an earlier version of cocoax stored is opened, and goes on as if nothing had happened."""

import json
import shutil
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
import session_tools
import stored_tools as tools

import cocoax as cx
from cocoax.core.fingerprint import fingerprint

STORED = Path(__file__).parent / "stored"
ROUNDS = {"closed": 20, "killed": 22}


@pytest.fixture
def path(tmp_path, name):
    for file in STORED.glob(f"{name}*"):
        shutil.copyfile(file, tmp_path / file.name)
    return tmp_path / name


def _later_decisions(name):
    return [[float.fromhex(number) for number in x] for x in json.loads((STORED / "next.json").read_text())[name]]


@pytest.mark.parametrize("name", ROUNDS)
def test_a_session_of_an_earlier_version_goes_on(path, name):
    with session_tools.told() as sentences, tools.session(path, name) as it:
        assert it.rounds == len(it.history()) == ROUNDS[name]
        decisions = tools.play(it, name, 20)
    assert not sentences
    expected = _later_decisions(name)
    assert np.array_equal(decisions[0], expected[0])  # which is in the file
    assert np.allclose(decisions, expected, rtol=1e-12, atol=1e-12)  # another CPU may round otherwise
    with tools.session(path, name) as again:
        assert again.rounds == ROUNDS[name] + 20


@pytest.mark.parametrize("name", ROUNDS)
def test_a_session_of_an_earlier_version_is_replayed(path, name):
    with cx.Session.replay(path, tools.problem(), cx.learners.Stay(), key=jax.random.key(0)) as it:
        assert it.rounds == ROUNDS[name]


def test_fingerprints_do_not_depend_on_where_cocoax_keeps_its_classes():
    expected = json.loads((STORED / "fingerprints.json").read_text())
    assert {name: fingerprint(part) for name, part in tools.parts().items()} == expected


def test_a_session_on_paths_opens_on_another_processor():
    """LAPACK has code for every kind of CPU, so the same pseudo-inverse has other last bits elsewhere."""
    paths = cx.domains.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2)
    elsewhere = eqx.tree_at(lambda it: it.conductance, paths, paths.conductance * (1 + 1e-15))
    assert fingerprint(elsewhere) == fingerprint(paths)
    assert fingerprint(cx.domains.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 1)) != fingerprint(paths)


def test_fingerprints_of_problems_and_renamed_classes_are_those_of_the_first_version():
    """Computed by 0.1.0, whose problems had no `request`, and whose `RoundBounds` was called `Scale`."""
    rates = cx.theory.rates
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), rates, rates)
    assert fingerprint(problem, code=False) == "2a5b46fbb1fa6f2dc932aee868ad18bf"
    assert fingerprint(cx.primal.Scale) == "1b439a382d4979c5c4e769bea47f4f12"
    asking = cx.Problem(cx.domains.ProbabilitySimplex(3), rates, rates, request=True)
    assert fingerprint(asking, code=False) != fingerprint(problem, code=False)
