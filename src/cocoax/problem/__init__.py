"""The problem: a domain, a loss, constraints, and where its rounds come from."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
