"""What a report says about a learner: the code that makes it, and its parameters that are not the defaults."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ...learners.base import AbstractLearner


class LearnerFacts(NamedTuple):
    """One learner of a study."""

    name: str
    problem: str | None  # which it plays; None where it plays all problems
    code: str
    other_parameters: dict[str, str]  # that are not the defaults

    def is_marked(self, problem: str) -> bool:
        """Whether it plays this problem with parameters that are not the defaults."""
        return bool(self.other_parameters) and self.problem in (None, problem)


def learner_facts(learners: Mapping[str, Any]) -> list[LearnerFacts]:
    """The facts of each learner.

    A name may have one learner per problem, as a dict; each of these then has facts of its own.
    """
    return [
        LearnerFacts(name, problem, as_code(learner), other_parameters(learner))
        for name, one_or_many in learners.items()
        for problem, learner in (one_or_many if isinstance(one_or_many, Mapping) else {None: one_or_many}).items()
    ]


def as_code(part) -> str:
    """The Python code that makes this module, with its numbers."""
    if isinstance(part, eqx.Module):
        inner = ", ".join(f"{key}={as_code(value)}" for key, value in arguments(part).items() if value is not None)
        name = part.known_as if isinstance(part, AbstractLearner) else type(part).__name__
        return f"{name}({inner})"
    if eqx.is_array_like(part) and not isinstance(part, bool):
        return f"{float(part):g}" if np.ndim(part) == 0 else np.array2string(np.asarray(part), threshold=6)
    return repr(part) if isinstance(part, str | bool) else getattr(part, "__name__", repr(part))


def arguments(part) -> dict[str, Any]:
    """The arguments that make an equal module; its fields if these cannot be found."""
    part = jax.device_get(part)  # comparing arrays of JAX would compile a program
    fields = _fields(part)
    try:
        values = {
            name: fields[name] if name in fields else getattr(part, name)
            for name in inspect.signature(type(part)).parameters
        }
        again = jax.device_get(type(part)(**values))
    except Exception:  # a user's class can raise anything
        return fields
    return values if eqx.tree_equal(again, part) else fields


def other_parameters(part) -> dict[str, str]:
    """The parameters of a learner and of its parts that are not the defaults, as text by name."""
    values = arguments(part)
    required = {
        name: values.get(name)
        for name, parameter in inspect.signature(type(part)).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    try:
        default = type(part)(**required)
    except Exception:  # a user's class can raise anything
        return {}
    others = _unequal(part, default)
    for name, inner in required.items():
        if isinstance(inner, eqx.Module):
            others |= {f"{name}.{field}": value for field, value in other_parameters(inner).items()}
    return others


def _fields(part) -> dict[str, Any]:
    fields = dataclasses.fields(part)
    return {field.metadata.get("argument", field.name): getattr(part, field.name, None) for field in fields}


def _unequal(part, default) -> dict[str, str]:
    """The parameters in which `part` differs from `default`, as text by (dotted) name."""
    others: dict[str, str] = {}
    values, defaults = arguments(part), arguments(default)
    if values.keys() != defaults.keys():
        values, defaults = _fields(part), _fields(default)
    for name, value in values.items():
        if isinstance(value, eqx.Module) and type(value) is type(defaults[name]):
            others |= {f"{name}.{inner}": text for inner, text in _unequal(value, defaults[name]).items()}
        elif as_code(value) != as_code(defaults[name]):
            others[name] = as_code(value)
    return others
