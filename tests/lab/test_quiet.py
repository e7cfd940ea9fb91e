"""Studies say how far they are themselves; comparators are silent in them."""

import jax.numpy as jnp

import cocoax as cx
from cocoax.lab.sources import Drawn
from cocoax.problems import Instance
from cocoax.problems.real import Recording


def test_comparators_of_instances_are_found_without_progress_of_their_own():
    asked = {}

    class Told(Instance):
        def comparator(self, rounds, **options):
            asked.update(options)
            return cx.Comparator.fixed(self.problem, rounds, jnp.ones(1))

    problem = cx.Problem(cx.domains.ProbabilitySimplex(1), lambda x, r: r @ x)
    rounds = jnp.ones((3, 1))
    Drawn(problem, rounds, Told(problem, Recording(rounds), None, None)).comparator(2, 1e-3)
    assert asked == {"tol": 1e-3, "progress": False}
