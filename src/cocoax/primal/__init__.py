"""Online convex optimisation without long-term constraints, one algorithm per file."""

from . import steps as steps
from .ada_mfw import AdaMFW as AdaMFW
from .ada_ofw import AdaOFW as AdaOFW
from .adagrad import AdaGrad as AdaGrad
from .adaptive import AbstractAdaptive as AbstractAdaptive
from .base import AbstractPrimal as AbstractPrimal
from .base import Scale as Scale
from .ftpl import FTPL as FTPL
from .loo_bogd import LOOBOGD as LOOBOGD
from .meta_ogd import MetaOGD as MetaOGD
from .mfw import MFW as MFW
from .morgfw import MORGFW as MORGFW
from .ocg import OCG as OCG
from .ofw import OFW as OFW
from .ogd import OGD as OGD
from .orgfw import ORGFW as ORGFW
from .ospf import OSPF as OSPF
from .perturbation import AbstractPerturbation as AbstractPerturbation
from .sftpl import SFTPL as SFTPL
from .tracked import Tracked as Tracked
