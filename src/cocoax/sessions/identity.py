"""Who plays what: recorded when a session begins, and compared when it is opened again."""

import platform

import equinox as eqx
import jax

from ..core.fingerprint import fingerprint
from ..errors import LabError, SessionError
from ..learners.base import AbstractLearner
from ..problem.problem import Problem
from . import packing

_COMPARED = ("learner", "domain", "loss", "constraint", "regularity")


def signature(problem: Problem, learner: AbstractLearner, states, settings: dict) -> dict:
    """As JSON. Everything but code is compared exactly; code, which is one Python's own, on the same Python only."""
    from .. import __version__

    parts = {
        "learner": learner,
        "domain": problem.domain,
        "loss": (problem.loss, problem.loss_grad),
        "constraint": (problem.constraint, problem.constraint_grad),
        "regularity": problem.regularity,
    }
    try:
        known = {
            name: [_named(part), *(fingerprint(part, code=code) for code in (True, False))]
            for name, part in parts.items()
        }
    except LabError as error:
        raise SessionError(f"a session must know its problem and learner again: {error}") from None
    return {
        "version": __version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "decision": packing.outline(learner.decision(states[0])),
        "constraints": list(problem.names),
        **known,
        "settings": settings,
        "x64": bool(jax.config.read("jax_enable_x64")),
        "state": packing.outline(states[0]),
    }


def _named(part) -> str:
    parts = part if isinstance(part, tuple) else (part,)
    return ", ".join(_name(each) for each in parts if each is not None)


def _name(part) -> str:
    if isinstance(part, jax.tree_util.Partial):
        return getattr(part.func, "__qualname__", type(part.func).__name__)
    return type(part).__name__ if isinstance(part, eqx.Module) else getattr(part, "__qualname__", type(part).__name__)


def _is_alike(recorded, current) -> bool:
    """Whether what was read has the parts of a signature, whatever they say."""
    if not isinstance(recorded, dict) or recorded.keys() != current.keys():
        return False
    named = [recorded[name] for name in _COMPARED]
    return isinstance(recorded["settings"], dict) and all(isinstance(each, list) and len(each) == 3 for each in named)


def compare(recorded: dict, current: dict, path):
    """Raise, in one sentence, at the first thing that is not as it was."""
    if not _is_alike(recorded, current):
        raise SessionError(f"{path} does not say who plays what; it was not written by cocoax")
    deliberate = "or have its rounds played again: cx.Session.replay"
    if recorded["version"] != current["version"]:
        raise SessionError(
            f"{path} was recorded by cocoax {recorded['version']}, this is {current['version']}; install that one, "
            f"{deliberate}"
        )
    if recorded["x64"] != current["x64"]:
        raise SessionError(f"{path} was recorded with jax_enable_x64={recorded['x64']}; set that, {deliberate}")
    for name in ("decision", "constraints"):
        if recorded[name] != current[name]:
            raise SessionError(
                f"{path} was recorded with {name} {recorded[name]}, this problem has {current[name]}; open it with the "
                f"problem of then, {deliberate}"
            )
    same_python = recorded["python"] == current["python"]
    for name in _COMPARED:
        before, now = recorded[name], current[name]
        which = 1 if same_python else 2
        if before[0] != now[0]:
            raise SessionError(
                f"{path} was recorded with the {name} {before[0]}, this is {now[0]}; open it with that, {deliberate}"
            )
        if before[which] != now[which]:
            raise SessionError(
                f"{path} was recorded with another {name} of the same name, {now[0]}: its numbers or its code have "
                f"changed; open it with those, {deliberate}"
            )
    for name, now in current["settings"].items():
        before = recorded["settings"].get(name)
        if before != now:
            raise SessionError(f"{path} was begun with {name}={before}, this is {name}={now}; give that, {deliberate}")
    if recorded["state"] != current["state"]:
        raise SessionError(f"{path} was begun from a state= of another form; give it again when opening, {deliberate}")
