"""Ready problems of real data, each with the baseline that people of its field use beside it."""

from ...core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
