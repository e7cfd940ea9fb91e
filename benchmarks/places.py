"""Small and large sets on which a round of Auto is timed, with how many rounds; it is read by old versions, too."""

import jax
import jax.numpy as jnp

import cocoax as cx

PLACES = {
    "simplex of 10": (lambda: cx.domains.ProbabilitySimplex(10), 2000),
    "box of 10": (lambda: cx.domains.Box(jnp.zeros(10), jnp.ones(10)), 2000),
    "simplex of 1,000": (lambda: cx.domains.ProbabilitySimplex(1000), 1000),
    "box of 1,000": (lambda: cx.domains.Box(jnp.zeros(1000), jnp.ones(1000)), 1000),
    "nuclear ball, 50 x 50": (lambda: cx.domains.NuclearNormBall((50, 50), 10.0), 200),
    "nuclear ball, 1000 x 1000": (lambda: cx.domains.NuclearNormBall((1000, 1000), 10.0), 256),
}


def drawn(place):
    """A problem, and its rounds."""
    make, count = PLACES[place]
    domain = make()
    problem = cx.Problem(domain, lambda x, r: 0.5 * jnp.sum((x - r) ** 2), lambda x, r: x.ravel()[0] - 0.2)
    return problem, jax.random.uniform(jax.random.key(0), (count, *domain.shape))
