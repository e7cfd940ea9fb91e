"""`learners.TrackedPI2` in plain NumPy, written from its docstring and those of its parts."""

import dataclasses

import numpy as np
import quadratic_tools as quadratic
import tracking_tools as tools
from controller_tools import RobustController
from distance_bound_tools import BoxDistances
from slow_start_tools import Distances
from tracking_tools import over


class Hedge:
    """AdaHedge, whose gap begins with half of the first round's span."""

    def __init__(self, shares):
        prior = np.maximum(shares, 1 / len(shares) ** 2)
        self.prior, self.sums, self.gap = prior / prior.sum(), np.zeros(len(shares)), 0.0

    def _rate(self):
        return over(np.log(len(self.sums)), self.gap)

    def _logarithm(self, sums):
        """Of the sum of the weights, before they are made shares."""
        return np.logaddexp.reduce(np.log(self.prior) - self._rate() * (sums - self.sums.min()))

    def shares(self):
        weights = self.prior * np.exp(-self._rate() * (self.sums - self.sums.min()))
        return weights / weights.sum()

    def observe(self, costs, span, keep):
        if self.gap > 0:
            shares, above = self.shares(), costs - costs.min()
            mixed = (self._logarithm(self.sums) - self._logarithm(self.sums + above)) / self._rate()
            self.gap = keep * self.gap + max(np.sum(shares * above) - mixed, 0)
        else:
            self.gap = 0.5 * span
        self.sums = keep * self.sums + costs


class Entropic:
    """AdaHedge over the entries of a simplex, and over it and another decision."""

    def __init__(self, start, keep):
        self.total, self.keep = start.sum(), keep
        self.entries, self.both = Hedge(start / self.total), Hedge(np.full(2, 0.5))

    def mixed_with(self, point):
        of_point, of_entries = self.both.shares()
        return of_point * point + of_entries * self.total * self.entries.shares()

    def observe(self, point, gradient):
        costs = np.array([gradient @ point, self.total * (gradient @ self.entries.shares())])
        span = np.ptp(gradient)
        self.both.observe(costs, self.total * span, self.keep)
        self.entries.observe(gradient, span, self.keep)


class Averaged:
    """The mean of points, the k-th weighs as k, and AdaHedge over a point and it."""

    def __init__(self, start, keep):
        self.mean, self.keep, self.both = start, keep, Hedge(np.full(2, 0.5))

    def mixed_with(self, point):
        of_point, of_mean = self.both.shares()
        return of_point * point + of_mean * self.mean

    def observe(self, point, gradient, new, n):
        costs = np.array([np.sum(gradient * point), np.sum(gradient * self.mean)])
        self.both.observe(costs, np.ptp(costs), self.keep)
        self.mean = self.mean + 2 / (n + 2) * (new - self.mean)


class BesideStart:
    """How much of the start is kept: less, the more surely moving has paid."""

    def __init__(self, keep):
        self.keep, self.sum, self.squares, self.size, self.rounds = keep, -2.0, 2.0, 0.0, 0.0

    def share(self):
        return 1 / (1 + 4 * np.exp(-2 * over(self.sum, self.squares**0.5)))

    def observe(self, excess):
        if excess != 0:
            self.size += 2 / (self.rounds + 2) * (abs(excess) - self.size)
        cost = over(excess, self.size)
        self.sum, self.squares = self.keep * self.sum + cost, self.keep * self.squares + cost**2
        self.rounds = self.keep * self.rounds + (excess != 0)


class Units:
    """The units of m multipliers, where every round shows a gradient of the loss."""

    def __init__(self, start, m, by_coordinate, keep):
        self.by_coordinate, self.keep = by_coordinate, keep
        self.n, self.sum, self.moves, self.along_loss = 0.0, np.zeros_like(start), 0, 0.0
        self.ages, self.along, self.growth = np.zeros(m), np.zeros(m), np.zeros(m)
        self.sizes = np.zeros((m, *start.shape) if by_coordinate else m)
        self.grown, self.left_out = False, 0

    def observe(self, of_loss, of_constraints, far, overspent):
        keep, weights = self.keep, far if self.by_coordinate else 1.0
        self.n, self.sum = keep * self.n + 1, keep * self.sum + of_loss
        self.ages = keep * self.ages + [each.any() or age > 0 for each, age in zip(of_constraints, self.ages)]
        sizes = [np.abs(each) if self.by_coordinate else np.linalg.norm(each) for each in of_constraints]
        self.sizes = keep * self.sizes + sizes
        return np.array([self._one(i, weights, overspent[i]) for i in range(len(self.growth))])

    def _one(self, i, weights, overspent):
        of_loss = np.linalg.norm(weights * self.sum) / self.n
        plain = over(of_loss * self.ages[i], np.linalg.norm(weights * self.sizes[i]))
        beyond = min(max(overspent - 3, 0), 1)
        self.growth[i] += 0.3 * beyond if beyond > 0 else -2 * self.growth[i] / self.n
        unit = max(plain, min(over(self.along_loss, self.along[i]) ** 0.5, plain * 2 ** min(self.growth[i], 60)))
        self.grown |= unit > plain
        return unit

    def moved(self, move, of_constraints, overspent):
        is_sampled = self.moves < 64 or self.n % 8 == 0 or self.keep < 1
        matters = is_sampled or np.any(overspent > 1) or np.any(self.growth > 0.01)
        self.left_out += move.ndim > 1 and not matters
        if not move.any() or (move.ndim > 1 and not matters):
            return
        d, recent = move / np.linalg.norm(move), 1 - 1 / (self.moves + 2)
        self.along_loss = recent * self.along_loss + np.sum(self.sum / self.n * d) ** 2
        self.along = recent * self.along + [np.sum(each * d) ** 2 for each in of_constraints]
        self.moves += 1


class Coherence:
    """How far the gradients of each of m constraints agree; most rounds of a long game are left out."""

    def __init__(self, start, m, keep):
        self.sums, self.squares, self.keep = np.zeros((m, *start.shape)), np.zeros(m), keep
        self.count, self.share = np.zeros(m), np.ones(m)

    def observe(self, of_constraints, units):
        if not (units.moves < 64 or units.n % 8 == 0 or self.keep < 1):
            return
        for i, each in enumerate(of_constraints):
            self.sums[i] += each
            self.squares[i] += np.sum(each**2)
            self.count[i] += each.any()
            if self.count[i] and self.keep == 1:
                agreeing = over(np.sum(self.sums[i] ** 2), self.squares[i])
                self.share[i] = np.clip(agreeing / np.clip(self.count[i], 1, 4), 0.25, 1)


class Cap:
    """The longest gradient so far, which at most doubles a round."""

    def __init__(self, keep):
        self.longest, self.keep = 0.0, keep

    def __call__(self, gradient):
        length, longest = np.linalg.norm(gradient), self.keep * self.longest
        most = longest if longest > 0 else length
        self.longest = max(longest, min(length, 2 * most))
        return min(1.0, over(most, length)) * gradient


@dataclasses.dataclass
class Record:
    plays: list = dataclasses.field(default_factory=list)
    multipliers: list = dataclasses.field(default_factory=list)
    boosts: list = dataclasses.field(default_factory=list)
    clipped: int = 0
    grown: bool = False
    left_out: int = 0  # moves of matrices
    disagreeing: int = 0  # gradients of constraints, on the whole
    turned: int = 0  # ways to the next decision, before their end


def play(domain: tools.Set, start, size, rounds, curvatures, memory, entropic) -> Record:
    """The game of TrackedPI2 on `quadratic_tools`' problem; `size` is the ends of a box, or the diameter."""
    keep, m, record = 1.0 if memory is None else 1 - 1 / memory, rounds["a"].shape[1], Record()
    (of_loss, of_constraints), on_box = curvatures, np.ndim(size) > 0
    follower, control = tools.Follower(domain, start, 8), RobustController(m, memory=memory)
    steps = BoxDistances(start, *size, memory=memory) if on_box else Distances(start, size, memory=memory)
    units, averaged = Units(start, m, on_box, keep), Averaged(start, keep) if start.ndim == 1 else None
    caps, kappa = [Cap(keep) for _ in range(m + 1)], 0.0
    mixture, beside = Entropic(start, keep) if entropic else None, BesideStart(keep) if start.ndim == 1 else None
    coherence, played = Coherence(start, m, keep), start
    for y, c, a, b in zip(*(rounds[name] for name in "ycab")):
        x = follower.x
        inner = averaged.mixed_with(x) if averaged else x
        wanted = mixture.mixed_with(inner) if mixture else inner
        values, *gradients = quadratic.at(played, y, c, a, b, of_loss, of_constraints)
        plain = [domain.tangent(each) for each in (gradients[0], *gradients[1])]
        loss, *constraints = (cap(each) for cap, each in zip(caps, plain))
        record.clipped += int(np.linalg.norm(loss) < 0.999 * np.linalg.norm(plain[0]))

        coherence.observe(constraints, units)
        surely = np.clip(control.overspent() - 1, 0, 1)
        unit = units.observe(loss, constraints, steps.far, control.overspent())
        u = control.weigh(values, unit) * np.maximum(coherence.share, surely)
        record.disagreeing += bool(np.any(coherence.share < 0.5))
        strength = 1 + sum(over(weight, each) for weight, each in zip(u, unit))
        h = (loss + sum(weight * each for weight, each in zip(u, constraints))) / strength
        hessian = (of_loss + of_constraints * u.sum()) / strength  # times the identity
        ahead = over(np.linalg.norm(h), hessian)
        step, back = (steps.advance(h, x), 0.0) if isinstance(steps, BoxDistances) else steps.advance(h, x, ahead)
        boost = 1 + max(control.urgency()) * (min(strength, 10) - 1)

        rate = over(np.sum(step * h), np.sum(h * h))
        along = hessian * over(np.sum(step * step), np.sum(step * h) * rate)
        faded = keep * kappa * 2 * units.n / (2 * units.n + 1)
        kappa = kappa + 2 / (units.n + 1) * (along - kappa) if on_box else max(faded, along)
        overshoot = boost * kappa * rate
        factor = boost * ((1 - np.exp(-overshoot)) / overshoot if overshoot > 0 else 1)
        if mixture:
            mixture.observe(inner, boost * h)
        follower.follow(follower.y - factor * step - back, slack=units.n**-0.25)
        if beside:
            beside.observe(boost * np.sum(h * (wanted - start)))
        if averaged:
            averaged.observe(x, boost * h, follower.x, units.n)
        units.moved(follower.x - x, constraints, control.overspent())
        inner = averaged.mixed_with(follower.x) if averaged else follower.x
        aim = mixture.mixed_with(inner) if mixture else inner
        aim = aim + beside.share() * (start - aim) if beside else aim
        record.plays.append(played)
        if mixture:
            # the weighed round is a parabola along the way, whose slope is clipped
            slope, rise = np.sum(h * (aim - played)), quadratic.at(aim, y, c, a, b, of_loss, of_constraints)[0] - values
            rise = (quadratic.cost(aim, y, c, of_loss) - quadratic.cost(played, y, c, of_loss) + u @ rise) / strength
            bend = rise - slope
            share = min(-slope / (2 * bend), 1) if slope < 0 and bend > 0 else 1
            record.turned += bool(share < 1)
            aim = played + share * (aim - played)
        played = aim
        record.multipliers.append(u)
        record.boosts.append(boost)
    record.grown, record.left_out = bool(units.grown), units.left_out
    return record
