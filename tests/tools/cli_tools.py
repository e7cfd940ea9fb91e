"""The command line in this process."""

import contextlib
import io
import sys
from types import SimpleNamespace
from unittest import mock

from cocoax import cli


def run(*words):
    """Exit status, and what was printed."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["cocoax", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            status = ended.code or 0
    return SimpleNamespace(status=status, out=out.getvalue(), err=err.getvalue())


def refused(answer, *parts):
    """One sentence that holds these parts, and exit status 2."""
    assert answer.status == 2 and answer.err.count("\n") == 1, answer
    assert all(part in answer.err for part in parts), answer.err
