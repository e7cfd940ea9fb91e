"""Convex sets that answer linear minimisation, one family per file."""

from .. import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
