"""Constrained online convex optimization in JAX, without projections."""

from . import domains as domains
from . import dual as dual
from . import learners as learners
from . import primal as primal
from . import problems as problems
from . import testing as testing
from . import theory as theory
from .environment import Environment as Environment
from .environment import Sampler as Sampler
from .errors import CocoaxError as CocoaxError
from .errors import DomainError as DomainError
from .errors import InfeasibleError as InfeasibleError
from .errors import LabError as LabError
from .errors import LearnerError as LearnerError
from .errors import ProblemError as ProblemError
from .errors import SessionError as SessionError
from .errors import SessionWarning as SessionWarning
from .game import Game as Game
from .hindsight import Comparator as Comparator
from .hindsight import hindsight as hindsight
from .learners import Horizon as Horizon
from .learners import Outcome as Outcome
from .minimize import minimize as minimize
from .play import play as play
from .problem import Problem as Problem
from .problem import Regularity as Regularity
from .session import Session as Session

__version__ = "0.1.0"


def __getattr__(name):
    if name == "lab":  # only on demand: what it is made of takes long to import
        import importlib

        return importlib.import_module(".lab", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
