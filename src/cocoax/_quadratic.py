"""A small dense quadratic program by a primal-dual interior-point method (Mehrotra, 1992), on the host."""

import numpy as np

_STEPS = 60
_SHORT_OF_BOUNDARY = 0.995


def solve_quadratic(Q, c, G, h, a=None):
    r"""The u and the multipliers $y \ge 0$ of $Gu \le h$ for $\min \frac12 u^\top Q u + c^\top u$,
    $Gu \le h$, and $a^\top u = 1$ where `a` is given.

    Q is positive semidefinite, and a strictly feasible point exists. All sizes are small: one factorisation of
    Q's size per step. Answers are good to about 1e-12 of the size of the objective.
    """
    scale = max(np.abs(Q).max(initial=0.0), np.abs(c).max(initial=0.0), 1e-300)
    Q, c = Q / scale, c / scale
    n, equal = len(c), a is not None
    a = np.zeros(n) if a is None else a
    u = a / max(a @ a, 1.0)
    slack = np.maximum(h - G @ u, 1.0)
    y = np.ones(len(h))
    nu = 0.0
    system = np.zeros((n + equal, n + equal))
    if equal:
        system[:n, n] = system[n, :n] = a
    best, best_error = (u, y), np.inf
    size = 1.0 + np.abs(h).max(initial=0.0)

    for _ in range(_STEPS):
        dual_residual = Q @ u + c + nu * a + G.T @ y
        primal_residual = G @ u + slack - h
        equal_residual = (a @ u - 1.0) if equal else 0.0
        complementarity = slack @ y / len(h)
        error = max(
            np.abs(dual_residual).max(),
            np.abs(primal_residual).max() / size,
            abs(equal_residual),
            slack @ y,
        )
        if not np.isfinite(error):
            break
        if error < best_error:
            best, best_error = (u, y), error
        if error < 1e-14 or error > 1e6 * best_error:
            break

        ratio = y / slack
        system[:n, :n] = Q + G.T @ (ratio[:, None] * G)
        system[:n, :n][np.diag_indices(n)] += 1e-15 * (1.0 + np.trace(system[:n, :n]) / n)
        try:
            inverse = np.linalg.inv(system)
        except np.linalg.LinAlgError:
            break

        def direction(
            target,
            system=system,
            inverse=inverse,
            ratio=ratio,
            slack=slack,
            y=y,
            dual_residual=dual_residual,
            primal_residual=primal_residual,
            equal_residual=equal_residual,
        ):
            right = -dual_residual - G.T @ (ratio * primal_residual - target / slack)
            if equal:
                right = np.append(right, -equal_residual)
            answer = inverse @ right
            answer += inverse @ (right - system @ answer)
            du = answer[:n]
            moved = primal_residual + G @ du
            return du, (answer[n] if equal else 0.0), -moved, ratio * moved - target / slack

        _, _, d_slack, dy = direction(y * slack)
        step = min(_longest(slack, d_slack), _longest(y, dy))
        predicted = (slack + step * d_slack) @ (y + step * dy) / len(h)
        centring = (predicted / complementarity) ** 3
        du, d_nu, d_slack, dy = direction(y * slack + d_slack * dy - centring * complementarity)
        step = min(1.0, _SHORT_OF_BOUNDARY * min(_longest(slack, d_slack), _longest(y, dy)))
        u, nu, slack, y = u + step * du, nu + step * d_nu, slack + step * d_slack, y + step * dy

    u, y = best
    return u, scale * y


def _longest(x, dx):
    """The longest step up to 1 that keeps x + step dx >= 0 (just beyond 1 where nothing blocks)."""
    shrinking = dx < 0
    return min(1.0 / _SHORT_OF_BOUNDARY, float(np.min(-x[shrinking] / dx[shrinking], initial=np.inf)))
