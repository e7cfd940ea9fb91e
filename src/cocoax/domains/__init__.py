"""Convex sets that answer linear minimisation, one family per file."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
