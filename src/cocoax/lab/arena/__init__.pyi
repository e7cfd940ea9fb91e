from .ranking import START as START
from .ranking import markdown as markdown
from .ranking import standings as standings
from .suite import ARENA as ARENA
from .suite import FIRST_SEED as FIRST_SEED
from .suite import HORIZONS as HORIZONS
from .suite import arena_study as arena_study
