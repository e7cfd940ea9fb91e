"""What must work where only the core dependencies are installed. Run as a script, in the environment to be tested."""

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

EXTRAS = ["matplotlib", "highspy", "networkx", "optax", "distributed", "polars", "typer", "fastapi", "pandas"]
PACKAGES = ["", ".baselines", ".domains", ".dual", ".learners", ".primal", ".problems", ".testing", ".theory"]


def main():
    """Raise at the first thing that does not work."""
    assert not [name for name in EXTRAS if importlib.util.find_spec(name)], "an extra is installed"
    import jax
    import jax.numpy as jnp
    import numpy as np

    import cocoax as cx

    assert "site-packages" in cx.__file__, cx.__file__
    assert cx.__version__ == importlib.metadata.version("cocoax")
    names = 0
    for package in PACKAGES:
        module = importlib.import_module(f"cocoax{package}")
        names += len([getattr(module, name) for name in module.__all__])
    citations = importlib.import_module("cocoax.lab.citations")
    assert len(citations.CITATIONS) > 20  # a file of the package

    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(3),
        loss=lambda x, r: jnp.vdot(r["cost"], x),
        constraint=lambda x, r: x[0] - r["budget"],
        constraints="budget",
    )
    costs = np.random.default_rng(0).normal(size=(60, 3)) - np.array([0.5, 0.0, 0.0])
    rounds = {"cost": costs.tolist(), "budget": [0.2] * 60}
    game = cx.play(problem, cx.learners.Auto(), rounds, key=jax.random.key(0), certify=True)
    best = cx.hindsight(problem, rounds)
    regret, certified = float(game.regret(best)[-1]), float(game.certificate().regret)
    assert regret <= certified + 1e-3, (regret, certified)
    assert "60 rounds" in str(game) and "60 rounds" in str(best)
    cx.testing.check_domain(cx.domains.Box([0.0, 0.0], [1.0, 2.0]), key=jax.random.key(0))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session")
        for count in (1, 2):
            with cx.Session(problem, cx.learners.Auto(), path, key=jax.random.key(0)) as session:
                session.observe({"cost": [1.0, 0.0, 0.0], "budget": 0.2}, label="today")
                assert len(session.history()) == count
    said = subprocess.run([Path(sys.executable).with_name("cocoax")], capture_output=True, text=True)
    assert said.returncode and 'pip install "cocoax[lab]"' in said.stderr, said.stderr
    versions = f"jax {jax.__version__}, numpy {np.__version__}"
    print(f"Python {sys.version.split()[0]}, {versions}: {names} public names, regret {regret:.3g} of {certified:.3g}")


if __name__ == "__main__":
    main()
