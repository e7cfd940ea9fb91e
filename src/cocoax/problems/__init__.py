"""Ready problems."""

from .base import Instance as Instance
from .matrix_completion import matrix_completion as matrix_completion
from .online_pca import online_pca as online_pca
from .pacing import pacing as pacing
from .portfolio import portfolio as portfolio
from .regression import group_sparsity as group_sparsity
from .regression import sparse_regression as sparse_regression
from .shortest_path import shortest_path as shortest_path
from .simplex import simplex as simplex
from .variants import rescaled as rescaled
from .variants import waking as waking
