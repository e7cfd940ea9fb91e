"""Totals without drift; the alarm is for budgets that are exceeded all the time."""

import numpy as np
import pytest

from cocoax.learners import Outcome
from cocoax.sessions.totals import BLOCKS, RunningTotals, growing


def test_small_losses_are_not_lost_beside_large_ones():
    totals = RunningTotals(0)
    for loss in (1e16, 1.0, 1.0, -1e16):
        totals.add(Outcome(loss, np.zeros(0), np.zeros(0), 0, 0, True))
    assert totals.summary(())["loss"] == 2


@pytest.mark.parametrize("kept", [False, True])
def test_a_budget_that_is_kept_for_a_while_raises_no_alarm(kept):
    """Multipliers rise from 1 on, and values are 1, many times the range of the losses."""
    means = np.stack([np.arange(1.0, BLOCKS + 1), np.ones(BLOCKS)], axis=1)[..., None]
    means[-3, 1] = -0.1 if kept else 0.1
    assert growing(means, BLOCKS, (0.0, 0.01)).item() != kept
