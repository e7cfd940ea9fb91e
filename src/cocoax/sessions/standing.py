"""Where a session stands: the proven bound on its regret, its totals, and the alarm."""

import functools
import operator

from ..comparators.certificate import Certificate, certificate, policy_certificate
from ..errors import SessionError
from ..learners.base import own
from ..learners.certified import Certified
from .copies import LearnerCopies


def certificate_of(copies: LearnerCopies, lmos: int = 20, policy: bool = False) -> Certificate:
    """Of all copies together."""
    if not is_certified(copies):
        raise SessionError("a certificate needs the tangents of all rounds; start the session with certify=True")
    states = [copies.state(which) for which in range(len(copies.states))]
    if policy:
        if len(states) > 1 or states[0].policy is None:
            raise SessionError("policy=True is for one learner that sees requests first; leave it out")
        return policy_certificate(states[0].minorants.total_loss, states[0].policy)
    together = functools.reduce(operator.add, [state.minorants for state in states])
    return certificate(copies.problem.domain, together, lmos=lmos)


def is_certified(copies: LearnerCopies) -> bool:
    return isinstance(copies.learner, Certified)


def summary_of(copies: LearnerCopies) -> dict:
    """Plain numbers and strings; if certified, also a bound on the regret."""
    bound = {"regret_bound": float(certificate_of(copies).regret)} if is_certified(copies) else {}
    learner = own(copies.learner).known_as
    return {"learner": learner, **copies.totals.summary(copies.problem.names), **bound}


def alarm_of(copies: LearnerCopies) -> str | None:
    """A sentence if a budget looks infeasible, or is."""
    names = [name for name, grows in zip(copies.problem.names, copies.totals.growing()) if grows]
    if names and is_certified(copies) and certificate_of(copies).infeasible:
        return f"no decision meets {', '.join(names)} over the rounds so far, which is proven: loosen the budget"
    return alarm_for(names)


def alarm_for(names: list[str]) -> str | None:
    """The sentence about constraints that look infeasible."""
    return (
        None
        if not names
        else (
            f"the multiplier of {', '.join(names)} keeps growing while it is exceeded: the budget looks infeasible; "
            "loosen it, or ask regret() for a proof"
        )
    )
