"""Learners beside the baselines of each field, on real data. Figures of docs/real_data.md, as Markdown tables.

cocoax data fetch --all
python -m benchmarks.real [portfolios] [telecom] [charging] [classification] [traffic] [equilibrium] [moved] [growth]

All tables without a name. A cell has what is earned or paid, and in brackets what is used of each limit. "Best fixed"
keeps the limits, is chosen afterwards, and is certified by `hindsight`: no fixed decision does better than what stands
after it. `growth`, and `ratings` beside this file, print figures of docs/models.md.
"""

import argparse
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax import dual, primal
from cocoax.learners import Auto, AutoFlow, AutoGrowth, AutoPrice, PrimalDual
from cocoax.problems import real
from cocoax.problems.real import car_park, people, portfolios, roads

PORTFOLIOS = {
    "`AutoGrowth()`": AutoGrowth(),
    "`Auto()`": Auto(),
    "EG(0.05) with `RobustPI(0.01, 2.0)`": PrimalDual(primal.ExponentiatedGradient(0.05), dual.RobustPI(0.01, 2.0)),
    "`Mixture` of four EG with the same": PrimalDual(
        primal.Mixture([primal.ExponentiatedGradient(step) for step in (0.02, 0.05, 0.2, 0.5)]),
        dual.RobustPI(0.01, 2.0),
    ),
}
Row = dict[str, str]


def played(instance, learner, rounds=None, **options):
    rounds = instance.recorded if rounds is None else rounds
    return cx.play(instance.problem, learner, rounds, key=jax.random.key(0), **options)


def best_fixed(instance, rounds=None):
    rounds = instance.recorded if rounds is None else rounds
    return cx.hindsight(instance.problem, rounds, tol=1e-3, seconds=300, progress=False)


def used(came_to) -> np.ndarray:
    """The mean of each constraint, in parts of its limit."""
    return 1 + np.asarray(came_to.constraint, float).mean(0)


def mean_loss(came_to) -> float:
    return float(np.asarray(came_to.loss, float).mean())


def table_of_portfolios() -> Iterator[Row]:
    """Wealth after fees, from 1."""

    def cell(came_to):
        wealth = np.exp(-np.asarray(came_to.loss, float).sum())
        return f"{wealth:.1f} ({', '.join(f'{part:.1%}' for part in used(came_to))})"

    for data, limits in portfolios.LIMITS.items():
        for chosen in (*({name: limit} for name, limit in limits.items()), limits):
            instance = real.portfolio(data=data, **chosen)
            named = ", ".join(f"{name} {limit:.1%}" for name, limit in chosen.items())
            best = best_fixed(instance)
            yield {
                "data": data,
                "limit": named if len(chosen) == 1 else "all three",
                **{name: cell(played(instance, learner)) for name, learner in PORTFOLIOS.items()},
                "EG, no limit": cell(instance.baseline("EG")),
                "equal shares": cell(instance.baseline("uniform")),
                "best fixed, proven at most": f"{np.exp(-best.value):.1f}, {np.exp(-best.lower_bound):.1f}",
            }


def table_of_moved() -> Iterator[Row]:
    """Wealth of `AutoGrowth()` over that of EG without limits, from later days and with other fees; what is used."""

    def cell(came_to, against):
        over = np.exp(np.asarray(against.loss, float).sum() - np.asarray(came_to.loss, float).sum())
        return f"{over:.3f} ({used(came_to).max():.1%})"

    whole = [(0, fee) for fee in (0.0, 5e-4, 1e-3, 2e-3)]
    for data, limits in portfolios.LIMITS.items():
        growth = portfolios.growth_factors(data)
        for day, fee in (*whole, *((day, 1e-3) for day in (100, 500, 1000, 2000, 4000))):
            every = real.portfolio(data=growth[day:], fee=fee, **limits)
            against = every.baseline("EG")
            one_each = {
                name: real.portfolio(data=growth[day:], fee=fee, **{name: limit}) for name, limit in limits.items()
            }
            yield {
                "data": data,
                "from day": str(day),
                "fee": f"{1e4 * fee:.0f} bp",
                **{name: cell(played(instance, AutoGrowth()), against) for name, instance in one_each.items()},
                "all three": cell(played(every, AutoGrowth()), against),
                "EG, no limit, uses": ", ".join(f"{part:.1%}" for part in used(against)),
            }


def table_of_growth() -> Iterator[Row]:
    """The logarithm of wealth on `nyse_o`, without limits and fees."""
    growth = real.portfolio(data="nyse_o", turnover=0.005).recorded["growth"]
    free = cx.Problem(cx.domains.ProbabilitySimplex(growth.shape[1]), lambda x, r: -jnp.log(jnp.vdot(r, x)))
    methods = {"EG, 0.05": primal.ExponentiatedGradient(0.05), "EG": primal.ExponentiatedGradient()}
    methods |= {f"Newton, damping {rho:g}": primal.OnlineNewton(damping=rho) for rho in (1.0, 8.0, 512.0)}
    learners = {name: PrimalDual(method, dual.RobustPI()) for name, method in methods.items()}
    found = {"equal shares": float(jnp.log(growth.mean(1)).sum())}
    for name, learner in (learners | {"`Auto()`": Auto()}).items():
        found[name] = -float(np.sum(cx.play(free, learner, growth, key=jax.random.key(0)).loss))
    found["best fixed"] = -float(cx.hindsight(free, growth).value)
    yield {name: f"{wealth:.2f}" for name, wealth in found.items()}


def table_of_telecom() -> Iterator[Row]:
    """Length of the traffic's way, over shortest paths on an average day, and the load of the busiest link."""

    def cell(came_to):
        return f"{mean_loss(came_to):.3f} ({used(came_to).max():.1%})"

    for data in ("abilene", "germany50"):
        instance = real.telecom(data=data)
        best = best_fixed(instance)
        yield {
            "data": data,
            "`Auto()`": cell(played(instance, Auto())),
            **{name: cell(instance.baseline(name)) for name in ("shortest path", "ECMP")},
            "best fixed, proven at least": f"{mean_loss(best):.3f}, {best.lower_bound / instance.length:.3f}",
        }


def table_of_charging() -> Iterator[Row]:
    """What a driver misses, in kWh, and the carbon emitted."""

    def cell(came_to):
        return f"{mean_loss(came_to):.2f} ({used(came_to)[0]:.1%})"

    instance = real.ev_charging()
    learner = AutoPrice(predict=car_park.expected)
    yield {
        "data": f"{instance.length} cars",
        "`AutoPrice(predict=expected)`": cell(played(instance, learner)),
        **{name: cell(instance.baseline(name)) for name in ("charge now", "greedy by forecast", "mixed")},
    }


def table_of_classification() -> Iterator[Row]:
    """Log-loss, the covariance of group and score, and who is predicted positive: the others and the group."""
    for data, batch in (("adult", 10), ("arrests", 10), ("arrests", 1)):
        instance = real.fair_classification(data=data, batch=batch)
        rounds, best = instance.recorded, best_fixed(instance)

        def cell(came_to, decisions, rounds=rounds):
            decisions = np.broadcast_to(decisions, (len(rounds["label"]), np.shape(decisions)[-1]))
            positive = " and ".join(f"{rate:.1%}" for rate in people.rates(decisions, rounds))
            return f"{mean_loss(came_to):.3f} ({used(came_to).max():.1%}); {positive}"

        game = played(instance, Auto(), keep_decisions=True)
        yield {
            "data": data,
            "people a round": str(batch),
            "`Auto()`": cell(game, game.decisions),
            **{
                name: cell(instance.baseline(name), instance.baseline(name).x)
                for name in ("logistic regression", "constant")
            },
            "best fixed": cell(best, best.x),
        }


def table_of_traffic(days: int = 300) -> Iterator[Row]:
    """Beckmann's objective over its optimum on an average day, and emissions, in the second half of the days."""
    instance = real.traffic(days=days, routes=5)
    start = roads.successive_averages(instance.problem, instance.rounds(1))[0]  # everybody on the shortest route

    def cell(came_to):
        late = slice(days // 2, None)
        emitted = 1 + np.asarray(came_to.constraint, float)[late].mean()
        return f"{np.asarray(came_to.loss, float)[late].mean() / roads.PUBLISHED:.3f} ({emitted:.1%})"

    yield {
        "days": str(days),
        "`AutoFlow()`": cell(played(instance, AutoFlow(), start=start)),
        "`Auto()`": cell(played(instance, Auto(), start=start)),
        **{name: cell(instance.baseline(name)) for name in ("MSA", "shortest paths")},
    }


def table_of_equilibrium() -> Iterator[Row]:
    """The user equilibrium of one day over all routes, by `hindsight`."""
    instance = real.traffic(days=1, budget=None, routes=None, varies=0.0)
    best = cx.hindsight(instance.problem, instance.recorded, tol=1e-5, progress=False)
    yield {
        "Beckmann's objective": f"{best.value:.6f}",
        "above the published optimum, relative": f"{best.value / roads.PUBLISHED - 1:.1e}",
        "certified to": f"{best.gap / best.value:.1e}",
    }


TABLES = {
    "portfolios": table_of_portfolios,
    "telecom": table_of_telecom,
    "charging": table_of_charging,
    "classification": table_of_classification,
    "traffic": table_of_traffic,
    "equilibrium": table_of_equilibrium,
    "moved": table_of_moved,
    "growth": table_of_growth,
}


def show(rows: Iterator[Row]) -> None:
    """A Markdown table, row by row as they come."""
    for number, row in enumerate(rows):
        if number == 0:
            print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(row.values())} |", flush=True)


def main(given=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    names = parser.parse_args(given).names or list(TABLES)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {unknown[0]!r}; there are {', '.join(TABLES)}")
    jax.config.update("jax_enable_x64", True)
    for name in names:
        print(f"\n{name}: {TABLES[name].__doc__}\n", flush=True)
        show(TABLES[name]())


if __name__ == "__main__":
    main()
