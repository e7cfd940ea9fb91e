r"""Interior points with dense linear algebra, for programs over simple sets that a sparse solver finds too full.

$\min \tfrac12 x^\top Hx + c^\top x + \langle w, |Ax + b|\rangle$ subject to $Jx \le h$ and x in a product of boxes,
simplices, l1 balls and l2 balls, by a primal-dual method with predictor and corrector (Mehrotra, 1992). Bounds and
kinks only change a diagonal, so a step is one factorisation of a matrix as large as x; where H is diagonal, of one as
large as there are kinks.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .factorisation import Program, inverse
from .quadratic import Unsolved
from .variables import Variables

_STEPS = 60
_BACK = 0.995  # of the way to the boundary
_SHORT, _STUCK = 1e-3, 4  # steps so short, so often: it cannot go on
_WORSE = 1e6  # times as far from optimal as before: rounding


class Answer(NamedTuple):
    point: np.ndarray
    rows: np.ndarray  # multipliers of Jx <= h
    kinks: np.ndarray  # y with |y| <= w, for which <y, Ax + b> is about <w, |Ax + b|>


class _Pairs:
    """Slacks that stay positive, and their multipliers: bounds, rows, and both sides of the kinks."""

    def __init__(self, slacks, duals):
        self.slacks, self.duals = slacks, duals

    @property
    def total(self):
        return sum(s @ z for s, z in zip(self.slacks, self.duals))

    @property
    def mean(self):
        return self.total / max(sum(map(len, self.slacks)), 1)

    def longest(self, moves):
        """The longest step, at most 1, after which all are still positive."""
        longest = 1.0
        for values, steps in zip(self.slacks + self.duals, moves.slacks + moves.duals):
            down = steps < 0
            if down.any():
                longest = min(longest, float(np.min(values[down] / -steps[down])))
        return longest

    def after(self, step, moves):
        return _Pairs(
            *(
                [old + step * way for old, way in zip(olds, ways)]
                for olds, ways in ((self.slacks, moves.slacks), (self.duals, moves.duals))
            )
        )


def solve_interior(program: Program, variables: Variables, gap: Callable, excess: float, check: Callable) -> Answer:
    """To within `gap(value)` in value, where rows may be exceeded by `excess`. Raises `Unsolved` if it breaks down."""
    method, short = _Method(program, variables), 0
    least, best = (np.inf, np.inf), None
    for _ in range(_STEPS):
        check()
        method.measure()
        missing = max(method.excess - excess, 0.0), method.pairs.total + method.error
        if missing < least and np.isfinite(method.v).all():
            least, best = missing, method.answer()
        goal = gap(method.value)
        if short >= _STUCK or missing <= (0.0, goal) or missing[1] > _WORSE * max(least[1], goal):
            break
        short = short + 1 if method.step() < _SHORT else 0
    if best is None:
        raise Unsolved("interior points", np.zeros(len(program.h)))
    return best


class _Method:
    def __init__(self, program, variables):
        self.program, self.variables = program, variables
        self.low, self.high = np.isfinite(variables.lower), np.isfinite(variables.upper)
        self.v = variables.start
        self.rows = np.concatenate([variables.pull(program.J), np.zeros((len(variables.totals), len(self.v)))])
        self.equal = np.array([False] * len(program.h) + [one.kind == "equal" for one in variables.totals], bool)
        self.y = np.zeros(len(self.rows))
        x = variables.point(self.v)
        values, z = self._rows(), program.A @ x + program.b
        inequality = np.maximum(-values, 0.1 * np.abs(values).max(initial=0.0) + 1e-8)[~self.equal]
        spread = np.abs(z) + np.abs(z).mean() + 1e-12 if len(z) else z
        slacks = [*self._bounds(), inequality, spread - z, spread + z]
        slope = np.abs(program.smooth(x)[1]).mean() + (program.w @ np.abs(program.A)).mean()
        bounded = np.concatenate(slacks[:2])
        level = max(slope * (bounded.mean() if len(bounded) else np.abs(inequality).mean()), 1e-300)
        self.pairs = _Pairs(slacks, [*(level / s for s in slacks[:3]), 0.5 * program.w, 0.5 * program.w])
        self.y[~self.equal] = self.pairs.duals[2]

    def _bounds(self):
        return (self.v - self.variables.lower)[self.low], (self.variables.upper - self.v)[self.high]

    def _rows(self):
        """Values of all rows, at most 0; and brings the slopes of lengths up to date."""
        own, values = len(self.program.h), self.rows @ self.v
        values[:own] -= self.program.h
        for row, total in enumerate(self.variables.totals, own):
            part = self.v[total.which]
            if total.kind == "length":
                self.rows[row, total.which] = part / total.limit
                values[row] = 0.5 * (part @ part / total.limit - total.limit)
            else:
                self.rows[row, total.which] = 1.0
                values[row] = part.sum() - total.limit
        return values

    def answer(self):
        x, own = self.variables.point(self.v), len(self.program.h)
        return Answer(x, np.maximum(self.y[:own], 0.0), self.pairs.duals[3] - self.pairs.duals[4])

    def measure(self):
        """By how much the optimality conditions are broken here."""
        program, pairs, x = self.program, self.pairs, self.variables.point(self.v)
        values = self._rows()
        values[~self.equal] += pairs.slacks[2]
        smooth, slope = program.smooth(x)
        self.value = smooth + program.w @ np.abs(program.A @ x + program.b)
        slope = self.variables.pull(slope + (pairs.duals[3] - pairs.duals[4]) @ program.A) + self.y @ self.rows
        slope[self.low] -= pairs.duals[0]
        slope[self.high] += pairs.duals[1]
        self.slope, self.values = slope, values
        self.error = self.variables.reach(self.v, slope)
        self.excess = float(np.abs(values).max(initial=0.0))

    def step(self):
        """One step towards the optimum; returns its length."""
        pairs, solve = self.pairs, self._factor()
        targets = [-s * z for s, z in zip(pairs.slacks, pairs.duals)]
        _, _, moves = self._move(solve, targets)
        mean, share = pairs.mean, pairs.longest(moves)
        centre = (pairs.after(share, moves).mean / mean) ** 3 * mean
        targets = [t + centre - ds * dz for t, ds, dz in zip(targets, moves.slacks, moves.duals)]
        dv, dy, moves = self._move(solve, targets)
        step = min(1.0, _BACK * pairs.longest(moves))
        if not np.isfinite(step):
            return 0.0
        self.v = self.v + step * dv
        self.y = self.y + step * dy
        self.pairs = pairs.after(step, moves)
        return step

    def _move(self, solve, targets):
        """(dv, dy, moves of the pairs) for which the linearised optimality conditions hold."""
        program, (lower, upper, _, above, below) = self.program, self.pairs.slacks
        a, b = self.pairs.duals[3:]
        side, both = -self.slope, a * below + b * above
        side[self.low] += targets[0] / lower
        side[self.high] -= targets[1] / upper
        turned = 2 * (b * targets[3] - a * targets[4]) / both
        side -= self.variables.pull(turned @ program.A)
        limits = -self.values
        limits[~self.equal] -= targets[2] / self.pairs.duals[2]
        dv, dy = solve(side, limits)
        dz = program.A @ self.variables.point(dv)
        da = 2 * a * b / both * dz + 0.5 * turned
        dt = (above * targets[4] + below * targets[3] + dz * (a * below - b * above)) / both
        ds = [dv[self.low], -dv[self.high], -(self.values + self.rows @ dv)[~self.equal], dt - dz, dt + dz]
        bounds = [
            (target - dual * move) / slack
            for target, dual, move, slack in zip(targets, self.pairs.duals, ds, (lower, upper))
        ]
        return dv, dy, _Pairs(ds, [*bounds, dy[~self.equal], da, -da])

    def _factor(self):
        """A solver of [M, R'; R, -W] (dv, dy) = sides."""
        pairs, own = self.pairs, len(self.program.h)
        diagonal = np.zeros(len(self.v))
        diagonal[self.low] += pairs.duals[0] / pairs.slacks[0]
        diagonal[self.high] += pairs.duals[1] / pairs.slacks[1]
        for row, total in enumerate(self.variables.totals, own):
            if total.kind == "length":
                diagonal[total.which] += self.y[row] / total.limit
        a, b = pairs.duals[3:]
        weights = 4 * a * b / (a * pairs.slacks[4] + b * pairs.slacks[3])
        inner = inverse(self.program, self.variables.mirror, diagonal, weights)
        pulled = inner(self.rows.T)
        small = self.rows @ pulled
        ratio = np.zeros(len(self.rows))
        ratio[~self.equal] = pairs.slacks[2] / pairs.duals[2]
        small[np.diag_indices(len(small))] += ratio

        def solve(side, limits):
            first = inner(side[:, None])[:, 0]
            try:
                dy = np.linalg.solve(small, self.rows @ first - limits) if len(small) else limits
            except np.linalg.LinAlgError as error:  # rows that depend on each other, all of them tight
                raise Unsolved("interior points", np.zeros(own)) from error
            return first - pulled @ dy, dy

        return solve
