"""A small dense quadratic program by a primal-dual interior-point method (Mehrotra, 1992), on the host."""

import numpy as np

_STEPS = 60
_ENOUGH = 1e-13
_PATIENCE = 4
_SHORT_OF_BOUNDARY = 0.995


def solve_quadratic(Q, c, positive, G, h, a=None):
    r"""(u, y) for $\min \frac12 u^\top Q u + c^\top u$ subject to $Gu \le h$ (with multipliers $y \ge 0$), to
    $u_i \ge 0$ for the first `positive` entries, and to $a^\top u = 1$ where `a` is given.

    Q is positive semidefinite, and a strictly feasible point exists. One factorisation of Q's size per step;
    good to about 1e-12 of the size of the objective.
    """
    scale = max(np.abs(Q).max(initial=0.0), np.abs(c).max(initial=0.0), 1e-300)
    Q, c, n = Q / scale, c / scale, len(c)
    equal = int(a is not None)
    a = np.zeros(n) if a is None else a
    system = np.zeros((n + equal, n + equal))
    system[:n, n:] = a[:, None][:, :equal]
    system[n:, :n] = system[:n, n:].T
    diagonal = np.diag_indices(n)

    def apply(u):  # all inequalities read apply(u) <= limit
        return np.concatenate([-u[:positive], G @ u])

    def adjoint(y):
        answer = G.T @ y[positive:]
        answer[:positive] -= y[:positive]
        return answer

    limit = np.concatenate([np.zeros(positive), h])
    u, nu = a / max(a @ a, 1.0), 0.0
    slack, y = np.maximum(limit - apply(u), 1.0), np.ones(len(limit))
    best, best_error, waited = (u, y), np.inf, 0

    for _ in range(_STEPS):
        dual = Q @ u + c + nu * a + adjoint(y)
        primal = apply(u) + slack - limit
        unbalanced = np.full(equal, a @ u - 1.0)
        errors = [np.abs(dual).max(), np.abs(primal).max() / (1 + np.abs(h).max(initial=0.0)), slack @ y]
        error = max(*errors, np.abs(unbalanced).max(initial=0.0))
        waited = 0 if error < 0.5 * best_error else waited + 1
        if error < best_error:
            best, best_error = (u, y), error
        if not error < 1e6 * best_error or error < _ENOUGH or waited > _PATIENCE:
            break

        ratio = y / slack
        block = system[:n, :n]
        block[:] = Q + G.T @ (ratio[positive:, None] * G)
        block[diagonal] += np.concatenate([ratio[:positive], np.zeros(n - positive)])
        block[diagonal] += 1e-15 * (1.0 + np.abs(block[diagonal]).max())
        try:
            inverse = np.linalg.inv(system)
        except np.linalg.LinAlgError:
            break
        state = (system, inverse, ratio, slack, dual, primal, unbalanced)
        _, _, d_slack, dy = _direction(apply, adjoint, state, y * slack)
        step = min(_longest(slack, d_slack), _longest(y, dy))
        predicted = (slack + step * d_slack) @ (y + step * dy) / (slack @ y)
        centring = predicted**3 * (slack @ y) / len(y)
        du, d_nu, d_slack, dy = _direction(apply, adjoint, state, y * slack + d_slack * dy - centring)
        step = min(1.0, _SHORT_OF_BOUNDARY * min(_longest(slack, d_slack), _longest(y, dy)))
        u, nu, slack, y = u + step * du, nu + step * d_nu, slack + step * d_slack, y + step * dy

    u, y = best
    return u, scale * y[positive:]


def _direction(apply, adjoint, state, products):
    """Newton's direction towards zero residuals and `products` = y * slack less its target."""
    system, inverse, ratio, slack, dual, primal, unbalanced = state
    right = np.concatenate([-dual - adjoint(ratio * primal - products / slack), -unbalanced])
    answer = inverse @ right
    answer += inverse @ (right - system @ answer)
    du, d_nu = answer[: len(dual)], answer[len(dual) :].sum()
    moved = primal + apply(du)
    return du, d_nu, -moved, ratio * moved - products / slack


def _longest(x, dx):
    """The longest step that keeps x + step dx >= 0, just above 1 where nothing blocks."""
    shrinking = dx < 0
    return min(1.0 / _SHORT_OF_BOUNDARY, float(np.min(-x[shrinking] / dx[shrinking], initial=np.inf)))
