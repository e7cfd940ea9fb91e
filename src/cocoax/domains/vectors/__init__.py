"""Sets of vectors whose LMO is a formula or a sort."""
