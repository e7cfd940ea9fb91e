"""Build twice and compare; install into empty environments of every Python that is here; smoke test each.

python -m release                               # make release-check
python -m release --tests tests/games           # also these tests, with everything that they need
python -m release --pythons 3.12 --keep out/release
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from . import builds, environments, pythons

ROOT = Path(__file__).parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description="Checks before a release.")
    parser.add_argument("--pythons", nargs="*", default=pythons.SUPPORTED, help="versions to look for")
    parser.add_argument("--tests", nargs="*", default=[], help="files or folders of tests to run in each environment")
    parser.add_argument("--keep", type=Path, help="folder in which wheel, sdist and environments stay")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        wheel, sdist = builds.reproducible(ROOT, folder)
        print(f"built twice, with the same bytes: {wheel.name}, {sdist.name}")
        here, missing = pythons.found(options.pythons)
        if not here:
            print(f"none of Python {', '.join(options.pythons)} is here", file=sys.stderr)
            return 1
        wanted = [(version, python, False) for version, python in here.items()]
        oldest = min(here, key=lambda version: tuple(map(int, version.split("."))))
        wanted.append((oldest, here[oldest], True))
        failed = [
            name
            for version, python, is_oldest in wanted
            for name in [f"Python {version}{' with the oldest dependencies' if is_oldest else ''}"]
            if not environments.passes(name, python, wheel, folder, ROOT, options.tests, is_oldest)
        ]
    for version in missing:
        print(f"Python {version} is not here, so it was not tried")
    print(f"failed: {', '.join(failed)}" if failed else f"passed: {len(wanted)} environments")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
