"""Learners: what `play` plays."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
