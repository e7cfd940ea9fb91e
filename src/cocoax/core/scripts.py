"""Python files of users, run for what they define."""

import runpy
import sys
from pathlib import Path
from typing import Any

from ..errors import CocoaxError


def names_in(path: Path, error: type[CocoaxError]) -> dict[str, Any]:
    """What a Python file defines. It is run as `python FILE` would run it; what it raises becomes one sentence."""
    sys.path.insert(0, str(path.resolve().parent))
    try:
        return runpy.run_path(str(path))
    except CocoaxError as raised:
        raise error(f"{path}: {raised}") from raised
    except (Exception, SystemExit) as raised:
        raise error(f"{path} raised {type(raised).__name__}: {raised}; mend it and run again") from raised
