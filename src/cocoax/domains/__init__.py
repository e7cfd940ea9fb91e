"""Convex sets that answer linear minimisation."""

from .balls import Box as Box
from .balls import L1Ball as L1Ball
from .balls import L2Ball as L2Ball
from .balls import LinfBall as LinfBall
from .base import AbstractDomain as AbstractDomain
from .base import AbstractVertex as AbstractVertex
from .combinators import FromLMO as FromLMO
from .combinators import Product as Product
from .combinators import from_lmo as from_lmo
from .simplices import ProbabilitySimplex as ProbabilitySimplex
from .spectral import NuclearNormBall as NuclearNormBall
from .spectral import Spectraplex as Spectraplex
