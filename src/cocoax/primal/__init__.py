"""Online convex optimisation without long-term constraints, one algorithm per file."""

from .. import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
