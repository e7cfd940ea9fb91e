"""Guarantees as formulas: rates, constants, parameters and bounds. Pure arithmetic, no arrays needed.

`theory.constants.ocg(diameter)` and its neighbours describe primals, `theory.regret` their full bounds.
"""

from . import constants as constants
from . import regret as regret
from .bounds import Bounds as Bounds
from .bounds import algorithm1 as algorithm1
from .bounds import algorithm1_printed as algorithm1_printed
from .bounds import multiplier_cap as multiplier_cap
from .bounds import pdmfw as pdmfw
from .bounds import pdmfw_constants as pdmfw_constants
from .bounds import pdmfw_printed as pdmfw_printed
from .bounds import violation as violation
from .bounds import violation_strong_duality as violation_strong_duality
from .constants import Constants as Constants
from .constants import kappa as kappa
from .frontier import Guaranteed as Guaranteed
from .frontier import growth as growth
from .frontier import lyap_drift as lyap_drift
from .frontier import lyap_hard as lyap_hard
from .frontier import lyap_hard_rate as lyap_hard_rate
from .frontier import lyap_pred as lyap_pred
from .frontier import lyap_stoch as lyap_stoch
from .frontier import pdofw as pdofw
from .frontier import pdofw_theta as pdofw_theta
from .frontier import penofw as penofw
from .frontier import penofw_zeta as penofw_zeta
from .parameters import block_length as block_length
from .parameters import blocks_mu as blocks_mu
from .parameters import blocks_theta as blocks_theta
from .parameters import ceil_power as ceil_power
from .parameters import ftpl_size as ftpl_size
from .parameters import inner_steps as inner_steps
from .parameters import pdmfw_level as pdmfw_level
from .parameters import pdmfw_mu as pdmfw_mu
from .parameters import pdmfw_size as pdmfw_size
from .parameters import pdmfw_theta as pdmfw_theta
from .rates import TABLE_1 as TABLE_1
from .rates import TABLE_2 as TABLE_2
from .rates import Rates as Rates
from .rates import pdmfw_rates as pdmfw_rates
from .rates import rates as rates
