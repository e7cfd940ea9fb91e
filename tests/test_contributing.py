"""CONTRIBUTING.md: what it says of adding a part is all that it takes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cocoax as cx

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
CHECK = """
import jax
import cocoax
from cocoax.lab import catalogue, guarantees
from cocoax.lab.citations import CITATIONS

jax.config.update("jax_enable_x64", True)
entry = {entry.name: entry for entry in catalogue.catalogue()["primals"]}["Example"]
assert entry.summary == "One gradient and one projection a round, any convex loss."
assert (entry.cost, entry.guarantee) == ("one projection", "regret T^(1/2), proven")
assert CITATIONS["Example"].startswith("@inproceedings{zinkevich2003,")
sizes = dict(diameter=1.0, lipschitz=1.0, smoothness=1.0, constraint_bound=1.0, dimension=3)
assert guarantees.methods(**sizes)["Algorithm 1 + Example"].bounds(1000).regret > 0
cocoax.testing.check_primal(cocoax.primal.Example(), key=jax.random.key(0))
print(cocoax.primal.Example.__module__, cocoax.__file__)
"""


def test_the_example_is_one_file_and_one_line(tmp_path):
    named = dict(re.findall(r"`src/(cocoax/primal/\S+?)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL))
    assert named.keys() == {"cocoax/primal/example.py", "cocoax/primal/__init__.pyi"}
    package = Path(cx.__file__).parent
    shutil.copytree(package, tmp_path / "cocoax", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in named.items():
        with (tmp_path / path).open("a") as file:
            file.write(text)
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["cocoax.primal.example", str(tmp_path / "cocoax" / "__init__.py")]


def test_the_page_names_the_layers_of_the_contract():
    pyproject = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    layers = re.search(r"^layers = \[\n(.*?)^\]", pyproject, re.MULTILINE | re.DOTALL).group(1)
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    order = re.findall(r"\w+", layers)
    assert [name for name in re.findall(r"`(\w+)`", table) if name in order] == [
        name for name in order if name != "errors"
    ]
