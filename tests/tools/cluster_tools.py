"""Learners that misbehave in the process that plays them. Workers import this file."""

import os
import signal
from pathlib import Path

import equinox as eqx

import cocoax as cx


class Deadly(cx.learners.Stay):
    """Kills its process in the middle of a batch, as often as there are files to take away."""

    folder: str = eqx.field(static=True)

    def init(self, problem, *, key, horizon=None, start=None):
        for file in Path(self.folder).iterdir():
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().init(problem, key=key, horizon=horizon, start=start)


class Picky(cx.learners.Stay):
    """Raises on problems of four coordinates."""

    def init(self, problem, *, key, horizon=None, start=None):
        if problem.domain.shape == (4,):
            raise ValueError("not with four")
        return super().init(problem, key=key, horizon=horizon, start=start)
