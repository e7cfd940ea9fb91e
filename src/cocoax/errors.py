"""Errors. Each message is one sentence: what is wrong, and what would be right."""

from typing import Any


class CocoaxError(ValueError):
    """Base of every error that cocoax raises on purpose."""


class DomainError(CocoaxError):
    """A set that cannot be built, or a question that it cannot answer."""


class ProblemError(CocoaxError):
    """A loss, constraint, constant or round that does not fit the problem."""


class LearnerError(CocoaxError):
    """A learner that is put together or used against its own rules."""


class InfeasibleError(CocoaxError):
    """No point of the domain meets the constraints; `multiplier` and `bound` prove it.

    Every x in the domain has <multiplier, g(x)> >= bound > 0, although multiplier >= 0.
    """

    def __init__(self, message: str, multiplier: Any, bound: Any):
        super().__init__(message)
        self.multiplier = multiplier
        self.bound = bound


class DataError(CocoaxError):
    """Data that are not here, or not what they should be."""


class LabError(CocoaxError):
    """A study, a file or a command that cannot be run."""


class SessionError(CocoaxError):
    """A round, a ticket or a file that a session refuses; what it had acknowledged before still stands."""


class ConflictError(SessionError):
    """A call that is right in itself, but not now: a request is open, or is not, or rounds are counted otherwise."""


class StorageError(SessionError):
    """What could not be written: the disk is full or broken, or the file is closed or another's."""


class SessionWarning(UserWarning):
    """A problem that a session noticed and could work around."""
