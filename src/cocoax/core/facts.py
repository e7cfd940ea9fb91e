"""Facts of an algorithm, a domain or a ready problem. They stand on its class, next to its docstring.

`cocoax list`, `cocoax theory`, the tables of the docs and BibTeX are derived from them.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of a learner, a primal or a dual.

    >>> facts = Facts(cost="1 LMO", guarantee="expected, proven", cites=("cocoax",), regret=Fraction(3, 4))
    >>> facts.columns()
    ('1 LMO', 'regret T^(3/4), expected, proven')
    """

    cost: str  # a round
    guarantee: str  # its conditions, and whether it is proven, in print or measured
    cites: tuple[str, ...]  # keys of `references.bib`
    regret: Fraction | None = None  # exponent of T at the default arguments, where there is one
    violation: Fraction | None = None
    hard: bool = False  # whether the violation is that of hard constraints

    def columns(self) -> tuple[str, str]:
        """Cost and guarantee, as `cocoax list` shows them."""
        violation = "hard violation" if self.hard else "violation"
        if self.regret is not None and self.regret == self.violation:
            rates = [f"regret and {violation} {_power(self.regret)}"]
        else:
            exponents = {"regret": self.regret, violation: self.violation}
            rates = [f"{name} {_power(exponent)}" for name, exponent in exponents.items() if exponent is not None]
        return self.cost, ", ".join([*rates, self.guarantee])


@dataclass(frozen=True)
class DomainFacts:
    """Facts of a domain."""

    lmo: str  # its cost
    on_host: bool = False  # whether the LMO is a solver on the host, called from compiled code

    def columns(self) -> tuple[str, str]:
        """Cost of the LMO, and where it runs."""
        return self.lmo, "on the host" if self.on_host else "compiled"


@dataclass(frozen=True)
class ProblemFacts:
    """Facts of a ready problem."""

    domain: str
    purpose: str

    def columns(self) -> tuple[str, str]:
        """Domain and purpose."""
        return self.domain, self.purpose


def with_facts(facts: Facts | DomainFacts | ProblemFacts) -> Callable[[_Function], _Function]:
    """Decorator that puts facts on a function, as `facts = ...` does in the body of a class."""

    def attach(function: _Function) -> _Function:
        vars(function)["facts"] = facts
        return function

    return attach


def offered(package: types.ModuleType) -> dict[str, Any]:
    """The parts of a package that a user builds with, by name: its public classes and functions that have facts."""
    parts = {name: getattr(package, name) for name in sorted(package.__all__, key=str.lower)}
    return {
        name: part
        for name, part in parts.items()
        if isinstance(part, type | types.FunctionType) and "facts" in vars(part)
    }


def _power(exponent: Fraction) -> str:
    return f"T^({exponent})" if exponent else "O(1)"
