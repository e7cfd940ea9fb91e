"""Constrained online convex optimization in JAX, without projections."""

from . import domains as domains
from .errors import CocoaxError as CocoaxError
from .errors import DomainError as DomainError
from .errors import InfeasibleError as InfeasibleError
from .errors import LearnerError as LearnerError
from .errors import ProblemError as ProblemError
from .problem import Environment as Environment
from .problem import Problem as Problem
from .problem import Regularity as Regularity
from .problem import Sampler as Sampler

__version__ = "0.1.0"
