"""Online convex optimisation without long-term constraints, one algorithm per file."""

from .base import AbstractPrimal as AbstractPrimal
from .base import Scale as Scale
from .ftpl import FTPL as FTPL
from .mfw import MFW as MFW
from .morgfw import MORGFW as MORGFW
from .ocg import OCG as OCG
from .ogd import OGD as OGD
from .orgfw import ORGFW as ORGFW
from .ospf import OSPF as OSPF
from .perturbation import AbstractPerturbation as AbstractPerturbation
from .sftpl import SFTPL as SFTPL
