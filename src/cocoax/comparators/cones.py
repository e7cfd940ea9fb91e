"""Sets as cone programs: small ones are handed to a solver whole."""

from typing import Any, NamedTuple

import numpy as np
from jax.flatten_util import ravel_pytree

from ..domains.composed.product import Product
from ..domains.composed.transforms import Scale, Translate
from ..domains.polytopes.couplings import Birkhoff
from ..domains.polytopes.linear_program import AbstractHosted, LinearProgram
from ..domains.vectors.balls import Box, L1Ball, L2Ball, LinfBall
from ..domains.vectors.simplices import ProbabilitySimplex, UnitSimplex
from .oracle import blocks

_DENSE = 50  # entries up to which matrices are written down: SciPy needs longer to make sparse ones


class Part(NamedTuple):
    """Rows with b - A z in a cone: "zero", "positive" or "second" (the second-order cone)."""

    matrix: Any  # (k, n), sparse if it is large
    side: np.ndarray
    cone: str


class Cones(NamedTuple):
    """{x : parts hold for (x, extra)}, with some extra variables."""

    size: int
    extra: int
    parts: list[Part]


def cones_of(domain) -> Cones | None:
    """The set as a cone program, if it is one of those that are known here."""
    if isinstance(domain, Scale | Translate):
        return _moved(domain)
    if not isinstance(domain, Product):
        return _known(domain)
    factors = [cones_of(block) for block in blocks(domain)]
    if any(factor is None for factor in factors):
        return None
    size, extra = (sum(getattr(factor, name) for factor in factors if factor) for name in ("size", "extra"))
    parts, first, behind = [], 0, size
    for factor in factors:
        assert factor is not None
        place = np.r_[first : first + factor.size, behind : behind + factor.extra]
        embed = _chosen(place, size + extra)
        parts += [part._replace(matrix=part.matrix @ embed) for part in factor.parts]
        first, behind = first + factor.size, behind + factor.extra
    return Cones(size, extra, parts)


def _moved(domain: Scale | Translate) -> Cones | None:
    """x / a or x - s in place of x."""
    inner = cones_of(domain.domain)
    if inner is None:
        return None
    if isinstance(domain, Scale):
        units = np.concatenate([np.full(inner.size, 1 / float(domain.factor)), np.ones(inner.extra)])
        parts = [part._replace(matrix=_columns(part.matrix, units)) for part in inner.parts]
    else:
        shift = np.concatenate([ravel_pytree(domain.shift)[0], np.zeros(inner.extra)])
        parts = [part._replace(side=part.side + part.matrix @ shift) for part in inner.parts]
    return inner._replace(parts=parts)


def _known(domain) -> Cones | None:
    from scipy import sparse

    n = domain.dimension
    eye: Any = _chosen(np.arange(n), n)
    ones, none, zeros = np.ones((1, n)), np.zeros((1, n)), np.zeros(n)
    if n > _DENSE:
        ones, none = sparse.csr_array(ones), sparse.csr_array(none)
    match domain:
        case Box():
            return Cones(n, 0, _between(eye, np.ravel(domain.lower), np.ravel(domain.upper)))
        case LinfBall():
            return Cones(n, 0, _between(eye, *(sign * np.full(n, domain.radius) for sign in (-1.0, 1.0))))
        case ProbabilitySimplex():
            return Cones(n, 0, [Part(ones, np.array([float(domain.total)]), "zero"), Part(-eye, zeros, "positive")])
        case UnitSimplex():
            total = Part(ones, np.array([float(domain.total)]), "positive")
            return Cones(n, 0, [total, Part(-eye, zeros, "positive")])
        case L1Ball():
            sides = [Part(beside(sign * eye, -eye), zeros, "positive") for sign in (1.0, -1.0)]
            total = beside(none, ones)
            return Cones(n, n, [*sides, Part(total, np.array([float(domain.radius)]), "positive")])
        case L2Ball():
            rows = above(none, -eye)
            return Cones(n, 0, [Part(rows, np.r_[float(domain.radius), zeros], "second")])
        case Birkhoff():
            sums = sparse.kron(sparse.eye_array(domain.n), np.ones((1, domain.n)))
            others = sparse.kron(np.ones((1, domain.n)), sparse.eye_array(domain.n - 1, domain.n))
            rows = sparse.vstack([sums, others], format="csr")
            return Cones(n, 0, [Part(rows, np.ones(2 * domain.n - 1), "zero"), Part(-eye, zeros, "positive")])
        case AbstractHosted(oracle=LinearProgram()):
            matrix, rows, bounds = domain.oracle.original
            return Cones(n, 0, [*_between(matrix.tocsr(), *rows), *_between(eye, *bounds)])
    return None


def _chosen(place, size):
    """Rows of the identity."""
    from scipy import sparse

    if size <= _DENSE:
        return np.eye(size)[place]
    return sparse.csr_array((np.ones(len(place)), (np.arange(len(place)), place)), (len(place), size))


def _columns(matrix, units):
    """A matrix with its columns in other units."""
    from scipy import sparse

    return matrix * units if isinstance(matrix, np.ndarray) else sparse.csr_array(matrix @ sparse.diags_array(units))


def beside(*blocks) -> Any:
    from scipy import sparse

    is_dense = all(isinstance(block, np.ndarray) for block in blocks)
    return np.hstack(blocks) if is_dense else sparse.hstack(blocks, format="csr")


def above(*blocks) -> Any:
    from scipy import sparse

    is_dense = all(isinstance(block, np.ndarray) for block in blocks)
    return np.vstack(blocks) if is_dense else sparse.vstack(blocks, format="csr")


def _between(matrix, lower, upper) -> list[Part]:
    """lower <= matrix x <= upper, with equations where both are the same."""
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    same = lower == upper
    low, high = (~same & np.isfinite(bound) for bound in (lower, upper))
    parts = [
        Part(matrix[same], upper[same], "zero"),
        Part(matrix[high], upper[high], "positive"),
        Part(-matrix[low], -lower[low], "positive"),
    ]
    return [part for part in parts if len(part.side)]
