"""Learners: what `play` plays."""

from .base import AbstractLearner as AbstractLearner
from .base import Horizon as Horizon
from .base import Outcome as Outcome
from .paper import PDMFW as PDMFW
from .paper import Blocks as Blocks
from .primal_dual import PrimalDual as PrimalDual
from .projected import DPP as DPP
from .projected import PDOGD as PDOGD
from .projected import AdaptivePDOGD as AdaptivePDOGD
from .projected import Stay as Stay
