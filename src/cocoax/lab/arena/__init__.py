"""The arena: a fixed suite of problems, on which an untuned learner meets tuned rivals."""

from ...core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, extra="lab")
