r"""$\min_{x\in X} F(x)$ subject to $G(x)\le 0$, convex, by linear minimisation only, with a dual lower bound.

Smooth phase: a linearly constrained Lagrangian method (Robinson, 1972). Around $x_k$ with multiplier
$\lambda_k$ it minimises $F + \langle\lambda_k, G-\bar G_k\rangle$ over $X\cap\{\bar G\le 0\}$, where $\bar G_k$
linearises G at $x_k$, by accelerated proximal steps with restarts (Beck, Teboulle, 2009; O'Donoghue, Candes, 2015).
Affine constraints are thus met exactly by every step, and need one k only. If F or G turns out not to be smooth,
a proximal bundle method (Kiwiel, 1990) takes over, which sees them through their linearisations only.
"""

import contextlib

import numpy as np

from .proximal_step import Pieces, ProximalStep
from .quadratic import Unsolved
from .search import Evaluation, Infeasible, Proof, Search

_SMOOTH_STEPS = 2000
_BUNDLE_STEPS = 1000
_STUCK = 1000  # rounds that do not narrow the gap: steps are too small for their accuracy
_MOST_CUTS = 120
_SUFFICIENT = 0.1
_STEEPEST = 1e30  # curvature beyond which a step changes nothing but by rounding


class Solver:
    """The state of the search: `best`, the best point that meets the constraints; `lower`, proven by `multiplier`.

    `objective` answers `measure(x, weights) -> Evaluation` and `jacobian(x) -> (M, d)`.
    """

    def __init__(self, search: Search):
        self.search, self.proximal = search, ProximalStep(search.oracle, search.check)
        self.objective, self.oracle = search.objective, search.oracle
        self.slopes, self.offsets = np.zeros((0, len(search.first.point))), np.zeros(0)
        self.owner, self.norm = np.zeros(0, int), np.zeros(0)
        self.penalty = 0.0

    def solve(self):
        for phase in (self._smooth, self._bundle):
            # a step that no solver finds: the certificate stays as open as it is
            with self.search.patience(_STUCK), contextlib.suppress(Unsolved):
                phase()
            if self.search.done:
                return

    # Rows: linearised constraints, scaled to unit slopes.

    def _linearize(self, at: Evaluation, keep=None):
        jacobian = self.objective.jacobian(at.point)
        norm = np.linalg.norm(jacobian, axis=1)
        norm = np.where(norm > 0, norm, 1.0)
        keep = np.zeros(len(self.owner), bool) if keep is None else keep
        self.slopes = np.concatenate([self.slopes[keep], jacobian / norm[:, None]])
        self.offsets = np.concatenate([self.offsets[keep], (at.constraint - jacobian @ at.point) / norm])
        self.owner = np.concatenate([self.owner[keep], np.arange(len(norm))])
        self.norm = np.concatenate([self.norm[keep], norm])
        return jacobian

    def _rows(self, y):
        return Pieces(self.slopes, self.slopes @ y + self.offsets)

    def _per_constraint(self, row_weights):
        weights = np.zeros(len(self.search.multiplier))
        np.add.at(weights, self.owner, row_weights / self.norm)
        return weights

    def _excess(self, x):
        return np.max(self.slopes @ x + self.offsets, initial=0.0)

    def _step(self, c, L, y, loss, guess=None):
        """A proximal step; where the rows cannot be met, either the proof or a larger penalty."""
        gap = min(self.search.gap, abs(self.search.latest.loss - self.search.lower))
        accuracy = 1e-4 * max(gap, self.search.precision)
        while True:
            self.search.check()
            step = self.proximal.step(c, L, y, loss, self._rows(y), self.penalty, accuracy, guess)
            if step.excess <= 1e-9 * self.oracle.diameter or step.row_weights.sum() < 0.9 * self.penalty:
                return step
            shares = step.row_weights / step.row_weights.sum()
            vertex = self.oracle.lmo(shares @ self.slopes)
            bound = shares @ (self.slopes @ vertex + self.offsets)
            multiplier = self._per_constraint(shares)
            if bound > 1e-9 * self.oracle.diameter:
                at = self.objective.measure(vertex, np.zeros_like(multiplier))
                bound -= self.search.rounding(vertex, at.constraint, multiplier)
            if bound > 1e-9 * self.oracle.diameter:
                raise Infeasible(multiplier / multiplier.sum(), bound / multiplier.sum())
            if self.penalty > 1e12 * self.first_penalty:
                return step
            self.penalty *= 10.0

    def _smooth(self):
        none = Pieces(np.zeros((0, len(self.search.first.point))), np.zeros(0))
        multiplier = np.zeros(len(self.search.multiplier))
        x = y = self.search.first
        around, jacobian = x, self._linearize(x)
        self.first_penalty = self.penalty = 10.0 * (np.linalg.norm(x.slope) + 1e-9)
        floor = 1e-3 * max(np.linalg.norm(x.slope) / self.oracle.diameter, 1e-12)  # linear losses have no curvature
        L, lowest = max(self._first_curvature(x), floor), np.inf
        momentum, guess, first_move, inner, affine = 1.0, None, None, 0, True

        def error(at):  # G - G_k >= 0
            return at.constraint - around.constraint - jacobian @ (at.point - around.point)

        def value(at):  # of the subproblem's loss, F + <lambda_k, G - G_k>
            return at.loss + multiplier @ error(at)

        for _ in range(_SMOOTH_STEPS):
            phi, slope = value(y), y.slope - multiplier @ jacobian
            while True:
                step = self._step(slope, L, y.point, none, guess)
                weights = self._per_constraint(step.row_weights)
                new = self.objective.measure(step.point, weights)
                d = new.point - y.point
                rise = value(new) - phi - slope @ d
                rounding = 1e-13 * max(abs(phi), abs(slope @ d))
                if rise <= 0.5 * L * (d @ d) + rounding or L > _STEEPEST:
                    break
                L *= 2.0
            guess = step.row_weights
            self.search.report(new, weights)
            if self.search.done:
                return
            lowest = min(lowest, L)
            if 1e5 * lowest < L:
                return
            gain = value(x) - value(new)
            gain += self.penalty * (self._excess(x.point) - self._excess(new.point))
            if gain < -10 * rounding and momentum > 1.0:
                momentum, beta, new_x = 1.0, 0.0, x
            else:
                following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
                beta, momentum, new_x = (momentum - 1.0) / following, following, new
                if (y.point - new.point) @ (new.point - x.point) > 0:
                    beta, momentum = 0.0, 1.0
            L = max(L * (0.5 if rise < 0.1 * L * (d @ d) else 0.97), floor)

            # A new linearisation, once the subproblem of the last one is solved well enough for it.
            affine = affine and np.all(error(new) <= 1e-11 * self.search.constraint_scale)
            inner, move = inner + 1, L * np.linalg.norm(d)
            first_move = move if first_move is None else first_move
            if not affine and (move <= 0.1 * first_move or inner >= 30):
                around, multiplier = new, weights
                keep = (guess > 1e-9 * self.penalty) | (self._rows(new.point).values > -1e-9)
                jacobian = self._linearize(new, keep & (np.arange(len(keep)) >= len(keep) - 10 * len(weights)))
                inner, first_move, guess, momentum, beta, new_x = 0, None, None, 1.0, 0.0, new
            target = new_x.point + beta * (new_x.point - x.point)
            x = new_x
            y = self.objective.measure(target, multiplier)
            if not (np.isfinite(y.loss) and np.isfinite(y.slope).all()):
                momentum, y = 1.0, self.objective.measure(x.point, multiplier)

    def _first_curvature(self, x):
        near = self.objective.measure(
            x.point + 0.1 * (self.oracle.lmo(x.slope) - x.point), np.zeros(len(self.search.multiplier))
        )
        if not np.isfinite(near.slope).all():
            return 0.0
        d = near.point - x.point
        return np.linalg.norm(near.slope - x.slope) / max(np.linalg.norm(d), 1e-300)

    def _bundle(self):
        zeros = np.zeros(len(self.search.multiplier))
        centre = self.objective.measure(self.search.best.point, zeros)
        self.slopes, self.offsets = self.slopes[:0], self.offsets[:0]
        self.owner, self.norm = self.owner[:0], self.norm[:0]
        slopes, values = np.zeros((0, len(centre.point))), np.zeros(0)  # values at the origin of each cut
        L = 0.1 * np.linalg.norm(centre.slope) / self.oracle.diameter + 1e-12
        new, nulls = centre, 0
        no_slope = np.zeros(len(centre.point))
        for _ in range(_BUNDLE_STEPS):
            slopes = np.concatenate([slopes, new.slope[None]])
            values = np.append(values, new.loss - new.slope @ new.point)
            if len(zeros):
                self._linearize(new, np.ones(len(self.owner), bool))
            loss = Pieces(slopes, values + slopes @ centre.point - centre.loss)
            step = self._step(no_slope, L, centre.point, loss)
            rows = self._rows(step.point)
            model = slopes @ step.point + values
            aggregate = step.loss_weights @ slopes + step.row_weights @ rows.slopes
            vertex = self.oracle.lmo(aggregate)
            weights = self._per_constraint(step.row_weights)
            lower = step.loss_weights @ model + step.row_weights @ rows.values - aggregate @ (step.point - vertex)
            self.search.compare(self.search.best, Proof(lower, weights, (step.point, vertex)))
            new = self.objective.measure(step.point, zeros)
            self.search.report(new, zeros)
            self.search.mix(new, zeros)
            if self.search.done:
                return
            merit = centre.loss + self.penalty * np.max(centre.constraint, initial=0.0)
            expected = merit - model.max() - self.penalty * step.excess
            gained = merit - new.loss - self.penalty * np.max(new.constraint, initial=0.0)
            if gained >= _SUFFICIENT * expected:
                centre, nulls, L = new, 0, L * 0.5
            else:
                nulls += 1
                L = L * 2.0 if nulls % 10 == 0 else L
            used = step.loss_weights > 1e-9
            used[-_MOST_CUTS // 2 :] |= len(used) < _MOST_CUTS
            slopes, values = slopes[used], values[used]
            if len(zeros):
                used = step.row_weights > 1e-9 * max(step.row_weights.max(), 1e-300)
                used[-_MOST_CUTS // 2 :] |= len(used) < _MOST_CUTS
                self.slopes, self.offsets = self.slopes[used], self.offsets[used]
                self.owner, self.norm = self.owner[used], self.norm[used]
