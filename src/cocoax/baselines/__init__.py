"""Published methods to compare with. For work of your own, choose from `cocoax.learners`."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
