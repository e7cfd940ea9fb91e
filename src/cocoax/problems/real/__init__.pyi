from ..language_models import llm_routing as llm_routing
from .car_park import ev_charging as ev_charging
from .networks import telecom as telecom
from .people import fair_classification as fair_classification
from .portfolios import portfolio as portfolio
from .recorded import RealInstance as RealInstance
from .recorded import Recording as Recording
from .roads import traffic as traffic
