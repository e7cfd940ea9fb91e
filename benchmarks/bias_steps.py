"""What moves a bias that was seen n times, measured on MovieLens 100K with a mean and biases alone. For docs/models.md.

cocoax data fetch ml-100k
python -m benchmarks.bias_steps
"""

import numpy as np

from cocoax.problems import real

START = 3.0
DISTANCES, PRIORS = (0.05, 0.1, 0.2, 0.4), (1.0, 5.0)


class AdaGrad:
    r"""Each entry moves by $D\,\nabla_t/\sqrt{\sum_s\nabla_s^2}$."""

    def __init__(self, size, distance):
        self.squares, self.distance = np.zeros(size), distance

    def step(self, places, errors):
        pull = np.bincount(places, errors, len(self.squares))
        self.squares += pull**2
        return self.distance * pull / np.sqrt(np.where(self.squares > 0, self.squares, 1))


class Counted:
    r"""Each entry moves by the sum of its errors over $n+\lambda$."""

    def __init__(self, size, prior):
        self.seen, self.prior = np.zeros(size), prior

    def step(self, places, errors):
        self.seen += np.bincount(places, minlength=len(self.seen))
        return np.bincount(places, errors, len(self.seen)) / (self.seen + self.prior)


def rmse(rounds, rule, number, not_past_the_minimum=False):
    """Next-batch RMSE, where the rule moves the mean and all biases."""
    sizes = {"mean": 1, **{name: int(rounds[name].max()) + 1 for name in ("user", "item")}}
    rules = {name: rule(size, number) for name, size in sizes.items()}
    biases = {name: np.full(size, START if name == "mean" else 0.0) for name, size in sizes.items()}
    squares = 0.0
    for user, item, stars, weight in zip(*(np.asarray(rounds[name]) for name in ("user", "item", "rating", "weight"))):
        there = weight > 0
        places = {"mean": np.zeros(there.sum(), int), "user": user[there], "item": item[there]}
        errors = stars[there] - sum(biases[name][places[name]] for name in sizes)
        squares += errors @ errors
        steps = {name: rules[name].step(places[name], errors) for name in sizes}
        change = sum(steps[name][places[name]] for name in sizes)  # of the batch's predictions
        share = min(1.0, errors @ change / max(change @ change, 1e-300)) if not_past_the_minimum else 1.0
        for name in sizes:
            biases[name] += share * steps[name]
    return np.sqrt(squares / np.asarray(rounds["weight"]).sum())


def main():
    batches = [real.ratings(batch=size).recorded for size in (500, 10)]
    rules = {f"AdaGrad by coordinate, distance {distance}": (AdaGrad, distance) for distance in DISTANCES}
    rules |= {f"1/(n+λ), λ = {prior:g}": (Counted, prior) for prior in PRIORS}
    rules[f"the same, λ = {PRIORS[-1]:g}, and no step past the batch's own minimum"] = (Counted, PRIORS[-1], True)
    print("| what moves a bias that was seen n times | 500 | 10 |\n|---|---|---|")
    for name, rule in rules.items():
        print(f"| {name} | {' | '.join(f'{rmse(rounds, *rule):.4f}' for rounds in batches)} |", flush=True)
    for rank in (20, 0):
        found = [real.ratings_baselines.sgd_factorisation(rounds, rank=rank) for rounds in batches]
        print(f"| SGD, rank {rank} | {' | '.join(f'{each:.4f}' for each in found)} |", flush=True)


if __name__ == "__main__":
    main()
