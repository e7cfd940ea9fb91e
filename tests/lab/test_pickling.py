"""Modules that a script defines work in another process, with their fields."""

import pickle
import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import pytest

import cocoax as cx
from cocoax.lab.run.pickling import pickled

SCRIPT = """
import equinox as eqx, jax
class Own(eqx.Module):
    a: jax.Array
    n: int = eqx.field(static=True, default=3)
    def __init__(self, a, n=4):
        self.a, self.n = a, n
    def again(self):
        return Own(self.a + 1, self.n)
class Parent(eqx.Module):
    x: jax.Array
    y: list = eqx.field(default_factory=list)
class Child(Parent):
    z: float = eqx.field(converter=float, default=2.0)
    def twice(self):
        return Child(self.x, z=2 * self.z)
"""
CHECKS = """
import dataclasses, pickle, sys, jax
own, child, kind = pickle.load(sys.stdin.buffer)
assert [leaf.tolist() for leaf in jax.tree.leaves(own)] == [[1, 1]] and own.n == 4
again = own.again()
assert again.a.tolist() == [2, 2] and jax.tree.structure(again) == jax.tree.structure(own)
assert type(child) is kind and jax.tree.leaves(child.twice())[1] == 4.0 and child.y == []
assert dataclasses.fields(kind)[-1].default_factory is dataclasses.MISSING
"""


def test_modules_of_a_script_have_their_fields_elsewhere():
    script: dict[str, Any] = {"__name__": "nowhere"}
    exec(SCRIPT, script)
    content = pickled([script["Own"](jnp.ones(2)), script["Child"](jnp.ones(2)), script["Child"]])
    done = subprocess.run([sys.executable, "-c", CHECKS], input=content, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_modules_stay_as_they_are_in_the_process_that_sent_them():
    script: dict[str, Any] = {"__name__": "here"}
    exec(SCRIPT, script)
    child = script["Child"]
    twice = child.twice
    for _ in range(2):  # a task, and the next one
        assert pickle.loads(pickled(child)) is child and child.twice is twice


def test_what_cannot_be_sent_is_named():
    with pytest.raises(cx.LabError, match="cannot be sent to another process: TypeError"):
        pickled({"a": (each for each in [])})
