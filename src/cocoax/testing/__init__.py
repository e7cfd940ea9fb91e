"""The contracts of cocoax's parts, for those who write their own."""

from .domains import check_domain as check_domain
