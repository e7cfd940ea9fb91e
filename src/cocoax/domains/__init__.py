"""Convex sets that answer linear minimisation."""

from .base import AbstractDomain as AbstractDomain
from .base import AbstractVertex as AbstractVertex
from .simplices import ProbabilitySimplex as ProbabilitySimplex
