"""Regret that is known without solving: the best bound that the tangents of the rounds so far prove."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import check, tree
from ..core.summaries import Summary, is_known, number
from ..domains.base import AbstractDomain
from ..errors import ProblemError
from ..problem.minorants import Minorants
from ..problem.policy_sums import PolicySums
from .comparator import float64

_TINY = np.finfo(float).tiny
_SURE = 1e-9  # of the numbers that it is made of, by which a proof of infeasibility must be positive; of float64
_ROUNDINGS = 16  # and that many roundings of shorter numbers


class Certificate(eqx.Module):
    r"""A proven upper bound on the regret so far, against every fixed decision that meets the constraints in total.

    For every x in X with $\sum_sg_s(x)\le0$: $\sum_sf_s(x_s)-\sum_sf_s(x)\le$ `regret`. It holds for every sequence of
    convex rounds, whatever took the decisions; rounding is allowed for, if each round's values and gradients are right
    to the last bit of their dtype. Where x keeps the constraints in expectation only, and $\sum_sg_s(x)\le c$, add
    $\langle\lambda,c\rangle$ with the `multiplier` $\lambda$. If a gradient was not finite, the bound is infinite.

    If `infeasible`, no x in X meets them: $\langle\lambda,\sum_sg_s(x)\rangle>0$ for all of them, with the
    `multiplier` $\lambda\ge0$; there is no regret then, and the bound is $-\infty$. It is said only where that is
    more than $10^{-9}$ of the sums that it is made of, in float32 $2\cdot10^{-6}$: rounding proves nothing.

    >>> import jax, jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(cx.domains.ProbabilitySimplex(2), lambda x, cost: jnp.vdot(cost, x))
    >>> costs = jnp.tile(jnp.array([1.0, 0.0]), (10, 1))
    >>> game = cx.play(problem, cx.learners.Stay(), costs, key=jax.random.key(0), certify=True)
    >>> certificate = game.certificate()  # half of the weight on what costs 1, for ten rounds
    >>> round(float(certificate.regret), 4), round(float(certificate.mean), 4)
    (5.0, 0.5)
    >>> print(certificate)
    Certificate after 10 rounds
      regret  at most 5, 0.5 a round
    """

    regret: np.ndarray
    multiplier: np.ndarray  # (m,)
    infeasible: np.ndarray
    rounds: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The bound for each round."""
        return self.regret / np.maximum(self.rounds, 1)

    def __repr__(self):
        if not is_known(self.regret, self.multiplier, self.infeasible, self.rounds) or np.ndim(self.regret):
            return eqx.tree_pformat(self)
        bound = ("regret", f"at most {number(self.regret)}, {number(self.mean)} a round")
        proof = ("infeasible", "no fixed decision meets the constraints; the multiplier proves it")
        rows: list[tuple[str, str]] = [proof if self.infeasible else bound]
        if np.size(self.multiplier):
            rows.append(("multiplier", ", ".join(map(number, self.multiplier))))
        return str(Summary(f"Certificate after {int(self.rounds):,} rounds", rows))


def certificate(domain: AbstractDomain, minorants: Minorants, *, lmos: Any = 20) -> Certificate:
    r"""The smallest bound found with this many LMOs: $\min_{\lambda\ge0}$ by cutting planes, from the mean multiplier.

    The bound is convex in $\lambda$, every vertex y gives a plane below it, and every value is valid by itself.
    """
    lmos = check.whole(lmos, "lmos", ProblemError, low=1)
    if tree.is_traced(domain, minorants):
        raise ProblemError("a certificate is made on the host; ask for it outside jit and vmap")
    eps = float(jnp.finfo(minorants.sums.loss.dtype).eps)
    sure = max(_SURE, _ROUNDINGS * eps)
    with jax.enable_x64(True):
        domain, minorants = float64(domain), _settled(float64(minorants))
        minorants = _cautious(minorants, domain, eps)
        search = _Search(domain, minorants, sure)
        for _ in range(lmos):
            if not search.step():
                break
    return Certificate(
        np.asarray(search.bound), search.multiplier, np.asarray(search.infeasible), np.asarray(minorants.rounds)
    )


def policy_certificate(loss: Any, policy: PolicySums) -> Certificate:
    """A bound on the regret against every policy that sees each request before it decides, at this total loss."""
    if tree.is_traced(loss, policy):
        raise ProblemError("a certificate is made on the host; ask for it outside jit and vmap")
    with jax.enable_x64(True):
        lower = np.asarray(float64(policy).lower_bounds())
    lower = np.where(np.isfinite(lower), lower, -np.inf)
    best = int(lower.argmax())
    regret, prices = np.asarray(float(loss) - lower[best]), np.asarray(policy.prices, float)[best]
    return Certificate(regret, prices, np.asarray(False), np.asarray(policy.rounds))


class _Search:
    """Kelley's cutting planes: the lower bound on the best loss is concave in the multiplier, and below each plane."""

    def __init__(self, domain, minorants, sure):
        self.domain, self.minorants, self.sure = domain, minorants, sure
        self.total = float(minorants.sums.loss)
        self.next = np.asarray(minorants.mean_multiplier)
        self.multiplier, self.bound, self.infeasible = self.next, np.inf, False
        self.planes: list[np.ndarray] = []
        self.reach = 10.0  # how far multipliers may go, in units of (loss / constraint)

    def step(self) -> bool:
        """One LMO; whether another may help."""
        lower, plane = (np.asarray(part) for part in _evaluate(self.domain, self.minorants, self.next))
        if self.total - lower < self.bound:
            self.bound, self.multiplier = float(self.total - lower), self.next
        if not len(self.next) or not np.isfinite(plane).all():
            return False  # gradients that are not finite prove nothing
        self.planes.append(plane)
        found = _highest(np.stack(self.planes), self.reach)
        if found is None:
            return False
        previous, (self.next, highest, at_edge) = self.next, found
        if at_edge:
            self.reach *= 10
            if _is_proof(self.domain, self.minorants, self.next, self.sure):
                self.bound, self.multiplier, self.infeasible = -np.inf, self.next, True
                return False
        # at the edge the planes say nothing about larger multipliers, of which the mean multiplier may be one
        closed = not at_edge and highest <= self.total - self.bound + 1e-9 * max(1.0, abs(self.total))
        return not closed and not np.array_equal(previous, self.next)


def _highest(planes, reach):
    """The multiplier whose lowest plane is highest, that height, and whether it is as large as it may be; None where
    HiGHS gives up, as at multipliers so large that planes differ by rounding only."""
    from scipy.optimize import linprog  # loaded only where it is used; jax brings it

    of_loss, of_constraints = (np.maximum(np.abs(part).max(0), _TINY) for part in (planes[:, :1], planes[:, 1:]))
    heights, slopes = planes[:, :1] / of_loss, planes[:, 1:] / of_constraints
    answer = linprog(
        np.append(-1.0, np.zeros(len(of_constraints))),
        A_ub=np.hstack([np.ones_like(heights), -slopes]),
        b_ub=heights[:, 0],
        bounds=[(None, None)] + [(0, reach)] * len(of_constraints),
    )
    if answer.x is None:
        return None
    height, *multiplier = answer.x
    return np.array(multiplier) * of_loss / of_constraints, height * float(of_loss[0]), max(multiplier) > 0.99 * reach


@eqx.filter_jit
def _evaluate(domain, minorants, multiplier):
    """The lower bound at a multiplier, and the plane above it: the minorants at the vertex that attains it."""
    multiplier = jnp.asarray(multiplier)
    weights = jnp.concatenate([jnp.ones(1), multiplier])
    vertex = domain.lmo(tree.combine(weights, minorants.slope))
    return minorants.lower_bound(domain, multiplier), minorants.at(vertex.dense())


@eqx.filter_jit
def _least(domain, minorants, multiplier):
    """The least violation, and how large the numbers are that it is a difference of."""
    slopes = jax.tree.map(lambda leaf: leaf[1:], minorants.slope)
    reach = sum(jnp.abs(jax.vmap(domain.lowest)(tree.scale(sign, slopes))) for sign in (1.0, -1.0))
    size = multiplier @ (jnp.abs(minorants.sums.offset[1:]) + minorants.sums.size.sum(0)[1:] + reach)
    return minorants.least_violation(domain, multiplier), size


def _is_proof(domain, minorants, multiplier, sure) -> bool:
    """Whether no decision meets the constraints, by this multiplier."""
    least, size = _least(domain, minorants, jnp.asarray(multiplier / multiplier.max()))
    return bool(least > sure * size)


_cautious = eqx.filter_jit(Minorants.cautious)


def _settled(minorants):
    """Sums with what rounding had taken from them."""
    sums = jax.tree.map(jnp.subtract, minorants.sums, minorants.lost)
    return Minorants(sums, jax.tree.map(jnp.zeros_like, sums), minorants.rounds)
