"""Ready problems of real data, each with the baselines that people in its field use."""

from ...core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
