"""Domains whose LMO runs on the host, and linear programs solved by HiGHS."""

import functools
import importlib
import threading
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import host, tree
from ...errors import DomainError
from ..base import AbstractDomain
from ..checked import floating
from ..vertices import Dense
from .lp_scaling import equilibrate

_LARGEST_TIGHT = 256
_SOLVER = {
    "output_flag": False,
    "solver": "simplex",
    "parallel": "off",
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_feasibility_tolerance": 1e-9,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
}


class AbstractHosted(AbstractDomain):
    """A set whose `oracle` runs on the host, in NumPy: `minimise(directions)` and `violation(points)`.

    Both take any leading axes, so that a batch is one call. The oracle is a static field: the same set never traces
    twice, and another set traces again, even with the same numbers.
    """

    oracle: Any = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    middle: Float[Array, "..."]
    widths: Float[Array, " 2"]

    @property
    def shape(self):
        return self.sizes

    def lmo(self, direction, guess=None):
        point = callback(self.oracle.minimise, (self.dimension,), direction.reshape(-1))
        return Dense(point.reshape(self.shape))

    def start(self):
        return self.middle

    def diameter(self, ord):
        return self.widths[ord - 1]

    def contains(self, x, tol=1e-6):
        return callback(self.oracle.violation, (), x.reshape(-1)) <= tol


class LinearProgram:
    r"""$\min \langle c, x\rangle$ over $\{x : r \le Mx \le s,\ l \le x \le u\}$, one model for all c.

    Every solve begins at the same feasible basis, so the answer depends on the direction only, even with ties, and no
    first phase is needed. The constructor refuses an empty set; `diameters` and `middle` refuse an unbounded one.
    """

    def __init__(self, matrix, rows, bounds, *, empty="the polytope is empty: no x meets all of its constraints"):
        self.size = matrix.shape[1]
        self._matrix, self._rows, self._bounds, self._units = equilibrate(matrix, rows, bounds)
        self._model = model_of(self._matrix, self._rows, self._bounds)
        self._lock = threading.Lock()
        if minimiser(self._model, np.zeros(self.size)) is None:
            raise DomainError(empty)
        self._basis = _copy(self._model.getBasis())

    def __fingerprint__(self):
        """The parts that `fingerprint` hashes: the program, without the solver's memory."""
        matrix = self._matrix.tocoo()
        return matrix.shape, matrix.coords, matrix.data, self._rows, self._bounds, self._units

    @property
    def original(self):
        """(matrix, (r, s), (l, u)) in the user's units."""
        from scipy import sparse

        lower, upper = self._bounds
        scaled = self._matrix @ sparse.diags_array(1 / np.broadcast_to(self._units, self.size))
        return scaled, self._rows, (self._units * lower, self._units * upper)

    @property
    def box(self):
        """(lower, upper) ends of a box around the set."""
        return self._units * self._box[0], self._units * self._box[1]

    @property
    def middle(self):
        """A point well inside: the average of the vertices found in the search for a box."""
        return self._units * np.clip(np.mean(self._corners, axis=0), *self._bounds)

    def minimise(self, directions):
        """A minimising vertex for each direction (last axis); NaN for a direction that is not finite."""
        with self._lock:
            points = [self._solve(direction) for direction in directions.reshape(-1, self.size)]
        return self._units * np.asarray(points).reshape(directions.shape)

    def violation(self, points):
        """For each point: by how much it breaks a constraint, relative to the size of the set.

        For a bound, the size is that of the largest entry of a known vertex; for a row, that of the sum of its terms.
        """
        flat = points.reshape(-1, self.size).astype(float) / self._units
        images = (self._matrix @ flat.T).T
        rows, bounds = self._sizes
        broken = [
            excess.max(axis=1, initial=0)
            for values, (low, high), sizes in ((images, self._rows, rows), (flat, self._bounds, bounds))
            for excess in ((low - values) / sizes, (values - high) / sizes)
        ]
        return np.max(broken, axis=0).reshape(points.shape[:-1])

    def diameters(self):
        r"""Upper bounds on the l1 and l2 diameters, exact where vertices are 0 or 1 and M is totally unimodular.

        For x, y in the set and z their midpoint, $|x_i - y_i| \le t_i := 2\min(z_i - l_i,\, u_i - z_i) \le u_i - l_i$.
        So $\|x-y\|_1 \le \max_z \sum_i t_i$ and $\|x-y\|_2^2 \le \max_z \sum_i (u_i - l_i)\,t_i$, two linear programs.
        """
        from scipy import sparse

        eye, none = sparse.eye_array(self.size), np.full(self.size, -np.inf)
        lower, upper = self._box[:2]
        width = upper - lower
        model = model_of(
            sparse.block_array([[self._matrix, None], [-eye, eye], [eye, eye]], format="csc"),
            (np.r_[self._rows[0], none, none], np.r_[self._rows[1], -lower, upper]),
            (np.r_[self._bounds[0], 0 * width], np.r_[self._bounds[1], width]),
        )
        unit = self._units.max()
        gains = self._units / unit, (self._units / unit) ** 2 * width
        plain, weighted = (gain @ minimiser(model, np.r_[0 * width, _near_one(-gain)])[self.size :] for gain in gains)
        return unit * np.minimum([2 * plain, np.sqrt(2 * weighted)], 2 * plain)

    def _solve(self, direction):
        """A minimising vertex for one direction, in the scaled units."""
        if not np.isfinite(direction).all():
            return np.full(self.size, np.nan)
        self._model.clearSolver()
        self._model.setBasis(self._basis)
        point = minimiser(self._model, _near_one(_near_one(direction.astype(float)) * self._units))
        if point is None:
            raise DomainError(f"HiGHS found no minimum: it answered {self._model.getModelStatus().name}")
        return np.clip(point, *self._bounds)

    @functools.cached_property
    def _box(self):
        """(lower, upper, vertices) in the scaled units: the smallest box around the set, and some vertices.

        With more than 256 variables, only bounds that are missing are tightened. The vertices on the box are included.
        """
        lower, upper = (np.array(bound, float) for bound in self._bounds)
        tight, corners = self.size <= _LARGEST_TIGHT, []
        for bound, sign, side in ((lower, 1.0, "lower"), (upper, -1.0, "upper")):
            for i in np.flatnonzero(tight | ~np.isfinite(bound)):
                corner = minimiser(self._model, np.where(np.arange(self.size) == i, sign, 0.0))
                if corner is None:
                    raise DomainError(f"the polytope is unbounded: entry {i} has no {side} bound")
                bound[i] = corner[i]
                corners.append(corner)
        corners += [minimiser(self._model, cost) for cost in np.random.default_rng(0).standard_normal((16, self.size))]
        return lower, upper, np.array(corners)

    @property
    def _corners(self):
        return self._box[2]

    @functools.cached_property
    def _sizes(self):
        """(sizes of the rows, sizes of the bounds), by which `violation` divides."""
        reach = np.abs(self._units * self._corners).max() or 1.0
        bounds = reach / self._units
        largest = (abs(self._matrix) * bounds).max(axis=1).toarray().ravel() if self._matrix.nnz else 1.0
        rows = (abs(self._matrix) @ np.abs(self._corners).T).max(axis=1)
        rows = np.where(rows > 1e-9, rows, largest)  # no vertex met has terms in the others
        return np.where(rows > 0, rows, 1), bounds


def callback(function, shape, x, *data):
    """`function(x, *data)`, computed in NumPy, from compiled code too; `shape` is that of one answer.

    A batch of x is one call, with leading axes. The derivative is 0, like that of a polytope's vertices almost
    everywhere.
    """

    def call(x, *data):
        """The host's side: x, and perhaps the data, have the batch's leading axes."""
        x, *data = (np.asarray(leaf) for leaf in (x, *data))
        lead = x.ndim - 1
        if all(leaf.shape[:lead] == (1,) * lead for leaf in data):
            answers = function(x, *(leaf.reshape(leaf.shape[lead:]) for leaf in data))
        else:  # a batch of sets, not only of points
            axes = np.broadcast_shapes(*(leaf.shape[:lead] for leaf in (x, *data)))
            lanes = [np.broadcast_to(leaf, axes + leaf.shape[lead:]) for leaf in (x, *data)]
            answers = np.stack([function(*(leaf[i] for leaf in lanes)) for i in np.ndindex(axes)])
            answers = answers.reshape(axes + shape)
        return np.asarray(answers, x.dtype)

    x = jax.lax.stop_gradient(jnp.asarray(x, floating(x)))
    if not tree.is_traced(x, *data):  # so that an error reaches the user as it is
        return jnp.asarray(call(x, *data))
    answer = jax.ShapeDtypeStruct(shape, x.dtype)
    return host.callback(call, answer, x, *data, vmap_method="expand_dims")


def _near_one(cost):
    return cost / (np.abs(cost).max() or 1)


def needs(module, extra) -> Any:
    """The optional module, or a `DomainError` that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise DomainError(f"this domain needs {package}: pip install 'cocoax[{extra}]'") from None


def model_of(matrix, rows, bounds, whole=None):
    """The constraints r <= M x <= s (`rows`), l <= x <= u (`bounds`) as a model of HiGHS; `whole` marks integers."""
    highspy = needs("highspy", "lp")
    model, program = highspy.Highs(), highspy.HighsLp()
    for option, value in _SOLVER.items():
        model.setOptionValue(option, value)
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_ = np.zeros(matrix.shape[1])
    program.col_lower_, program.col_upper_ = bounds
    program.row_lower_, program.row_upper_ = rows
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    if whole is not None:
        kinds = highspy.HighsVarType
        program.integrality_ = [kinds.kInteger if is_whole else kinds.kContinuous for is_whole in whole]
    if model.passModel(program) == highspy.HighsStatus.kError:
        raise DomainError("HiGHS refused the constraints: lower bounds must be below inf, and upper ones above -inf")
    return model


def minimiser(model, cost) -> Any:
    """A point of the model that minimises <cost, x>; None if there is none."""
    model.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
    model.run()
    if model.getModelStatus().name != "kOptimal":
        return None
    return np.array(model.getSolution().col_value)


def _copy(basis):
    copied = type(basis)()
    copied.col_status, copied.row_status, copied.valid = list(basis.col_status), list(basis.row_status), True
    return copied
