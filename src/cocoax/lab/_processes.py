"""Long studies, with the help of other processes: most of the time of each is one chain of small steps."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time

from .study import Share, Study

_WORTH_HELP = 20_000  # rounds
_PLAYING, _COMPARING = 3, 4  # processes beside an accelerator: tracing takes longer than playing, and so does hindsight


def run(study: Study, quiet: bool) -> None:
    """`study.run()`; helpers get the words of this command."""
    rounds, cores = sum(map(sum, study.horizons.values())) * len(study.seeds) * len(study.learners), os.cpu_count() or 1
    if rounds < _WORTH_HELP or cores < 2:
        study.run(quiet=quiet)
    elif not _accelerator():
        worth = sum(game.horizon for game in study.missing()) >= _WORTH_HELP
        with _helpers(["backwards"] if worth else []):
            study.run(quiet=quiet)
    elif cores < 2 * (_PLAYING + _COMPARING):
        study.run(quiet=quiet)
    else:
        comparing = [f"compare {i} {_COMPARING}" for i in range(_COMPARING)]
        playing = [f"play {i} {_PLAYING}" for i in range(1, _PLAYING)]
        with _helpers(playing) as players, _helpers(comparing, JAX_PLATFORMS="cpu"):
            study.run(quiet=quiet, share=Share(0, _PLAYING))
            for player in players:
                player.wait()
            study.run(quiet=quiet)  # what a helper left undone


def help_with(study: Study, role: str) -> None:
    """What a helper does: "backwards", "play 1 3" or "compare 0 4"; and it does not go on alone."""
    _end_with_parent()
    what, *numbers = role.split()
    share = Share(*map(int, numbers)) if numbers else None
    if what == "compare" and share is not None:
        study.compare(share)
    else:
        study.run(quiet=True, backwards=what == "backwards", share=share)


def _accelerator():
    """Whether JAX may have a GPU, without the second that it takes to look: helpers start meanwhile."""
    return importlib.util.find_spec("jax_plugins") is not None and os.environ.get("JAX_PLATFORMS") != "cpu"


@contextlib.contextmanager
def _helpers(roles, **environment):
    """This command in other processes, as long as this one needs them."""
    words = [sys.executable, "-m", "cocoax.cli", *sys.argv[1:], "--helper"]
    env, silent = os.environ | environment, subprocess.DEVNULL
    helpers = [subprocess.Popen([*words, role], env=env, stdout=silent, stderr=silent) for role in roles]
    try:
        yield helpers
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def _end_with_parent():
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
