"""Tracking in plain NumPy, dense, written from the mathematics: what `primal.Tracked` and `learners.Auto` do with x."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


def over(above, below):
    return above / below if below != 0 else 0.0


@dataclasses.dataclass
class Set:
    """What is known of X: LMO, diameter, centre, radius of a ball around it, tangent part, and some vertex."""

    lmo: Callable
    diameter: Any
    centre: np.ndarray
    radius: float
    vertex: np.ndarray
    tangent: Callable = np.array

    def inner(self, point):
        away = self.tangent(point - self.centre)
        length = np.linalg.norm(away)
        return self.centre + min(1.0, over(self.radius, length)) * away


def simplex(n, total=1.0):
    return Set(
        lmo=lambda c: total * np.eye(n)[np.argmin(c)],
        diameter=total * 2**0.5,
        centre=np.full(n, total / n),
        radius=total / (n * (n - 1)) ** 0.5,
        vertex=total * np.eye(n)[0],
        tangent=lambda direction: direction - direction.mean(),
    )


def box(lower, upper):
    return Set(
        lmo=lambda c: np.where(c > 0, lower, upper),
        diameter=np.linalg.norm(upper - lower),
        centre=(lower + upper) / 2,
        radius=(upper - lower).min() / 2,
        vertex=lower,
    )


def nuclear(shape, radius, vertex):
    def lmo(c):
        left, _, right = np.linalg.svd(c)
        return -radius * np.outer(left[:, 0], right[0])

    return Set(lmo, 2 * radius, np.zeros(shape), radius / min(shape) ** 0.5, vertex)


class Follower:
    """x = rest + sum_k weights_k atoms_k, and the target y."""

    def __init__(self, domain: Set, start, atoms):
        self.domain, self.x, self.y, self.rest = domain, start, start, start
        self.vertex, self.atoms, self.weights = domain.vertex, [domain.vertex] * atoms, [0.0] * atoms

    def follow(self, target, slack=0.0):
        away = self.x - target
        square = np.sum(away * away)
        if square > 0:
            self.vertex = self.domain.lmo(away)
        gap = max(np.sum(away * (self.x - self.vertex)), 0.0)
        beyond = over(square - gap, square**0.5) - slack * self.domain.diameter
        self.y = target + over(max(beyond, 0.0), square**0.5) * away
        newest = self._towards_vertex()
        if self.atoms:
            self._among_atoms(newest)
        self._within_ball()

    def _towards_vertex(self):
        move = self.vertex - self.x
        step = np.clip(over(np.sum((self.y - self.x) * move), np.sum(move * move)), 0, 1)
        self.x = self.x + step * move
        if not self.atoms:
            self.rest = self.x
            return None
        known = [k for k, atom in enumerate(self.atoms) if np.allclose(atom, self.vertex, rtol=0, atol=1e-14)]
        place = known[0] if known else int(np.argmin(self.weights))
        if not known:
            self.rest = self.rest + self.weights[place] * self.atoms[place]
            self.atoms[place], self.weights[place] = self.vertex, 0.0
        self.rest = (1 - step) * self.rest
        self.weights = [(1 - step) * weight for weight in self.weights]
        self.weights[place] += step
        return place

    def _among_atoms(self, newest):
        """One pairwise step: the worst part of x, the rest included and the newest vertex not, gives to the best."""
        away, left = self.x - self.y, 1 - sum(self.weights)
        parts = [(np.sum(away * atom), k, self.atoms[k], self.weights[k]) for k, atom in enumerate(self.atoms)]
        least, best, to, _ = min(parts, key=lambda part: part[0])
        held = [part for part in parts if part[3] > 0 and part[1] != newest]
        if left > 1e-6:
            rest = self.rest / left
            held.insert(0, (np.sum(away * rest), -1, rest, left))
        if not held:
            return
        most, worst, source, available = max(held, key=lambda part: part[0])
        move = to - source
        amount = min(max(over(most - least, np.sum(move * move)), 0.0), available)
        self.x = self.x + amount * move
        self.weights[best] += amount
        if worst < 0:
            self.rest = (1 - amount / left) * self.rest
        else:
            self.weights[worst] -= amount

    def _within_ball(self):
        left, lag = 1 - sum(self.weights), self.y - self.x
        if left <= 1e-6:
            return
        move = left * self.domain.inner((self.rest + lag) / left) - self.rest
        step = np.clip(over(np.sum(lag * move), np.sum(move * move)), 0, 1)
        self.x, self.rest = self.x + step * move, self.rest + step * move
