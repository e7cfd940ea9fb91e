"""The problem: a domain, a loss, constraints, what is known about them, and where rounds come from."""

import abc
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import _tree as tree
from .domains.base import AbstractDomain, Point
from .errors import ProblemError

Round = Any
"""What is revealed at one time: any PyTree."""


class Regularity(eqx.Module):
    r"""Constants of every $f_t$ and $g_t$ in one norm; the paper's $D$, $L$ and $G$.

    $\|\nabla f_t\|, \|\nabla g_t\| \le D$ (`lipschitz`) in the l2 norm (`norm=2`) or linf norm (`norm=jnp.inf`),
    $\|\nabla f_t(x) - \nabla f_t(y)\| \le L\|x-y\|$ (`smoothness`, in the l2 norm or from l1 to linf),
    and $|g_t| \le G$ on both sides (`constraint_bound`, erratum E18).
    """

    lipschitz: Float[Array, ""] | None
    smoothness: Float[Array, ""] | None
    constraint_bound: Float[Array, ""] | None
    norm: float = eqx.field(static=True)

    def __init__(self, lipschitz=None, smoothness=None, constraint_bound=None, norm: float = 2):
        if norm not in (2, float("inf")):
            raise ProblemError(f"regularity is stated in the norm 2 or inf, got norm={norm}")
        self.lipschitz = _constant(lipschitz, "lipschitz")
        self.smoothness = _constant(smoothness, "smoothness")
        self.constraint_bound = _constant(constraint_bound, "constraint_bound")
        self.norm = norm


def _constant(value, name):
    if value is None:
        return None
    array = jnp.asarray(value, float)
    if not tree.is_traced(array) and not (array.ndim == 0 and bool(array >= 0)):
        raise ProblemError(f"{name} must be one number >= 0, got {value}")
    if name == "lipschitz" and not tree.is_traced(array) and not bool(array > 0):
        raise ProblemError(f"lipschitz must be positive, got {value}; for constant functions give any small number")
    return array


class Problem(eqx.Module):
    """A loss f and constraints g over a domain; round by round, `loss(x, round)` and `constraint(x, round)`.

    **Arguments:**

    - `domain`: the set that decisions lie in.
    - `loss`: `(x, round) -> number`. A function, or a callable PyTree: problems of one shape then share one
      compilation.
    - `constraint`: `(x, round) ->` a number, a vector, or a dict of named numbers; <= 0 is good.
    - `constraints`: how many there are, or the tuple of names that `constraint`'s dict has.
    - `regularity`: one `Regularity`, or several, one per norm. Methods with proofs need it.
    - `loss_grad`, `constraint_grad`: `(x, round) -> gradient`, in place of autodiff; with several constraints
      the latter has them along a leading axis.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> problem = cx.Problem(
    ...     cx.domains.ProbabilitySimplex(3),
    ...     loss=lambda x, r: jnp.vdot(r["cost"], x),
    ...     constraint=lambda x, r: jnp.vdot(r["use"], x) - 0.5,
    ... )
    >>> r = {"cost": jnp.array([1.0, 2.0, 3.0]), "use": jnp.array([1.0, 0.0, 0.0])}
    >>> f, g = problem.values(jnp.array([0.5, 0.5, 0.0]), r)
    >>> float(f), g.tolist()
    (1.5, [0.0])
    """

    domain: AbstractDomain
    loss: Callable
    constraint: Callable | None
    loss_grad: Callable | None
    constraint_grad: Callable | None
    regularity: tuple[Regularity, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        domain,
        loss,
        constraint=None,
        *,
        constraints: int | tuple[str, ...] = 1,
        regularity=None,
        loss_grad=None,
        constraint_grad=None,
    ):
        if not isinstance(domain, AbstractDomain):
            raise ProblemError(
                f"domain must be one of cocoax.domains, got {type(domain).__name__}; wrap your own with "
                "domains.from_lmo"
            )
        self.domain = domain
        self.loss = as_pytree(loss, "loss")
        self.constraint = None if constraint is None else as_pytree(constraint, "constraint")
        self.loss_grad = None if loss_grad is None else as_pytree(loss_grad, "loss_grad")
        self.constraint_grad = None if constraint_grad is None else as_pytree(constraint_grad, "constraint_grad")
        self.regularity = _regularities(regularity)
        self.names = () if constraint is None else _names(constraints)

    @property
    def constraints(self) -> int:
        """How many constraints there are."""
        return len(self.names)

    def values(self, x: Point, round: Round) -> tuple[Float[Array, ""], Float[Array, " m"]]:
        """(f(x), g(x)); g always as a vector."""
        kind = tree.dtype(x)
        loss = jnp.asarray(self.loss(x, round), kind)
        if loss.shape != ():
            raise ProblemError(f"loss must return one number, got shape {loss.shape}; sum it")
        return loss, self._constraint_values(x, round).astype(kind)

    def linearize(self, x: Point, round: Round):
        """(f(x), g(x), pull), where `pull(a, b)` is the gradient of a f + <b, g> at x, in one backward pass."""
        if self.loss_grad is None and (self.constraint_grad is None or self.constraints == 0):
            (loss, constraint), vjp = jax.vjp(lambda point: self.values(point, round), x)
            return loss, constraint, lambda a, b: vjp((a, b))[0]
        loss, constraint = self.values(x, round)
        loss_gradient, constraint_gradients = self.gradients(x, round)

        def pull(a, b):
            return jax.tree.map(lambda f, g: a * f + jnp.tensordot(b, g, axes=1), loss_gradient, constraint_gradients)

        return loss, constraint, pull

    def gradients(self, x: Point, round: Round) -> tuple[Point, Point]:
        """The gradient of f at x, and those of the constraints along a leading axis."""
        if self.loss_grad is None:
            loss_gradient = jax.grad(lambda point: self.values(point, round)[0])(x)
        else:
            loss_gradient = tree.astype(self.loss_grad(x, round), tree.dtype(x))
        if self.constraint_grad is None or self.constraints == 0:
            constraint_gradients = jax.jacrev(lambda point: self.values(point, round)[1])(x)
        else:
            given = tree.astype(self.constraint_grad(x, round), tree.dtype(x))
            constraint_gradients = jax.tree.map(lambda g, p: g.reshape(self.constraints, *p.shape), given, x)
        return loss_gradient, constraint_gradients

    def constants(self, norm, needs, who) -> Regularity:
        """The regularity stated in `norm`, checked to hold what `who` needs."""
        name = "l2" if norm == 2 else "linf"
        for regularity in self.regularity:
            if regularity.norm == norm:
                for need in needs:
                    if getattr(regularity, need) is None:
                        raise ProblemError(
                            f"{who} needs {need} in the {name} norm; give Problem(regularity="
                            f"Regularity({need}=..., norm={norm}))"
                        )
                return regularity
        if not self.regularity:
            raise ProblemError(
                f"{who} needs {' and '.join(needs)} in the {name} norm; give Problem(regularity="
                f"Regularity({'=..., '.join(needs)}=..., norm={norm}))"
            )
        raise ProblemError(
            f"{who} needs constants in the {name} norm, but this problem states them only in the norm "
            f"{', '.join(str(r.norm) for r in self.regularity)}; add a Regularity(norm={norm}, ...)"
        )

    def _constraint_values(self, x, round):
        if self.constraint is None:
            return jnp.zeros((0,), tree.dtype(x))
        answer = self.constraint(x, round)
        if isinstance(answer, dict):
            if set(answer) != set(self.names):
                raise ProblemError(
                    f"constraint returned the names {sorted(answer)}, but the problem expects "
                    f"{sorted(self.names)}; give Problem(constraints={tuple(answer)})"
                )
            answer = jnp.stack([jnp.asarray(answer[name]) for name in self.names])
        answer = jnp.asarray(answer)
        if self.constraints == 1 and answer.shape == ():
            answer = answer[None]
        if answer.shape != (self.constraints,):
            raise ProblemError(
                f"constraint returned shape {answer.shape}, but the problem expects {self.constraints} "
                "value(s); say how many with Problem(constraints=...)"
            )
        return answer


def as_pytree(function, name) -> Any:
    """A callable as a PyTree without function leaves: plain functions become part of the tree's structure."""
    if not callable(function):
        raise ProblemError(f"{name} must be callable as {name}(x, round), got {type(function).__name__}")
    is_pytree = isinstance(function, eqx.Module | jax.tree_util.Partial)
    return function if is_pytree else jax.tree_util.Partial(function)


def _regularities(regularity) -> tuple[Regularity, ...]:
    if regularity is None:
        return ()
    given = (regularity,) if isinstance(regularity, Regularity) else tuple(regularity)
    if not all(isinstance(one, Regularity) for one in given):
        raise ProblemError("regularity must be a Regularity, or several, one per norm")
    if len({one.norm for one in given}) < len(given):
        raise ProblemError("regularity states one norm twice; give one Regularity per norm")
    return given


def _names(constraints) -> tuple[str, ...]:
    if isinstance(constraints, int):
        if constraints < 1:
            raise ProblemError(f"constraints must be at least 1 when constraint is given, got {constraints}")
        return ("constraint",) if constraints == 1 else tuple(f"constraint_{i}" for i in range(constraints))
    names = tuple(constraints)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ProblemError(f"constraints must be a number or a tuple of different names, got {constraints!r}")
    return names


class Environment(eqx.Module):
    """Where rounds come from: a sampler, a recording, or an adversary.

    `emit` is given the decision itself: the strongest adversary. Guarantees of randomised learners hold only
    for environments that ignore it.
    """

    @abc.abstractmethod
    def init(self, key) -> Any:
        """The state before the first round."""

    @abc.abstractmethod
    def emit(self, state, decision: Point, key) -> tuple[Any, Round]:
        """The next state, and the round that answers `decision`."""

    def draw(self, horizon: int, key, decision: Point = None) -> Round:
        """`horizon` rounds with a leading axis, against one decision that never changes.

        With the same key these are the rounds that `play` meets, if the environment ignores decisions.
        """
        return _draw(self, horizon, key, decision)


@functools.partial(jax.jit, static_argnums=1)
def _draw(environment, horizon, key, decision):
    _, environment_key = jax.random.split(key)  # the first is the learner's
    init_key, emit_key = jax.random.split(environment_key)

    def one_round(state, t):
        return environment.emit(state, decision, jax.random.fold_in(emit_key, t))

    return jax.lax.scan(one_round, environment.init(init_key), jnp.arange(horizon, dtype=jnp.int32))[1]


class Sampler(Environment):
    """Independent rounds: `sample(key)` draws one.

    >>> import jax
    >>> environment = Sampler(lambda key: {"cost": jax.random.normal(key, (3,))})
    >>> _, r = environment.emit(environment.init(jax.random.key(0)), None, jax.random.key(1))
    >>> r["cost"].shape
    (3,)
    """

    sample: Callable

    def __init__(self, sample):
        self.sample = as_pytree(sample, "sample")

    def init(self, key):
        return ()

    def emit(self, state, decision, key):
        return state, self.sample(key)
