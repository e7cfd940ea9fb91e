"""Figures of docs/requests.md that `cocoax race requests` does not print.

python -m benchmarks.requests

* Bandit routing of prompts, against the best policy that knows the means of each source, and the best fixed mix. Means
  over the orders of prompts with the keys 300 to 319, in per cent of that policy's quality. If `paretobandit` 0.1.1 is
  installed, its own router plays the same orders with the same features and its pacer, once with its defaults and once
  without the fixed penalty on cost that it adds to the pacer's.
* Routing by predictions: the means of past prompts of the same source. In per cent of the best policy that has the same
  predictions and knows all of them.
* Ten resources, 20 answers, 100,000 requests: what is lost, and a round's time over that of mirror descent.
"""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.problems.language_models import SOURCES, expected_by_source, source_features

PROMPTS, ORDERS = 1824, range(300, 320)


def with_means(rounds):
    """The rounds, in which every prompt has the mean quality and cost of its source."""
    source = np.asarray(rounds["source"])
    means = {name: np.array(rounds[name]) for name in ("quality", "cost")}
    for one in np.unique(source):
        for table in means.values():
            table[source == one] = table[source == one].mean(0)
    return {name: jnp.asarray(table) for name, table in means.items()} | {"budget": rounds["budget"]}


def measure(budget):
    """(lost, overspent, lost by the best fixed mix, the best quality, rounds) for every order."""
    instance, known = (cx.problems.llm_routing(budget=budget, known=what) for what in ("source", True))
    learner = cx.learners.BanditPrice(source_features, SOURCES)
    orders = [instance.rounds(PROMPTS, jax.random.key(order)) for order in ORDERS]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *orders)
    play = jax.jit(jax.vmap(lambda rounds: cx.play(instance.problem, learner, rounds, key=jax.random.key(0))))
    games = play(stacked)
    for number, rounds in enumerate(orders):
        policy = cx.hindsight(known.problem, with_means(rounds), policy=True).x
        best = float((policy * np.asarray(rounds["quality"])).sum())
        fixed = cx.hindsight(known.problem, rounds)
        over = float(games.constraint[number].sum()) / (budget * PROMPTS)
        lost, by_mix = (100 * (1 + float(total) / best) for total in (games.loss[number].sum(), fixed.value))
        yield lost, 100 * over, by_mix, best, rounds


def router(budget, rounds, **settings):
    """(quality, cost) in total of paretobandit's router, which sees the source and the chosen model's figures."""
    from pareto_bandit.budget_pacer import BudgetPacer
    from pareto_bandit.feature_service import FeatureService
    from pareto_bandit.router import BanditRouter

    features = FeatureService.for_precomputed(SOURCES + 1)  # and a bias
    pacer = BudgetPacer(target_avg_spend_usd=budget)
    one = BanditRouter.create(feature_service=features, priors="none", bandit_seed=0, budget_pacer=pacer, **settings)
    names, quality, cost = sorted(one.registry), np.asarray(rounds["quality"]), np.asarray(rounds["cost"])
    contexts = np.hstack([np.eye(SOURCES)[np.asarray(rounds["source"])], np.ones((len(quality), 1))])
    total = np.zeros(2)
    for context, value, price in zip(contexts, quality, cost):
        name, log = one.route(context)
        chosen = names.index(name)
        log.cost_usd = float(price[chosen])  # what it really cost, for the pacer
        one.process_feedback(log.request_id, float(value[chosen]))
        total += value[chosen], price[chosen]
    return total


def bandits():
    print("| budget | learner | lost | overspent | worst order |\n|---|---|---|---|---|")
    for budget in (3e-4, 2e-3):
        rows = list(measure(budget))
        lost, over, fixed = np.array([row[:3] for row in rows]).T
        print(f"| {budget:g} | BanditPrice | {lost.mean():.2f} | {over.mean():.2f} | {lost.max():.2f} |")
        print(f"| {budget:g} | the best fixed mix | {fixed.mean():.2f} | 0 | {fixed.max():.2f} |", flush=True)
        for name, settings in {"defaults": {}, "its pacer alone": {"cost_penalty": 0.0}}.items():
            try:
                totals = np.array([router(budget, row[4], **settings) for row in rows])
            except ImportError:
                print("paretobandit is not installed: its router was not played")
                break
            lost = 100 * (1 - totals[:, 0] / [row[3] for row in rows])
            over = (100 * (totals[:, 1] / (budget * PROMPTS) - 1)).mean()
            print(
                f"| {budget:g} | paretobandit, {name} | {lost.mean():.2f} | {over:.2f} | {lost.max():.2f} |", flush=True
            )


def predictions():
    print("\n| budget | lost by predictions | overspent |\n|---|---|---|")
    for budget in (3e-4, 2e-3):
        instance, known = (cx.problems.llm_routing(budget=budget, known=what) for what in (False, True))
        learner, figures = cx.learners.AutoPrice(predict=expected_by_source), []
        for order in list(ORDERS)[:5]:
            rounds = instance.rounds(PROMPTS, jax.random.key(order))
            game = cx.play(instance.problem, learner, rounds, key=jax.random.key(0))
            policy = cx.hindsight(known.problem, expected_by_source(rounds), policy=True).x
            best = float((policy * np.asarray(rounds["quality"])).sum())
            figures.append((1 + float(game.loss.sum()) / best, float(game.constraint.sum()) / (budget * PROMPTS)))
        lost, over = 100 * np.mean(figures, 0)
        print(f"| {budget:g} | {lost:.2f} | {over:.2f} |", flush=True)


def ten_resources(horizon=100_000, turns=5):
    instance = cx.problems.resources(jax.random.key(0), answers=20, constraints=10)
    rounds = instance.rounds(horizon, jax.random.key(1))
    best = cx.hindsight(instance.problem, rounds, policy=True)
    contenders = {"AutoPrice": cx.learners.AutoPrice(), "mirror descent": cx.learners.DualMirrorDescent(0.05)}
    plays = {name: jax.jit(functools.partial(_played, instance.problem, one)) for name, one in contenders.items()}
    games = {name: jax.block_until_ready(play(rounds)) for name, play in plays.items()}
    seconds = {name: [] for name in plays}
    for _ in range(turns):
        for name, play in plays.items():
            before = time.process_time()
            jax.block_until_ready(play(rounds))
            seconds[name].append(time.process_time() - before)
    print("\n| ten resources | lost, overspent (%) | microseconds of processor a round |\n|---|---|---|")
    for name, game in games.items():
        lost = 100 * float(game.regret(best)[-1]) / abs(float(best.value))
        over = 100 * float((game.violation()[-1] / np.asarray(rounds["budget"]).sum(0)).max())
        print(f"| {name} | {lost:.2f}, {over:.2f} | {1e6 * min(seconds[name]) / horizon:.2f} |", flush=True)


def _played(problem, learner, rounds):
    return cx.play(problem, learner, rounds, key=jax.random.key(0))


def main():
    bandits()
    predictions()
    ten_resources()


if __name__ == "__main__":
    main()
