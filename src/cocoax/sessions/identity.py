"""What a session is recognised by: numbers and structure from the start, and what is computed, once rounds have a form.

Programs are compared where the same code of cocoax under the same JAX on the same kind of device traced them. Elsewhere
they may differ although nothing was changed: there, a session opens with a warning.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..core.fingerprint import library, of_parts, of_program
from ..errors import SessionError
from ..games.loop import play_round
from ..learners.base import AbstractLearner, own
from ..problem.functions import WithPrevious
from ..problem.problem import Problem
from . import packing


class Identity:
    """Of a problem and learner, with the first state."""

    def __init__(self, problem: Problem, learner: AbstractLearner, state: Any, settings: dict):
        from .. import __version__

        self._traced = problem, learner, state
        self._programs: dict[str, dict] = {}  # by the form of rounds
        parts = {
            "learner": own(learner),
            "domain": problem.domain,
            "loss": (problem.loss, problem.loss_grad),
            "constraint": (problem.constraint, problem.constraint_grad),
            "regularity": problem.regularity,
        }
        hashes = {name: of_parts(part) for name, part in parts.items()}
        self._own = {name for name in parts if not hashes[name].known}  # what is not known by the library's code
        random = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
        self.signature = {  # as JSON
            "version": __version__,
            "code": library(),
            "jax": jax.__version__,
            "device": jax.default_backend(),
            "decision": packing.outline(learner.decision(state)),
            "constraints": list(problem.names),
            **{name: [_names(part), hashes[name].digest] for name, part in parts.items()},
            "settings": settings | {"request": listed(problem.request), "jax_threefry_partitionable": random},
            "x64": bool(jax.config.read("jax_enable_x64")),
            "state": packing.outline(state),
        }

    def programs(self, like: Any) -> dict[str, str | None]:
        """Hashes of what a user's parts compute in rounds like this one; None of what cannot be traced. What a callback
        does on the host is not seen."""
        form = f"{jax.tree.structure(like)} {packing.outline(like)}"
        if form not in self._programs:
            self._programs[form] = self._hashes(like)
        return self._programs[form]

    def _hashes(self, like) -> dict[str, str | None]:
        problem, learner, state = self._traced
        bare = eqx.tree_at(
            lambda it: (it.constraint, it.constraint_grad), problem, (None, None), is_leaf=lambda node: node is None
        )
        x = problem.domain.start()
        traced = {
            "domain": (_answer, problem.domain, x),
            "loss": (_values, bare, x, like, x),
            "constraint": (_values, problem, x, like, x),
            "learner": (_round, problem, learner, state, like),
        }
        own = self._own | ({"learner"} if "domain" in self._own else set())
        return {name: _hash_of(*traced[name]) for name in traced if name in own}


def _answer(domain, direction):
    return domain.lmo(direction)


def _values(problem, x, round, previous):
    loss, values, pull = problem.linearize(x, round)
    return loss, values, pull(jnp.ones_like(loss), jnp.ones_like(values)), problem.values(x, round, previous)


def _round(problem, learner, state, round):
    decided = play_round(problem, learner, state, round)
    return decided, play_round(problem, learner, state, round, played=decided[1])


def _hash_of(*program) -> str | None:
    try:
        return of_program(*program)
    except Exception:  # of any kind: users write these functions, and a round will tell
        return None


def listed(request: bool | tuple[str, ...]):
    """What is seen before a decision, as JSON; None if nothing is."""
    return list(request) if isinstance(request, tuple) else request or None


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


_PARTS = ("learner", "domain", "loss", "constraint", "regularity")
_MADE = {
    "version": "by cocoax {}, this is {}",
    "code": "by other code of cocoax: {:.8}, this is {:.8}",
    "jax": "under JAX {}, this is {}",
    "device": "on a {}, this is a {}",
}


def compare(recorded: Any, programs: Any, current: Identity, like: Any, path, *, is_empty: bool = False) -> str | None:
    """Raise, in one sentence, at the first difference. Returns who else wrote the file, if that was other code.

    `programs` are those recorded for rounds like `like`. `is_empty`: the file has no rounds yet, as after a first try
    whose problem or learner had a mistake.
    """
    now = current.signature
    if not _is_signature(recorded, now):
        raise SessionError(
            f"{path} has no signature of a session; cocoax did not write it, or a version that is too old"
        )
    is_fleet = now["settings"].get("fleet")
    deliberate = "or begin a new fleet" if is_fleet else "or replay its rounds with cx.Session.replay"
    deliberate = "or delete it to begin again, for it has no rounds yet" if is_empty else deliberate
    differ = [text.format(recorded[name], now[name]) for name, text in _MADE.items() if recorded[name] != now[name]]
    is_comparable = not differ and isinstance(programs, dict)
    for sentence in _differences(recorded, programs if is_comparable else {}, current, like):
        raise SessionError(f"{path} {sentence}, {deliberate}")
    return f"written {differ[0]}" if differ else None


def _differences(recorded: dict, programs: dict, current: Identity, like: Any) -> Iterator[str]:
    now = current.signature
    if recorded["x64"] != now["x64"]:
        yield f"was recorded with jax_enable_x64={recorded['x64']}; set that"
    for name in ("decision", "constraints"):
        if recorded[name] != now[name]:
            this = f"this problem has {now[name]}"
            yield f"was recorded with {name} {recorded[name]}, {this}; open it with the same problem"
    yield from (_other(name, recorded, now) for name in _PARTS if recorded[name][1] != now[name][1])
    for name in {**now["settings"], **recorded["settings"]}:
        before, this = recorded["settings"].get(name), now["settings"].get(name)
        if before != this:
            yield f"has {name}={before}, this is {name}={this}; give that"
    if recorded["state"] != now["state"]:
        yield (
            "has states of other shapes: it started from another state=, which must be given again, or another "
            "version of cocoax wrote it, which must open it"
        )
    found = current.programs(like) if programs else {}
    yield from (_other(name, recorded, now) for name in found if programs.get(name) != found[name])


def _other(name, recorded, now) -> str:
    before, this = recorded[name][0], now[name][0]
    if before != this:
        return f"was recorded with the {name} {before}, this is {this}; open it with that"
    changed = "its numbers or its code have changed"
    return f"was recorded with another {name} of the same name, {this}: {changed}; open it with those"


def _is_signature(recorded, current: dict) -> bool:
    """Whether the record has the structure of a signature."""
    if not isinstance(recorded, dict) or recorded.keys() != current.keys():
        return False
    pairs = all(isinstance(recorded[name], list) and len(recorded[name]) == 2 for name in _PARTS)
    return pairs and isinstance(recorded["settings"], dict) and all(isinstance(recorded[name], str) for name in _MADE)
