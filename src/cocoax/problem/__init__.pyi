from .environment import Environment as Environment
from .environment import Sampler as Sampler
from .problem import Problem as Problem
from .problem import Round as Round
from .rates import Rate as Rate
from .regularity import Regularity as Regularity
