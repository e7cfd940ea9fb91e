"""Constants of a problem's functions, which methods with proofs need."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..core import check, tree
from ..errors import ProblemError


class Regularity(eqx.Module):
    r"""Constants of every $f_t$ and $g_t$ in one norm; the paper's $D$, $L$ and $G$.

    $\|\nabla f_t\|, \|\nabla g_t\| \le D$ (`lipschitz`) in the l2 norm (`norm=2`) or linf norm (`norm=jnp.inf`),
    $\|\nabla f_t(x) - \nabla f_t(y)\| \le L\|x-y\|$ and the same for $g_t$ (`smoothness`, in the l2 norm or from l1 to
    linf), and $|g_t| \le G$ on both sides (`constraint_bound`, erratum E18).

    For linear functions, D is the largest norm of their coefficients and L is 0. For smooth ones, L is the largest
    curvature, D the largest norm of a gradient over the domain, and G the largest absolute value. Upper bounds are
    enough, but larger ones make steps more careful and slower.

    >>> constants = Regularity(lipschitz=6.0, smoothness=0.0, constraint_bound=0.75)
    >>> float(constants.lipschitz), constants.norm
    (6.0, 2)
    """

    lipschitz: Float[Array, ""] | None
    smoothness: Float[Array, ""] | None
    constraint_bound: Float[Array, ""] | None
    norm: float = eqx.field(static=True)

    def __init__(self, lipschitz: Any = None, smoothness: Any = None, constraint_bound: Any = None, norm: Any = 2):
        norm = float("inf") if norm == "inf" else norm
        if norm not in (2, float("inf")):
            raise ProblemError(f"regularity is stated in the norm 2 or inf, got norm={norm!r}")
        self.lipschitz = _constant(lipschitz, "lipschitz")
        self.smoothness = _constant(smoothness, "smoothness")
        self.constraint_bound = _constant(constraint_bound, "constraint_bound")
        self.norm = norm


def _constant(value, name):
    """A constant of `Regularity`, checked to be one finite number >= 0; None if not stated."""
    if value is None:
        return None
    if not tree.is_traced(value):
        seen = check.real(value, name, ProblemError)
        if not (seen.ndim == 0 and 0 <= seen < float("inf")):
            raise ProblemError(f"{name} must be one finite number >= 0, got {value}")
        if name == "lipschitz" and not seen > 0:
            raise ProblemError(f"lipschitz must be positive, got {value}; for constant functions give a small number")
    return tree.as_floats(value)


def regularities(regularity) -> tuple[Regularity, ...]:
    """The user's `regularity` as a tuple, with at most one per norm."""
    if regularity is None:
        return ()
    several = tuple(regularity) if isinstance(regularity, tuple | list) else (regularity,)
    for one in several:
        check.instance(one, Regularity, ProblemError, "regularity must be a Regularity, or several, one per norm")
    if len({one.norm for one in several}) < len(several):
        raise ProblemError("regularity states one norm twice; give one Regularity per norm")
    return several


def stated(regularities: Sequence[Regularity], norm: float, needs: Sequence[str], who: str) -> Regularity:
    """The regularity that is stated in `norm`; raises `ProblemError` unless it states all constants in `needs`.

    `who` needs them: the error names it.
    """
    name, spelt = ("l2", "2") if norm == 2 else ("linf", "jnp.inf")
    for regularity in regularities:
        if regularity.norm == norm:
            for need in needs:
                if getattr(regularity, need) is None:
                    raise ProblemError(
                        f"{who} needs {need} in the {name} norm; give Problem(regularity="
                        f"Regularity({need}=..., norm={spelt}))"
                    )
            return regularity
    if not needs:
        return Regularity(norm=norm)
    if not regularities:
        raise ProblemError(
            f"{who} needs {' and '.join(needs)} in the {name} norm; give Problem(regularity="
            f"Regularity({'=..., '.join(needs)}=..., norm={spelt}))"
        )
    other = "" if norm == 2 else ", or choose perturbation='ball', which takes l2 constants"
    raise ProblemError(
        f"{who} needs constants in the {name} norm, but this problem states them only in the norm "
        f"{', '.join(str(r.norm) for r in regularities)}; add a Regularity(norm={spelt}, ...){other}"
    )
