"""Games at once: instances x rounds a second, of the paper's 50 x 50 completion, against the number of instances.

One compiled call plays all of them (`jax.vmap` over `play`), without the time to compile.
"""

import jax
import numpy as np

import cocoax as cx
from benchmarks.sections.paper import games
from benchmarks.timing import in_turn, row

LEARNERS = {"Auto": cx.learners.Auto(), "Algorithm 1, OCG": cx.learners.Blocks(cx.primal.OCG())}


def measure(device, quick):
    batches, horizon, repeats = ((1, 4), 10, 3) if quick else ((1, 4, 16, 64, 256), 100, 9)
    rows = []
    for name, learner in list(LEARNERS.items())[1 if quick else 0 :]:
        calls = {batch: games(learner, batch, horizon)[0] for batch in batches}
        spent = in_turn(calls, repeats, 4.0, compiled=True)
        speeds = {batch: list(batch * horizon / np.asarray(each)) for batch, each in spent.items()}
        for batch, each in speeds.items():
            case = f"{batch} instance{'s' if batch > 1 else ''}"
            rows.append(row(case, name, each, unit="1/s", over="one instance", ours=speeds[1], batch=batch))
        jax.clear_caches()
    return rows
