"""The families of `benchmarks.auto_unseen`, by name."""

from . import limits, losses, rare, sets, trades
from .family import FAMILIES

__all__ = ["FAMILIES", "limits", "losses", "rare", "sets", "trades"]
