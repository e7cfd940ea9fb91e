"""Guarantees as formulas: rates, constants, parameters and bounds. They are plain arithmetic, without arrays.

`theory.constants` has a function for each primal, such as `ocg(diameter)`; `theory.regret` has the full bounds.
"""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
