"""The series of the arena of 2026, real and synthetic; `cocoax data fetch --all` gets the data of the real ones."""

import jax
import jax.numpy as jnp
from benchopt import BaseDataset

from cocoax.lab.arena import series


class Dataset(BaseDataset):
    name = "arena-2026"
    parameters = {"series": list(series.SERIES), "rounds": [None]}

    def get_data(self):
        """The rounds that rivals were not tuned on, or the first of them."""
        found = series.frozen(self.series)
        last = found.length if self.rounds is None else min(found.length, found.tuning + int(self.rounds))
        rounds = jax.tree.map(jnp.asarray, found.part(found.tuning, last))
        return {"series": self.series, "problem": found.problem, "rounds": rounds}
