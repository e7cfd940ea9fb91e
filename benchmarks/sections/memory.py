"""Memory at its peak, as XLA planned it for the compiled program: arguments, results and temporaries.

A game of the paper's 50 x 50 completion against T, with its rounds given at once, in chunks of 100 that go on from each
other's states, or drawn by an `Environment` as they are played; and a round with a dense mask against the dimension,
with the state updated in place. Round data alone are three matrices. These are exact numbers without a spread.
"""

import functools

import jax

import cocoax as cx
from benchmarks.sections import rounds as of_rounds
from benchmarks.timing import row

CHUNK = 100
MIB = 2.0**20


def planned(program, *arguments):
    """MiB of a compiled program at its peak."""
    found = program.lower(*arguments).compile().memory_analysis()
    total = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    return (total - found.alias_size_in_bytes) / MIB


def line(case, way, mib, **facts):
    return row(case, way, [mib], unit="MiB", **facts)


def games(horizons):
    learner, key = cx.learners.Auto(), jax.random.key(0)
    instance = cx.problems.matrix_completion(key)
    problem = instance.problem

    def shapes(horizon):
        return jax.eval_shape(lambda: instance.rounds(horizon, key))

    @jax.jit
    def given(rounds):
        return cx.play(problem, learner, rounds, key=key)

    @jax.jit
    def chunk(state, rounds):
        return cx.play(problem, learner, rounds, state=state)

    @functools.partial(jax.jit, static_argnums=0)
    def drawn(horizon):
        return cx.play(problem, learner, instance.environment, key=key, horizon=horizon)

    of_chunk = planned(chunk, jax.eval_shape(lambda: learner.init(problem, key=key)), shapes(CHUNK))
    for horizon in horizons:
        case = f"a game, T = {horizon}"
        yield line(case, "all rounds given", planned(given, shapes(horizon)), horizon=horizon)
        yield line(case, f"in chunks of {CHUNK}", of_chunk, horizon=horizon)
        yield line(case, "rounds drawn as they are played", planned(drawn, horizon), horizon=horizon)


def one_round(sizes):
    for size in sizes:
        problem, matrix = of_rounds.completion(size), size * size * 4 / MIB
        data = jax.eval_shape(lambda n=size: of_rounds.one_round(jax.random.key(0), n))
        for name, learner in of_rounds.LEARNERS.items():
            state = jax.eval_shape(of_rounds.begin, learner, problem)
            mib = planned(of_rounds.observe, learner, problem, state, data)
            yield line(f"a round, {size} x {size}", name, mib, size=size, note=f"{mib / matrix:.3g} matrices")


def measure(device, quick):
    horizons, sizes = ((100,), (50,)) if quick else ((100, 1000, 10_000), (500, 2000))
    return [*games(horizons), *one_round(sizes)]
