"""Playing rounds: the loop, the record of a game, and stochastic optimisation by playing."""
