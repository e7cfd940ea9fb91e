from . import arena as arena
from . import catalogue as catalogue
from . import files as files
from . import guarantees as guarantees
from . import paper as paper
from .report.games import plot as plot
from .results import statistics as statistics
from .study import Study as Study
