"""Guarantees as formulas: rates, constants, parameters and bounds. Pure arithmetic, no arrays needed.

`theory.constants.ocg(diameter)` and its neighbours describe primals, `theory.regret` their full bounds.
"""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
