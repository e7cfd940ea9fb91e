"""Real data: what there is (`DATASETS`), how to get it (`fetch`), and how to read it (`load`)."""

from ..core import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__)
