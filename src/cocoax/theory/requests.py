r"""Bounds of learners that decide after a request, against the best policy."""

from typing import Any, NamedTuple


class PolicyBounds(NamedTuple):
    """Bounds against the best policy, and the step for which they hold."""

    regret: Any  # in expectation, requests i.i.d.
    violation: Any  # of each constraint, for every sequence
    multiplier: Any  # the largest Euclidean norm of the prices, for every sequence
    step: Any


def mirror_descent(
    horizon: Any, *, constraint_bound: Any, loss_range: Any, slack: Any, step: Any = None
) -> PolicyBounds:
    r"""Euclidean dual mirror descent, $\lambda_{t+1} = [\lambda_t+\eta g_t(x_t)]_+$ from $\lambda_1=0$.

    With $|g_t(x)|_2\le G$, losses of one round at most F apart, and an answer s with $g_t(s)\le-\rho$ in every round:

    * $E\sum_tf_t(x_t) - E\,\mathrm{OPT} \le \eta G^2T/2$ for i.i.d. requests. Proof: $f_t(x_t) = D_t(\lambda_t) -
      \langle\lambda_t, g_t(x_t)\rangle$; $\lambda_t$ does not depend on the request, so $E D_t(\lambda_t) \le \max
      E D_t \le E\,\mathrm{OPT}/T$; and $|\lambda_{t+1}|^2 \le |\lambda_t|^2 + 2\eta\langle\lambda_t, g_t(x_t)\rangle +
      \eta^2G^2$ sums to $-\sum_t\langle\lambda_t, g_t(x_t)\rangle \le \eta G^2T/2$.
    * $\sum_tg_{t,i}(x_t) \le \lambda_{T+1,i}/\eta$ for every sequence: $\lambda_{t+1,i}\ge\lambda_{t,i}+\eta g_{t,i}$.
    * $|\lambda_t| \le F/\rho + \eta G^2/(2\rho) + \eta G$: $x_t$ is at least as good as s, so $\langle\lambda_t,
      g_t(x_t)\rangle \le F - \rho|\lambda_t|_1$, and $|\lambda_t|$ does not grow once it is $(F+\eta G^2/2)/\rho$.

    Without `step`, $\eta = \sqrt{2F/(\rho T)}/G$; the first bound is then $G\sqrt{FT/(2\rho)}$, the second larger by a
    constant.

    >>> bounds = mirror_descent(10_000, constraint_bound=1.0, loss_range=1.0, slack=0.5)
    >>> round(bounds.regret, 6), round(bounds.violation, 6), round(bounds.step, 6)
    (100.0, 102.0, 0.02)
    """
    if step is None:
        step = (2 * loss_range / (slack * horizon)) ** 0.5 / constraint_bound
    regret = step * constraint_bound**2 * horizon / 2
    multiplier = loss_range / slack + step * constraint_bound**2 / (2 * slack) + step * constraint_bound
    return PolicyBounds(regret, multiplier / step, multiplier, step)
