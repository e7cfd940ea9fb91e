"""Decisions in production: a day of budget pacing whose process is killed at noon, and which continues where it was.

Every minute the session decides how much of ten segments to buy; afterwards it sees their values and prices. The
program that decides runs in its own process and is killed by SIGKILL, as in a power cut. The same program, started
again with the same line, finds every acknowledged minute.

Run it: `python examples/production.py [minutes]`. It prints what was lost (nothing) and writes out/production.png.
"""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx

INSTANCE = cx.problems.pacing(jax.random.key(0), budget=0.3)  # 30% of what buying everything would cost


def day(rounds):
    """A day of traffic, with most of it in the evening."""
    traffic = INSTANCE.rounds(rounds, jax.random.key(1))
    busy = 1 - 0.5 * np.cos(2 * np.pi * (np.arange(rounds) / rounds - 1 / 6))[:, None]
    return traffic | {"value": busy * traffic["value"], "price": busy * traffic["price"]}


def serve(path, rounds, acknowledge=lambda minute: None):
    """The program in production: the same line starts the session, or opens it again."""
    traffic = day(rounds)
    with cx.Session(INSTANCE.problem, cx.learners.Auto(), path, key=jax.random.key(2)) as session:
        for minute in range(session.rounds, rounds):
            session.decide()  # ... buy as decided, and see what it was worth
            session.observe({name: column[minute] for name, column in traffic.items()})
            acknowledge(session.rounds)  # this minute is on disk
        return session.history(), session.summary(), session.regret()


def serve_until_killed(path, rounds, noon):
    """How many minutes were acknowledged before the process was killed."""
    command = [sys.executable, __file__, "serve", str(path), str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= noon:
                process.send_signal(signal.SIGKILL)
                break
        return max([int(line), *map(int, process.stdout.read().split())])


def main(rounds=1440, out="out"):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pacing.session")
        killed = serve_until_killed(path, rounds, rounds // 2)
        with cx.Session(INSTANCE.problem, cx.learners.Auto(), path, key=jax.random.key(2)) as session:
            found = session.rounds
        print(f"killed after {killed} acknowledged minutes, opened again with {found}")
        history, summary, regret = serve(path, rounds)

    hours = np.arange(1, rounds + 1) * 24 / rounds
    even = np.arange(1, rounds + 1) / rounds
    ahead = history["constraint_violation"] / float(INSTANCE.environment.budget)  # in minutes of budget
    spent = even + ahead / rounds
    print(f"spent {spent[-1]:.1%} of the budget, regret {regret[-1]:.2f} of a value of {-summary['loss']:.0f}")
    figure = Figure(figsize=(11, 4), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    left.plot(hours, spent, label="spent")
    left.plot(hours, even, "k--", label="the budget")
    left.set(title="Spent so far", xlabel="hour", ylabel="of the day's budget")
    right.plot(hours, ahead)
    right.set(title="Ahead of the budget", xlabel="hour", ylabel="minutes of budget")
    for axes in (left, right):
        axes.axvline(hours[found - 1], color="tab:red", linewidth=1, label="killed, and opened again")
    left.legend()
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "production.png"), dpi=150)
    print(f"wrote {Path(out, 'production.png')}")
    return killed, found, history


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]), lambda minute: print(minute, flush=True))
    else:
        main(*map(int, sys.argv[1:2]))
