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


class Answer(NamedTuple):
    point: np.ndarray
    rows: np.ndarray  # multipliers of Jx <= h
    kinks: np.ndarray  # y with |y| <= w, for which <y, Ax + b> is about <w, |Ax + b|>


class _Pairs:
    """Slacks that stay positive, and their multipliers: bounds, rows, and both sides of the kinks."""

    def __init__(self, slacks, duals):
        self.slacks, self.duals = slacks, duals

    @property
    def mean(self):
        return sum(s @ z for s, z in zip(self.slacks, self.duals)) / max(sum(map(len, self.slacks)), 1)

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
    for _ in range(_STEPS):
        check()
        step = method.step()
        short = short + 1 if step < _SHORT else 0
        if short >= _STUCK or method.done(gap(method.value), excess):
            break
    return method.answer()


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

    def done(self, gap, excess):
        pairs = sum(map(len, self.pairs.slacks)) * self.pairs.mean
        return pairs <= gap and self.error <= gap and self.excess <= excess

    def answer(self):
        x, own = self.variables.point(self.v), len(self.program.h)
        if not np.isfinite(x).all():
            raise Unsolved("interior points", np.zeros(own))
        return Answer(x, np.maximum(self.y[:own], 0.0), self.pairs.duals[3] - self.pairs.duals[4])

    def step(self):
        """One step towards the optimum; returns its length."""
        program, pairs, x = self.program, self.pairs, self.variables.point(self.v)
        values = self._rows()
        values[~self.equal] += pairs.slacks[2]
        smooth, slope = program.smooth(x)
        self.value = smooth + program.w @ np.abs(program.A @ x + program.b)
        slope = self.variables.pull(slope + (pairs.duals[3] - pairs.duals[4]) @ program.A) + self.y @ self.rows
        slope[self.low] -= pairs.duals[0]
        slope[self.high] += pairs.duals[1]
        solve = self._factor()
        targets = [-s * z for s, z in zip(pairs.slacks, pairs.duals)]
        _, _, moves = self._move(solve, slope, values, targets)
        share = pairs.longest(moves)
        mean = pairs.mean
        centre = (pairs.after(share, moves).mean / mean) ** 3 * mean
        targets = [t + centre - ds * dz for t, ds, dz in zip(targets, moves.slacks, moves.duals)]
        dv, dy, moves = self._move(solve, slope, values, targets)
        step = min(1.0, _BACK * pairs.longest(moves))
        if not np.isfinite(step):
            return 0.0
        self.v = self.v + step * dv
        self.y = self.y + step * dy
        self.pairs = pairs.after(step, moves)
        left = (1 - step) * np.abs(slope)
        self.error = float(left @ np.abs(self.v - self.variables.start).clip(1e-3 * np.abs(self.v).max()))
        self.excess = (1 - step) * float(np.abs(values).max(initial=0.0))
        return step

    def _move(self, solve, slope, values, targets):
        """(dv, dy, moves of the pairs) for which the linearised optimality conditions hold."""
        program, (lower, upper, _, above, below) = self.program, self.pairs.slacks
        a, b = self.pairs.duals[3:]
        side, both = -slope, a * below + b * above
        side[self.low] += targets[0] / lower
        side[self.high] -= targets[1] / upper
        turned = 2 * (b * targets[3] - a * targets[4]) / both
        side -= self.variables.pull(turned @ program.A)
        limits = -values
        limits[~self.equal] -= targets[2] / self.pairs.duals[2]
        dv, dy = solve(side, limits)
        dz = program.A @ self.variables.point(dv)
        da = 2 * a * b / both * dz + 0.5 * turned
        dt = (above * targets[4] + below * targets[3] + dz * (a * below - b * above)) / both
        ds = [dv[self.low], -dv[self.high], -(values + self.rows @ dv)[~self.equal], dt - dz, dt + dz]
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
            dy = np.linalg.solve(small, self.rows @ first - limits) if len(small) else limits
            return first - pulled @ dy, dy

        return solve
