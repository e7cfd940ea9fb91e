"""The command line's entry: loads the commands, and turns what a user can mend into one sentence."""

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f'cocoax: {missing.name} is missing; the command line needs it: pip install "cocoax[lab]"')

from .commands import data, parts, race, reproduce, serve, session, theory  # noqa: F401
from .commands.app import app
from .errors import CocoaxError


def main():
    """Run a command. What a user can mend is one sentence and exit status 2."""
    try:
        app()
    except CocoaxError as error:
        print("cocoax:", " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # before anything was played
        sys.exit(130)


if __name__ == "__main__":
    main()
