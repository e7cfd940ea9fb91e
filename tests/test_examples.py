"""The README's example and every file in examples/ run as they stand, in a process of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(arguments, folder):
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_names_the_picture_that_it_writes(example, tmp_path):
    done = run([str(example), "200"], tmp_path)
    assert done.returncode == 0, done.stderr
    named = re.search(r"wrote (\S+\.png)", done.stdout)
    assert named, done.stdout
    assert (tmp_path / named.group(1)).read_bytes().startswith(b"\x89PNG")


def test_readme_example_runs_as_printed(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = run(["-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    regret, gap = float(done.stdout.split()[0]), float(done.stdout.split()[-1])
    assert regret > 0
    printed = float(re.search(r"# ([\d.]+) \[", code).group(1))
    assert abs(regret - printed) < 1  # what the README says it prints, up to rounding on other machines
    assert 0 <= gap < 1e-4


def test_import_loads_no_optional_dependency():
    code = "import sys, cocoax; print([name for name in sys.modules if name in sys.argv[1:]])"
    extras = [
        "optax",
        "matplotlib",
        "plotly",
        "polars",
        "scipy.optimize",
        "scipy.stats",
        "typer",
        "cvxpy",
        "networkx",
        "highspy",
    ]
    assert run(["-c", code, *extras], ROOT).stdout.strip() == "[]"
