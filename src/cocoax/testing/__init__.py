"""The contracts of cocoax's parts, for those who write their own."""

from .. import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
