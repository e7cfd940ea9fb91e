r"""Accelerated projected gradients with restarts, for smooth losses and constraints over sets that project.

$\min_{x\in X} F(x) + \frac{1}{2\rho}\|[\lambda + \rho G(x)]_+\|^2$ by FISTA (Beck, Teboulle, 2009) with adaptive
restarts (O'Donoghue, Candes, 2015), then $\lambda \leftarrow [\lambda + \rho G(x)]_+$ (Rockafellar, 1976). Affine
constraints are $Jx - h$, without a pass over the rounds. Many steps are one compiled call; between two calls the point
is reported and the clock asked.
"""

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .charges import loss_alone, steepness
from .objective import Functions
from .search import Search

_CALL = 0.25  # seconds that a compiled call should take
_FIRST, _MOST = 10, 5000  # steps of a call
_STUCK = 60  # calls that do not narrow the gap
_ROUGH = 1e7  # growth of the curvature after which the loss is taken for one with kinks
_DENSE = 1500  # entries up to which a quadratic loss is collapsed into one matrix


class Quadratic(eqx.Module):
    """x'Hx/2 + b'x + c."""

    H: jax.Array
    b: jax.Array
    c: jax.Array

    def loss(self, x):
        image = self.H @ x
        return 0.5 * (x @ image) + self.b @ x + self.c, image + self.b


class Whole(eqx.Module):
    """The loss of all rounds."""

    functions: Functions

    def loss(self, x):
        value, _, slope = self.functions.measure(x, jnp.zeros(0, x.dtype))
        return value, slope


class Curved(eqx.Module):
    """The loss and the constraints of all rounds, these in the given units."""

    functions: Functions
    unit: jax.Array

    def charged(self, x, rows):
        value, constraint, _ = self.functions.measure(x, jnp.zeros_like(self.unit))
        weights = rows.weights(constraint / self.unit)
        slope = self.functions.measure(x, weights / self.unit)[2]
        return value + weights @ weights / (2 * rows.price), slope


class State(NamedTuple):
    x: Any
    y: Any
    momentum: Any
    curvature: Any
    residual: Any  # about the norm of the gradient that the set does not take up
    steps: Any


class Rows(NamedTuple):
    """Jx <= h with rows of length one, and how constraints are charged."""

    J: Any
    h: Any
    multiplier: Any
    price: Any

    def weights(self, constraint):
        return jnp.maximum(self.multiplier + self.price * constraint, 0)


def _charged(model, x, rows):
    """F and the charges: value and slope."""
    if isinstance(model, Curved):
        return model.charged(x, rows)
    value, slope = model.loss(x)
    weights = rows.weights(rows.J @ x - rows.h)
    return value + weights @ weights / (2 * rows.price), slope + weights @ rows.J


class Accelerated:
    """`solve` returns when it is done or makes no more progress."""

    rough: float = _ROUGH
    patience: float = np.inf  # seconds

    def __init__(self, search: Search):
        self.search, structure = search, search.structure
        norm = np.linalg.norm(structure.jacobian, axis=1) if structure.affine else steepness(search)
        self.norm = np.where(norm > 0, norm, 1.0)
        self.affine = structure.affine
        self.J = structure.jacobian / self.norm[:, None]
        self.h = self.J @ search.first.point - search.first.constraint / self.norm
        self.model = self._model()

    def _model(self):
        objective, structure = self.search.objective, self.search.structure
        if not structure.affine:
            return Curved(objective.functions, jnp.asarray(self.norm))
        data = sum(leaf.size for leaf in jax.tree.leaves(objective.rounds))
        size, first = len(self.search.first.point), self.search.first
        if structure.quadratic and size <= _DENSE and data > 4 * size**2:
            H = objective.products(first.point, np.zeros(objective.count), np.eye(size))
            image = H @ first.point
            constant = first.loss - first.slope @ first.point + 0.5 * first.point @ image
            return Quadratic(*(jnp.asarray(part) for part in (0.5 * (H + H.T), first.slope - image, constant)))
        return Whole(loss_alone(objective))

    def solve(self):
        with self.search.patience(_STUCK):
            self._solve()

    def _solve(self):
        search, oracle = self.search, self.search.oracle
        x, direction = search.best, search.oracle.lmo(search.best.slope) - search.best.point
        near = search.objective.measure(x.point + 0.1 * direction, np.zeros(search.objective.count))
        floor = 1e-3 * np.linalg.norm(x.slope) / oracle.diameter
        curvature = max(
            10 * np.linalg.norm(near.slope - x.slope) / max(np.linalg.norm(direction), 1e-300), floor, 1e-12
        )
        price = multiplier = search.guess * self.norm
        rho, first = curvature, curvature
        state = State(x.point, x.point, *(np.asarray(number) for number in (1.0, curvature, np.inf, 0)))
        steps, enough, violation = self._first_steps(), np.inf, np.inf
        ends = time.monotonic() + self.patience
        while not search.done and time.monotonic() < ends:
            began = time.monotonic()
            target = enough if np.isfinite(enough) else 0.0
            numbers = (np.asarray(number) for number in (target, 0.01 * floor, steps))  # not compiled in
            rows = Rows(self.J, self.h, multiplier, np.asarray(rho))
            state = _run(self.model, oracle.domain, oracle.like, rows, state, *numbers)
            state = State(*(np.asarray(part) for part in state))
            took = time.monotonic() - began
            if not np.isfinite(state.x).all() or state.curvature > self.rough * first:
                return
            slack = self._slack(state.x)
            price = np.maximum(multiplier + rho * slack, 0.0)
            self._report(state.x, price / self.norm)
            if search.best_violation > search.tol:
                jacobian = self.J * self.norm[:, None] if self.affine else search.objective.jacobian(state.x)
                search.refute(state.x, slack * self.norm, jacobian, price / self.norm)
            if len(price) and (state.residual <= target or not np.isfinite(enough)):
                broken = np.abs(price - multiplier).max() / rho
                rho, violation = rho * (4.0 if broken > 0.25 * violation else 1.0), broken
                least = 0.1 * search.precision / oracle.diameter  # less would not be seen in the gap
                multiplier, enough = price, max(0.3 * min(enough, state.residual), least)
                state = state._replace(y=state.x, momentum=np.asarray(1.0))
            longest = min(_CALL, search.clock.left / 4)
            steps = int(np.clip(steps * np.clip(longest / max(took, 1e-9), 0.2, 4.0), 1, _MOST))

    def _first_steps(self):
        """How many steps fit into the first call, by the time of one projection and one pass over the rounds."""
        began, none = time.monotonic(), np.zeros(self.search.objective.count)
        self.search.objective.measure(self.search.oracle.nearest(self.search.best.point + 1e-9), none)
        return int(np.clip(_CALL / max(time.monotonic() - began, 1e-9), 1, _FIRST))

    def _slack(self, point):
        """The constraints, in units of their slopes."""
        if self.affine:
            return self.J @ point - self.h
        return self.search.objective.measure(point, np.zeros(len(self.norm))).constraint / self.norm

    def _report(self, point, multiplier):
        """The point itself, and if it breaks constraints, a mixture with one that does not."""
        at = self.search.objective.measure(point, multiplier)
        self.search.report(at, multiplier)
        self.search.mix(at, multiplier)


@eqx.filter_jit
def _run(model, domain, like, rows, state, target, floor, most):
    """Up to `most` steps; fewer where the residual falls below the target."""

    def project(point):
        return ravel_pytree(domain.project(ravel_pytree(like)[1](point)))[0]

    def step(state):
        value, slope = _charged(model, state.y, rows)

        def attempt(curvature):
            point = project(state.y - slope / curvature)
            move = point - state.y
            rise = _charged(model, point, rows)[0] - value - slope @ move
            return point, move @ move, rise, curvature

        def too_far(tried):
            _, square, rise, curvature = tried
            rounding = 1e-13 * (jnp.abs(value) + jnp.sqrt(slope @ slope * square))
            return ~(rise <= 0.5 * curvature * square + rounding) & (curvature < 1e30)

        point, square, rise, curvature = jax.lax.while_loop(
            too_far, lambda tried: attempt(2 * tried[3]), attempt(state.curvature)
        )
        following = 0.5 * (1 + jnp.sqrt(1 + 4 * state.momentum**2))
        back = (state.y - point) @ (point - state.x) > 0
        beta = jnp.where(back, 0, (state.momentum - 1) / following)
        y = point + beta * (point - state.x)
        residual = curvature * jnp.sqrt(square)
        shrink = jnp.where(rise < 0.1 * curvature * square, 0.5, 0.97)
        eased = jnp.maximum(curvature * shrink, floor)
        return State(point, y, jnp.where(back, 1, following), eased, residual, state.steps + 1)

    def go_on(state):
        return (state.steps < most) & ~(state.residual <= target)

    first = State(*(jnp.asarray(part) for part in state))
    first = first._replace(steps=jnp.zeros_like(first.steps), residual=jnp.full_like(first.residual, jnp.inf))
    return jax.lax.while_loop(go_on, step, first)
