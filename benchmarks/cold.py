"""One hard comparator with `seconds=5`, in a fresh process that has compiled nothing: `python -m benchmarks.cold CASE`.

Prints CPU seconds of the call, value and lower bound as JSON. The clock that ends the search counts CPU seconds too: so
a busy machine makes it no later, and one core without other work would take as long.
"""

import json
import sys
import time

import jax


def main(case):
    from benchmarks.sections.comparators import CASES, LIMIT, call

    time.monotonic = time.process_time
    jax.config.update("jax_enable_compilation_cache", False)
    with jax.enable_x64(case.endswith("float64")):
        problem, rounds = CASES[case]()
        began = time.process_time()
        best = call(problem, rounds, 1e-4, LIMIT)
    numbers = time.process_time() - began, float(best.value), float(best.lower_bound)
    print(json.dumps(dict(zip(("seconds", "value", "lower"), numbers))))


if __name__ == "__main__":
    main(sys.argv[1])
