"""What the functions look like, by evaluation at a few points. A wrong guess costs time, never truth: certificates are
made with the functions themselves."""

from typing import NamedTuple

import numpy as np

from .search import Search

_SAME = 1e-9


class Structure(NamedTuple):
    linear: bool  # F
    quadratic: bool  # F
    affine: bool  # G
    jacobian: np.ndarray  # of G, at the start


def structure_of(search: Search) -> Structure:
    """Looks at the start, at two vertices, and between them."""
    objective, start, none = search.objective, search.first, np.zeros(search.objective.count)
    jacobian = objective.jacobian(start.point)
    vertices = [
        search.oracle.lmo(direction) for direction in (start.slope, -start.slope + 0.1 * np.abs(start.slope).max())
    ]
    ends = [objective.measure(vertex, none) for vertex in vertices]
    search.check()
    between = objective.measure(0.3 * vertices[0] + 0.7 * vertices[1], none)
    size = max(np.abs(start.slope).max(), np.abs(between.slope).max(), 1e-300)

    def same(slope, other):
        return bool(np.abs(slope - other).max() <= _SAME * size)

    linear = all(same(start.slope, end.slope) for end in ends)
    quadratic = same(between.slope, 0.3 * ends[0].slope + 0.7 * ends[1].slope)
    errors = [start.constraint + jacobian @ (at.point - start.point) - at.constraint for at in (*ends, between)]
    affine = all(np.all(np.abs(error) <= _SAME * search.constraint_scale) for error in errors)
    return Structure(linear, quadratic, affine, jacobian)
