from .problems import ARENA as ARENA
from .problems import HORIZONS as HORIZONS
from .problems import VERSION_1 as VERSION_1
from .ranking import START as START
from .ranking import markdown as markdown
from .ranking import standings as standings
from .suite import FIRST_SEED as FIRST_SEED
from .suite import arena_study as arena_study
