"""How much each constraint weighs, one rule per file."""

from .. import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
