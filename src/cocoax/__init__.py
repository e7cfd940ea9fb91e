"""Constrained online convex optimization in JAX, without projections."""

from .core import lazy

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy.attach(__name__, unlisted=["lab"])  # what it needs may not be installed
