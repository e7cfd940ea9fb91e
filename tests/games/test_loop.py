"""The loop over rounds as GPUs run it: numbers of a state are one array, and vertices are added up without scatters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax.games import loop


@pytest.fixture
def on_gpu(monkeypatch):
    """Programs are made as for a GPU, and run here."""

    def begin():
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
        jax.clear_caches()

    cpu = jax.default_backend()
    yield begin
    monkeypatch.setattr(jax, "default_backend", lambda: cpu)
    jax.clear_caches()


STATE = {
    "number": jnp.float32(0.1),
    "few": jnp.arange(3.0) / 3,
    "flag": jnp.array(True),
    "place": jnp.int32(2**30 + 1),
    "vector": jnp.arange(100.0),
    "key": jax.random.key(3),
    "nothing": None,
}


def test_a_state_comes_back_to_the_bit_from_what_a_loop_carries(on_gpu):
    on_gpu()
    carried, whole = loop._packing(STATE)
    numbers, others = carried(STATE)
    assert numbers.shape == (5,) and len(others) == 3
    again = whole((numbers, others))
    assert jax.tree.structure(again) == jax.tree.structure(STATE)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(STATE)):
        assert one.dtype == other.dtype and jnp.array_equal(one, other)


def test_on_cpus_nothing_is_packed():
    carried, whole = loop._packing(STATE)
    assert carried(STATE) is STATE and whole(STATE) is STATE


def test_states_without_numbers_are_carried_as_they_are(on_gpu):
    on_gpu()
    _, rows = loop.play_rounds(lambda state, t: (state + 1, state[0] + t), jnp.zeros(20, jnp.int32), 3)
    assert rows.tolist() == [0, 2, 4]


@pytest.mark.parametrize("domain", [cx.domains.ProbabilitySimplex(30), cx.domains.Box(-1.0, jnp.ones(30))])
def test_games_on_gpus_agree_with_games_on_cpus(on_gpu, domain):
    problem = cx.Problem(domain, lambda x, r: 0.5 * jnp.sum((x - r) ** 2), lambda x, r: x[0] - 0.2)
    rounds = jax.random.uniform(jax.random.key(0), (40, 30))

    def decision():
        return cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(1)).decision

    here = decision()
    on_gpu()
    np.testing.assert_allclose(decision(), here, atol=2e-6)
