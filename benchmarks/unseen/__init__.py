"""Families of problems that Auto was not made with, by name; `python -m benchmarks.unseen` plays them."""

from . import limits, losses, rare, sets, trades
from .family import FAMILIES

__all__ = ["FAMILIES", "limits", "losses", "rare", "sets", "trades"]
