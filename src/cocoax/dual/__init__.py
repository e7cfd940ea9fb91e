"""How much each constraint weighs, one rule per file."""

from .base import AbstractDual as AbstractDual
from .base import Weights as Weights
from .bounded_ascent import BoundedAscent as BoundedAscent
from .drift_potential import DriftPotential as DriftPotential
from .exponential_potential import ExponentialPotential as ExponentialPotential
from .floored_queue import FlooredQueue as FlooredQueue
from .hard import Hard as Hard
from .penalty import Penalty as Penalty
from .pi import PI as PI
from .regularized_ascent import RegularizedAscent as RegularizedAscent
from .virtual_queue import VirtualQueue as VirtualQueue
