from .fetching import fetch as fetch
from .registry import DATASETS as DATASETS
from .registry import Dataset as Dataset
from .stored import cache_folder as cache_folder
from .stored import is_here as is_here
from .stored import load as load
