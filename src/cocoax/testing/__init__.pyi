from . import problems as problems
from .domains import check_domain as check_domain
from .duals import check_dual as check_dual
from .learners import check_learner as check_learner
from .primals import check_primal as check_primal
