"""The contracts of cocoax's parts, for those who write their own."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
