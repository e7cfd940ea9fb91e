"""Online convex optimisation without long-term constraints, one algorithm per file."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
