"""Optima by an independent solver."""

import warnings

import cvxpy as cp


def solved(loss, constraints):
    """The least value of a CVXPY program, by Clarabel."""
    reference = cp.Problem(cp.Minimize(loss), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference.solve(cp.CLARABEL)
    assert reference.status == "optimal"
    return reference.value
