"""The families of `benchmarks.auto_unseen`, by name."""

from . import limits, losses, sets
from .family import FAMILIES

__all__ = ["FAMILIES", "limits", "losses", "sets"]
