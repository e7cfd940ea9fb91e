"""What a session costs beside its compiled step: in memory, on disk, and over very many rounds.

python -m benchmarks.session [--rounds 2000] [--long 0] [--folder .]

Pacing with ten segments, played by Auto. `--long 1000000` also plays that many rounds in memory and on disk, and
reports how much the process has grown; the disk is that of `--folder`. All are timed in turn, a millisecond apart, as a
program would that has other things to do: right after another, XLA's threads would still be awake.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import cocoax as cx
from cocoax.sessions.step import compiled_step

BLOCK = 100
PAUSE = 1e-3
LEARNER = cx.learners.Auto()


def instance():
    made = cx.problems.pacing(jax.random.key(0), budget=0.3)
    columns = jax.tree.map(np.asarray, made.rounds(BLOCK, jax.random.key(1)))
    return made.problem, [{name: column[i] for name, column in columns.items()} for i in range(BLOCK)]


def microseconds(actions, each):
    """Each action once, with the pause before it that a program has in which decisions are worth something."""
    for action in actions:
        time.sleep(PAUSE)
        began = time.perf_counter()
        action(each)
        yield (time.perf_counter() - began) * 1e6


@jax.jit
def observe(problem, learner, state, each):
    state, outcome = learner.observe(problem, state, each)
    return state, outcome, learner.decision(state)


def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--long", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path())
    options = parser.parse_args()
    problem, rounds = instance()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        memory = cx.Session(problem, LEARNER, key=jax.random.key(2))
        disk = cx.Session(problem, LEARNER, Path(folder, "day.session"), key=jax.random.key(2))
        state = memory.state

        def bare(each):
            nonlocal state
            state, *_ = jax.block_until_ready(observe(problem, LEARNER, state, each))

        constants, structure = jax.tree.flatten((problem, LEARNER))
        flat, of_state = jax.tree.flatten(memory.state)
        flat_step = compiled_step(structure, of_state)

        def bare_flat(each):
            nonlocal flat
            flat, *_ = jax.block_until_ready(flat_step(constants, flat, each, None))

        def played(session, each):
            session.decide()
            session.observe(each)

        log = os.open(Path(folder, "log"), os.O_WRONLY | os.O_CREAT)

        def append(_):
            os.write(log, bytes(400))
            os.fdatasync(log)

        players = {
            "jit(learner.observe) alone": bare,
            "the session's own step, with its state kept flat, alone": bare_flat,
            "a session in memory": lambda each: played(memory, each),
            "a session on disk": lambda each: played(disk, each),
            "one append and fsync": append,
        }
        times = np.array([list(microseconds(players.values(), rounds[i % BLOCK])) for i in range(options.rounds)])
        print("| microseconds a round | median | 90% are below | best |\n|---|---|---|---|")
        for name, found in zip(players, times[options.rounds // 10 :].T):  # without the first, which compile
            print(f"| {name} | {np.median(found):.0f} | {np.quantile(found, 0.9):.0f} | {found.min():.0f} |")
        first, second = np.median(times[:, 2:3] - times[:, :2], axis=0)
        print(f"\na session in memory over the first: {first:.0f}, over the second: {second:.0f} microseconds")
        for name, session in (("in memory", memory), ("on disk", disk)) if options.long else ():
            before, told = grown(), 0
            while session.rounds < options.long:
                session.observe_many(rounds)
                if session.rounds >= told + options.long // 10:
                    told = session.rounds
                    print(f"{name}: {told:,} rounds, {grown():.0f} MiB (before: {before:.0f} MiB)", flush=True)


if __name__ == "__main__":
    main()
