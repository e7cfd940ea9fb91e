"""Several devices: games, or the rows of a matrix, over eight of them, against one. One process finds all that the
fast run asks, since the number of devices is settled when JAX starts; it runs the code of docs/devices.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from slow_tools import slow_but

from cocoax.primal.perturbation import _bits

ROWS, COLUMNS, DEVICES = 1024, 48, 8  # as on the page
LEADERS = 5  # of PDMFW in 20 rounds


def told(*words):
    given = {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={DEVICES}",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
    }
    tool = Path(__file__).parents[1] / "tools" / "sharding_tools.py"
    command = [sys.executable, tool, *words]
    done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["devices"] == DEVICES
    return found


@pytest.fixture(scope="module")
def found():
    return told()


@pytest.fixture(scope="module")
def more():
    return told("more")


@pytest.fixture
def matrix(program, request):
    """What one of the programs on a matrix split by rows has found."""
    return request.getfixturevalue("found" if program == "Auto" else "more")["matrix"][program]


def test_a_batch_is_spread_evenly_and_played_as_each_share_would_be_alone(found):
    batch = found["batch"]
    assert (batch["devices"], batch["each"], batch["games"]) == (6, 2, 11)
    assert batch["communication"] == {}
    assert batch["from the share"] == 0
    assert batch["from others"] > 0.1


def test_sets_on_the_host_are_asked_by_all_devices(found):
    assert found["hosted"]["distance"] < 1e-12


@pytest.mark.slow  # the fast run plays such a batch, and on one device goes on with what is stored
def test_studies_agree_and_go_on_with_what_other_numbers_of_devices_have_stored(more):
    assert more["study"]["distance"] < 1e-10
    assert more["study"]["missing"] == 0


def test_vmapped_games_stay_on_their_devices(found):
    assert all(found["vmapped"]["split"].values()) and len(found["vmapped"]["split"]) == 5
    assert found["vmapped"]["communication"] == {}
    assert found["vmapped"]["distance"] < 1e-10


@pytest.mark.parametrize("program", slow_but(["Auto"], ["Auto", "OCG", "PDMFW"]))
def test_games_of_a_matrix_split_by_rows_are_those_of_one_device(matrix):
    assert matrix["moved"] > 0.01
    assert matrix["distance"] < 1e-10  # of losses of about 4000


@pytest.mark.parametrize("program", slow_but(["Auto"], ["Auto", "OCG", "PDMFW", "observe"]))
def test_no_device_ever_holds_a_whole_matrix(matrix):
    assert matrix["whole"] == []
    assert all(matrix["split"].values()), matrix["split"]
    assert len(matrix["split"]) >= 4  # x, a sum of gradients, left singular vectors


@pytest.mark.parametrize("program", slow_but(["Auto"], ["Auto", "OCG", "observe"]))
def test_devices_exchange_numbers_and_short_vectors_only(matrix):
    exchanged = matrix["communication"]
    assert exchanged.keys() == {"all-reduce"}
    assert exchanged["all-reduce"] <= 4 * COLUMNS


@pytest.mark.slow
def test_random_words_are_exchanged_but_not_gathered(more):
    exchanged = more["matrix"]["PDMFW"]["communication"]
    assert exchanged.keys() <= {"all-reduce", "all-to-all"}
    assert exchanged["all-reduce"] <= LEADERS * COLUMNS
    assert exchanged.get("all-to-all", 0) <= LEADERS * ROWS * COLUMNS // DEVICES


def test_what_is_gathered_is_found_out(found):
    gathering = found["matrix"]["gathering"]
    assert gathering["communication"] == {"all-gather": ROWS * COLUMNS}
    assert gathering["whole"] == [[ROWS, COLUMNS]]


@pytest.mark.parametrize("count", [2, 7, 2500])
def test_random_words_are_those_of_threefry_in_its_own_order(count):
    key = jax.random.key(3)
    expected = threefry_2x32(jax.random.key_data(key), np.arange(count, dtype=np.uint32))
    np.testing.assert_array_equal(_bits(key, count), expected)
