"""The lab: many games, their tables, figures and reports. Needs `cocoax[lab]`."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, extra="lab")
