"""Bounds on the regret of campaigns, from the tangents that their learners keep."""

import functools
import operator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..comparators.certificate import Certificate, certificate
from ..errors import SessionError
from ..learners.certified import Certified
from .campaigns import Campaigns

FEW, _PART = 32, 1024  # campaigns in one compiled call: a few need a program of their own


def certificate_of(campaigns: Campaigns, row: int, lmos: int) -> Certificate:
    """Of one campaign, with so many LMOs at most."""
    one = jax.tree.map(lambda leaf: leaf[0], _minorants(campaigns, np.array([row])))
    return certificate(campaigns.problem.domain, one, lmos=lmos)


def is_certified(campaigns: Campaigns) -> bool:
    return isinstance(campaigns.learner, Certified)


def bounds_of(campaigns: Campaigns, rows: np.ndarray) -> np.ndarray:
    """Of each of these campaigns, with a few LMOs in compiled code."""
    bounds = np.empty(len(rows))
    for at in range(0, len(rows), _PART):
        part = rows[at : at + _PART]
        padded = np.resize(part, _PART if len(rows) > FEW else FEW)
        found = _bounds(campaigns.problem.domain, _minorants(campaigns, padded))
        bounds[at : at + _PART] = np.asarray(found)[: len(part)]
    return bounds


@eqx.filter_jit
def _bounds(domain, minorants):
    return jax.vmap(lambda one: one.good_regret_bound(domain))(minorants)


def _minorants(campaigns: Campaigns, rows: np.ndarray) -> Any:
    """Along a leading axis."""
    if not is_certified(campaigns):
        raise SessionError("a certificate needs the tangents of all rounds; begin the fleet with certify=True")
    states = [campaigns.states(rows, copy).minorants for copy in range(campaigns.copies)]
    return functools.reduce(operator.add, [jax.tree.map(jax.numpy.asarray, one) for one in states])
