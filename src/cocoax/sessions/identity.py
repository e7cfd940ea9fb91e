"""The signature of a session: problem, learner and settings, stored when it starts and compared when it opens."""

import platform

import equinox as eqx
import jax

from ..core.fingerprint import fingerprint
from ..errors import LabError, SessionError
from ..learners.base import AbstractLearner, own
from ..problem.functions import WithPrevious
from ..problem.problem import Problem
from . import packing

_WAYS = [(names, code) for names in (True, False) for code in (True, False)]  # of fingerprints; 0.1.0 has the first two
_COMPARED = ("learner", "domain", "loss", "constraint", "regularity")


def signature(problem: Problem, learner: AbstractLearner, states, settings: dict) -> dict:
    """As JSON. Bytecode is compared only under the same version of Python; everything else always, but for what the
    user's own functions, classes and modules are called: that is for the errors."""
    from .. import __version__

    parts = {
        "learner": own(learner),
        "domain": problem.domain,
        "loss": (problem.loss, problem.loss_grad),
        "constraint": (problem.constraint, problem.constraint_grad),
        "regularity": problem.regularity,
    }
    try:
        fingerprints = {
            name: [_names(part), *(fingerprint(part, code=code, names=names) for names, code in _WAYS)]
            for name, part in parts.items()
        }
    except LabError as error:
        raise SessionError(f"a session must recognise its problem and learner when it opens: {error}") from None
    return {
        "version": __version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "decision": packing.outline(learner.decision(states[0])),
        "constraints": list(problem.names),
        **fingerprints,
        "settings": settings | _unusual(problem),
        "x64": bool(jax.config.read("jax_enable_x64")),
        "state": packing.outline(states[0]),
    }


def _unusual(problem) -> dict:
    """Settings that files of the first version do not have, where they are not as usual."""
    request = {"request": listed(problem.request)} if problem.has_requests else {}
    is_usual = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
    return request | ({} if is_usual else {"jax_threefry_partitionable": False})


def listed(request):
    """As JSON has it."""
    return list(request) if isinstance(request, tuple) else request


def _names(part) -> str:
    parts = part if isinstance(part, tuple) else (part,)
    return ", ".join(_name(part) for part in parts if part is not None)


def _name(part) -> str:
    part = part.function if isinstance(part, WithPrevious) else part
    if isinstance(part, AbstractLearner):
        return part.known_as
    if isinstance(part, jax.tree_util.Partial):
        return getattr(part.func, "__qualname__", type(part.func).__name__)
    return type(part).__name__ if isinstance(part, eqx.Module) else getattr(part, "__qualname__", type(part).__name__)


def _is_signature(recorded, current) -> bool:
    """Whether the record has the structure of a signature."""
    if not isinstance(recorded, dict) or recorded.keys() != current.keys():
        return False
    parts = [recorded[name] for name in _COMPARED]
    return isinstance(recorded["settings"], dict) and all(
        isinstance(part, list) and len(part) in (3, 5) for part in parts
    )


def compare(recorded: dict, current: dict, path, *, any_version: bool = False, is_empty: bool = False):
    """Raise, in one sentence, at the first difference; one of the version of cocoax may be allowed.

    `is_empty`: the file has no rounds yet, as after a first try whose problem or learner had a mistake.
    """
    if not _is_signature(recorded, current):
        raise SessionError(f"{path} has no signature of a session; it was not written by cocoax")
    is_fleet = current["settings"].get("fleet")
    deliberate = "or begin a new fleet" if is_fleet else "or replay its rounds with cx.Session.replay"
    deliberate = "or delete it to begin again, for it has no rounds yet" if is_empty else deliberate
    if recorded["version"] != current["version"] and not any_version:
        raise SessionError(
            f"{path} was recorded by cocoax {recorded['version']}, this is {current['version']}; install that one, "
            f"go on from its snapshot with other_rounding=True, {deliberate}"
        )
    if recorded["x64"] != current["x64"]:
        raise SessionError(f"{path} was recorded with jax_enable_x64={recorded['x64']}; set that, {deliberate}")
    for name in ("decision", "constraints"):
        if recorded[name] != current[name]:
            raise SessionError(
                f"{path} was recorded with {name} {recorded[name]}, this problem has {current[name]}; open it with the "
                f"same problem, {deliberate}"
            )
    same_python = recorded["python"] == current["python"]
    for name in _COMPARED:
        before, now = recorded[name], current[name]
        has_names = len(before) == 3  # a file of 0.1.0
        which = (1 if has_names else 3) + (0 if same_python else 1)
        if before[which] == now[which]:
            continue
        called = "Auto" if before[0] == "TrackedPI2" else before[0]  # as earlier versions called it
        if called != now[0]:
            raise SessionError(
                f"{path} was recorded with the {name} {called}, this is {now[0]}; open it with that, {deliberate}"
            )
        raise SessionError(
            f"{path} was recorded with another {name} of the same name, {now[0]}: its numbers or its code have "
            f"changed; open it with those, {deliberate}"
        )
    for name in {**current["settings"], **recorded["settings"]}:
        before, now = (settings.get(name) for settings in (recorded["settings"], current["settings"]))
        if before != now:
            raise SessionError(f"{path} has {name}={before}, this is {name}={now}; give that, {deliberate}")
    if recorded["state"] != current["state"]:
        raise SessionError(
            f"{path} has states of other shapes: it started from another state=, which must be given again, or another "
            f"version of cocoax wrote it, which must open it, {deliberate}"
        )
