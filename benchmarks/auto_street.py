"""Auto on problems that broke its first version: odd coordinates, loose sets, bad rounds, movement, poles.

python -m benchmarks.auto_street

Each line is one small problem, written out here, with what is known of its optimum. A second table has a rival beside
Auto: `Tracked()` with its own steps, or drift plus penalty with steps that were tuned on other seeds at T = 1000.
"""

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from benchmarks.sections.comparators import traffic
from cocoax.lab.arena import ARENA
from cocoax.lab.arena.rivals import TunedDPP
from cocoax.lab.arena.tuning import tuned

KEY = jax.random.key(0)
LEARNERS = {"version 1": cx.learners.TrackedPI(), "Auto": cx.learners.Auto()}
TRACKED = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RobustPI())
SEEDS = range(2000, 2005)
DOUBLINGS = tuple(500 * 2**k for k in range(7))


def play(problem, rounds, learner, start=None):
    return cx.play(problem, learner, rounds, key=KEY, start=start)


def curvatures(learner, horizon=10_000):
    """Regret on a simplex whose coordinates are curved by 1, 10 and 100."""
    curved, centre = jnp.array([1.0, 10.0, 100.0]), jnp.array([2.0, 1.0, 0.7])
    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: 0.5 * jnp.sum(curved * (x - centre) ** 2))
    level = 100.0  # of curved (centre - x), the same for all coordinates above 0, found by bisection
    low, high = 0.0, 100.0
    for _ in range(100):
        level = (low + high) / 2
        total = float(jnp.maximum(centre - level / curved, 0).sum())
        low, high = (level, high) if total > 1 else (low, level)
    best = jnp.maximum(centre - level / curved, 0)
    loss = play(problem, jnp.zeros(horizon), learner).loss
    return float(np.asarray(loss, np.float64).sum() - horizon * problem.values(best, 0.0)[0])


def two_items(learner, horizon):
    """Violation where one coordinate's price is 1000 times the other's: f = x2 - x1, g = x1 + 1000 x2 - 0.3."""
    box = cx.domains.Box(jnp.zeros(2), jnp.ones(2))
    problem = cx.Problem(box, lambda x, r: x[1] - x[0], lambda x, r: x[0] + 1000 * x[1] - 0.3)
    return float(play(problem, jnp.zeros(horizon), learner, jnp.zeros(2)).constraint.sum())


def loose_box(learner, width, horizon=1000):
    """Total loss of absolute regression with weights of length 1 on a box of +-width."""
    rng = np.random.default_rng(0)
    features, truth = rng.normal(size=(horizon, 10)), rng.normal(size=10)
    answers = features @ (truth / np.linalg.norm(truth)) + 0.3 * rng.normal(size=horizon)
    box = cx.domains.Box(-width * jnp.ones(10), width * jnp.ones(10))
    problem = cx.Problem(box, lambda x, r: jnp.abs(r["a"] @ x - r["y"]))
    rounds = {"a": jnp.asarray(features, jnp.float32), "y": jnp.asarray(answers, jnp.float32)}
    return float(play(problem, rounds, learner, jnp.zeros(10)).loss.sum())


def outliers(learner, size, horizon=8000):
    """Score with a pair of +-size in the constraint's first two rounds."""
    instance = cx.problems.simplex(jax.random.key(1), quadratic=True)
    rounds = dict(instance.rounds(horizon, jax.random.key(2)))
    plain = instance.problem
    shocked = cx.Problem(plain.domain, plain.loss, lambda x, r: plain.constraint(x, r) + r["shock"])  # pyright: ignore[reportOptionalCall]
    shocks = jnp.zeros(horizon).at[0].set(size).at[1].set(-size)
    game = play(shocked, rounds | {"shock": shocks}, learner)
    return float(game.score(instance.comparator(rounds, tol=1e-5))[-1])


def large_simplex(learner, n=100_000, horizon=300):
    """Regret against the one of n experts that is better by 1 on average; the start has 300."""

    def loss(x, r):
        return jnp.vdot(jax.random.uniform(jax.random.wrap_key_data(r), x.shape, x.dtype, 0.5, 1.5), x) - x[7]

    problem = cx.Problem(cx.domains.ProbabilitySimplex(n), loss)
    rounds = jax.random.key_data(jax.random.split(KEY, horizon))
    best = jax.jit(jax.vmap(lambda r: problem.values(jnp.zeros(n).at[7].set(1.0), r)[0]))(rounds)
    return float(play(problem, rounds, learner).loss.sum() - best.sum())


def turnover(learner, limit, horizon=4000):
    """(Turnover over its limit, log-wealth) of a portfolio; without a limit, the turnover itself."""
    rng = np.random.default_rng(1)
    growth = jnp.asarray(1 + 1e-4 * rng.uniform(0, 6, 8) + 0.01 * rng.normal(size=(horizon, 8)), jnp.float32)

    def moved(x, r, previous):
        return 0.5 * jnp.abs(x - previous).sum() - (1.0 if limit is None else limit)

    problem = cx.Problem(cx.domains.ProbabilitySimplex(8), lambda x, r: -jnp.log(r @ x), moved)
    game = play(problem, growth, learner)
    mean = float(game.constraint.mean())
    return (mean + 1 if limit is None else mean / limit + 1), -float(game.loss.sum())


def poles(learner, horizon=500):
    """Rounds before the first that is not finite, of `horizon`, with x log x on a simplex."""
    problem = cx.Problem(cx.domains.ProbabilitySimplex(5), lambda x, r: jnp.sum(x * jnp.log(x)) + r @ x)
    costs = np.random.default_rng(0).normal([30, 0, 0, 10, 60], 0.5, (horizon, 5))
    rounds = jnp.asarray(costs, jnp.float32)
    bad = int(jax.jit(lambda rounds: play(problem, rounds, learner).bad_round)(rounds))  # compiled, it does not raise
    return horizon if bad < 0 else bad


def correlated(learner):
    """Regret a round after 500, 1000, ..., 32,000 rounds of least squares on a box, features correlated by 0.9."""
    regrets = np.zeros(len(DOUBLINGS))
    for seed in SEEDS:
        instance = cx.problems.least_squares(jax.random.key(seed))
        rounds = instance.rounds(DOUBLINGS[-1], jax.random.key(seed + 1))
        total = np.cumsum(np.asarray(play(instance.problem, rounds, learner).loss, np.float64))
        for k, horizon in enumerate(DOUBLINGS):
            first = jax.tree.map(lambda leaf, horizon=horizon: leaf[:horizon], rounds)
            best = np.asarray(instance.comparator(first, tol=1e-6).loss, np.float64).sum()
            regrets[k] += (total[horizon - 1] - best) / horizon / len(SEEDS)
    return regrets


def sioux_falls(learner, horizon=600, optimum=4231.335287):
    """How much the last decision's travel times are above the optimum, and the mean over all rounds."""
    problem, rounds = traffic()
    rounds = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf, jnp.float32), horizon, axis=0), rounds)
    loss = np.asarray(play(problem, rounds, learner).loss, np.float64)
    return loss[-1] / optimum - 1, loss.mean() / optimum - 1


def decades(learner, name, horizon):
    """The score of pacing with prices over three decades."""
    scores = []
    for seed in SEEDS:
        instance = ARENA[name](jax.random.key(seed))
        rounds = instance.rounds(horizon, jax.random.key(seed + 1))
        scores.append(play(instance.problem, rounds, learner).score(instance.comparator(rounds, tol=1e-5))[-1])
    return float(np.mean(scores))


def beside_rivals():
    """(What, Auto's figure, the rival's) of each line."""
    auto = LEARNERS["Auto"]
    for name in ("prices over 3 decades", "prices over 3 decades, from nothing"):
        rival = TunedDPP(**tuned()[name]["drift-plus-penalty (projected)"]["numbers"])
        for horizon in (1000, 8000):
            yield f"{name}, T = {horizon}: score", *(f"{decades(each, name, horizon):.4g}" for each in (auto, rival))
    for horizon, *regrets in zip(DOUBLINGS, correlated(auto), correlated(TRACKED)):
        yield f"correlation 0.9, T = {horizon}: regret a round", *(f"{each:.4g}" for each in regrets)
    for what, *above in zip(("after 600 rounds", "mean of 600 rounds"), sioux_falls(auto), sioux_falls(TRACKED)):
        yield f"Sioux Falls, {what}: above the optimum", *(f"{each:.2%}" for each in above)


def main():
    free, wealth = turnover(LEARNERS["Auto"], None)
    lines = {
        "curvatures 1, 10, 100, T = 10,000: regret": curvatures,
        "two items, T = 1000: violation": lambda learner: two_items(learner, 1000),
        "two items, T = 8000: violation": lambda learner: two_items(learner, 8000),
        **{f"box ±{w}: total loss": lambda learner, w=w: loose_box(learner, float(w)) for w in (1, 10, 100, 1000)},
        "no outliers, T = 8000: score": lambda learner: outliers(learner, 0.0),
        "outliers of ±1000 in rounds 1 and 2: score": lambda learner: outliers(learner, 1000.0),
        "simplex of 100,000, T = 300: regret": large_simplex,
        f"turnover {free:.2%} a round, limit twice that: used": lambda learner: turnover(learner, 2 * free)[0],
        "its log-wealth, over Auto's without a limit": lambda learner: turnover(learner, 2 * free)[1] / wealth,
        "limit a fifth of that: used": lambda learner: turnover(learner, free / 5)[0],
        "x log x: good rounds of 500": poles,
    }
    print(f"| | {' | '.join(LEARNERS)} |\n|---|{'---|' * len(LEARNERS)}")
    for name, figure in lines.items():
        print(f"| {name} | {' | '.join(f'{figure(learner):.4g}' for learner in LEARNERS.values())} |", flush=True)
    print("\n| | Auto | rival |\n|---|---|---|")
    for line in beside_rivals():
        print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
