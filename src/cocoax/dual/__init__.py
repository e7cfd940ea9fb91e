"""How much each constraint weighs, one rule per file."""

from .base import AbstractDual as AbstractDual
from .base import Weights as Weights
from .regularized_ascent import RegularizedAscent as RegularizedAscent
from .virtual_queue import VirtualQueue as VirtualQueue
