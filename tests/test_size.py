"""`make size` counts what it says that it counts; a small game stays small."""

import subprocess
import sys
from pathlib import Path

from benchmarks.size import Size, size

TEXT = '''"""A module,
explained."""

# a comment
LIMIT, MOST = 3, 4.5
NAMES = ("a", "b")
DERIVED = LIMIT + 1


class Part:
    """A class."""

    SHARE = 0.5
    name: str
    """An attribute."""
'''


def test_lines_code_docstrings_and_numbers(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(TEXT)
    assert size(path) == Size(files=1, lines=15, code=6, docstrings=4, public=0, numbers=2, single=0)


def test_public_names_are_those_of_stubs(tmp_path):
    path = tmp_path / "__init__.pyi"
    path.write_text("from .a import A as A\nfrom .b import B as B, C as C\n__version__: str\n")
    assert size(path) == Size(files=1, public=3)


def test_a_first_game_visits_few_functions():
    """4,000 calls of cocoax's own functions were allowed when 29,000 were too many; most are made while tracing."""
    command = [sys.executable, "-m", "benchmarks.visits", "play(Auto())"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-2].replace(",", "")) <= 4000
