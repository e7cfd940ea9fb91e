"""Ready problems."""

from .base import Instance as Instance
from .matrix_completion import matrix_completion as matrix_completion
from .pacing import pacing as pacing
from .simplex import simplex as simplex
