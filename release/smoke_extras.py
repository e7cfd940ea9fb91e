"""What must work with every extra but cuda, docs and dev. Run as a script, in the environment to be tested."""

import importlib.metadata
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

BENCHOPT = Path(__file__).parents[1] / "benchmarks" / "benchopt"
RACE = """
import cocoax as cx
problems = {"simplex": lambda key: cx.problems.simplex(key, n=4)}
learners = {"Auto": cx.learners.Auto(), "stay": cx.learners.Stay()}
horizons, seeds = [10, 20], range(2)
"""
FLEET = """
import cocoax as cx, jax
problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x, lambda x, r: x[0] - 0.2)
fleet = cx.Fleet(problem, cx.learners.Auto(), "fleet", key=jax.random.key(0))
example = [1.0, 0.0, 0.0]
"""
SHOWN = ["jax", "polars", "typer", "fastapi", "uvicorn", "distributed", "matplotlib", "highspy", "benchopt"]


def main():
    """Raise at the first thing that does not work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quick = ["--instances", 2, "--horizons", "10,30", "--learners", "OCG"]
        run(folder, "cocoax", "reproduce", "--quick", "--quiet", *quick, "--out", "reproduced")
        (folder / "race.py").write_text(RACE)
        run(folder, "cocoax", "race", "race.py", "--certify", "--workers", 2, "--out", "raced")
        for out in ("reproduced", "raced"):
            assert "</html>" in (folder / out / "report.html").read_text("utf-8")
            assert list((folder / out / "figures").iterdir())
        serve(folder)
        run(folder, "cocoax", "session", "verify", "fleet")
        run(folder, "cocoax", "list")
        session(folder)
        benchopt(folder)
    solvers()
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in SHOWN))


def run(folder, name, *words):
    """Run a command of this environment to its end."""
    command = [Path(sys.executable).with_name(name), *map(str, words)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{name} {' '.join(map(str, words))}\n{done.stdout}"
    return done.stdout


def serve(folder):
    """A fleet as a service: a decision, a round, its metrics, and an end by SIGTERM."""
    (folder / "fleet.py").write_text(FLEET)
    command = [Path(sys.executable).with_name("cocoax"), "serve", "fleet.py", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        try:
            address = running.stdout.readline().split()[-1]
            asked = {"name": "a", "rounds": [1.0, 0.0, 0.0]}
            for path, content in (("decide", {"name": "a"}), ("observe", asked)):
                body, kind = json.dumps(content).encode(), {"content-type": "application/json"}
                request = urllib.request.Request(f"{address}/{path}", body, kind)
                answer = json.load(urllib.request.urlopen(request, timeout=60))
            assert answer["rounds"] == 1, answer
            metrics = urllib.request.urlopen(f"{address}/metrics", timeout=60).read().decode()
            assert "cocoax" in metrics, metrics
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(60) in (0, -signal.SIGTERM)


def session(folder):
    """Closed after a round, opened again, and read as a table."""
    import jax

    import cocoax as cx

    problem = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x, lambda x, r: x[0] - 0.2)
    for count in (1, 2):
        with cx.Session(problem, cx.learners.Auto(), folder / "session", key=jax.random.key(0)) as opened:
            opened.observe([1.0, 0.0, 0.0])
            assert len(opened.history()) == count
    run(folder, "cocoax", "session", "verify", "session")


def benchopt(folder):
    """One of our learners as a solver of benchopt."""
    shutil.copytree(BENCHOPT, folder / "benchmark")
    chosen = ["-d", "arena-2026[series='cars, carbon',rounds=20]", "-s", "untuned[learner=Stay]", "-n", "1", "-r", "1"]
    done = run(folder / "benchmark", "benchopt", "run", ".", *chosen, "--no-plot", "--no-html", "--output", "tiny")
    assert (folder / "benchmark" / "outputs" / "tiny.parquet").is_file(), done


def solvers():
    """A set for each solver that is an extra."""
    import jax
    import networkx

    import cocoax as cx

    matchings = cx.domains.Matching(networkx.petersen_graph())
    for domain in (matchings, cx.domains.Birkhoff(3), cx.domains.Polytope([[1.0]], [1.0], lower=0.0)):
        cx.testing.check_domain(domain, key=jax.random.key(0))


if __name__ == "__main__":
    main()
