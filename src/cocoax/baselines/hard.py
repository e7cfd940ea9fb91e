"""Hard violation, where rounds that underspend make up for nothing. These need `domain.project`."""

import abc
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import tree
from ..core.facts import Facts
from ..domains.base import Point
from ..dual.base import Weights
from ..dual.penalty import Penalty
from ..learners.base import AbstractLearner, first_decision, outcome, parameter, point_played, positive_parameter
from ..learners.primal_dual import AbstractPrimalDual
from ..learners.projected import lipschitz, with_steps
from ..primal.base import cost
from ..primal.ogd import OGD
from ..primal.proximal import penalised_step


class YuanLamperski(AbstractPrimalDual):
    r"""Projected gradient with a quadratic penalty (Yuan, Lamperski, NeurIPS 2018).

    $x_{t+1} = \Pi_X(x_t - \eta(\nabla f_t + \lambda_t\nabla g_t)),\qquad
    \lambda_t = \frac{[g_t(x_t)]_+}{2mD^2\eta},\qquad \eta=\frac{R}{DT^\beta}$

    Proven, in every round sequence with $g_t(x)\le0$ for all t:

    $\mathrm{Reg}(x) + \sum_{t,i}\frac{[g_t^i(x_t)]_+^2}{4mD^2\eta} \le \frac{R^2}{2\eta}+\eta D^2T$

    hence regret $\le RD(\frac12T^\beta+T^{1-\beta})$, squared violation $O(T^{1-\beta})$ and hard violation
    $O(T^{1-\beta/2})$. The rates are in print; this rule for the multiplier differs from the printed one, which weighs
    by $[g(x_{t+1})]_+$.

    >>> import cocoax as cx
    >>> learner = cx.baselines.YuanLamperski()  # plays a Problem(regularity=cx.Regularity(lipschitz=...))
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '3/4')
    """

    facts = Facts(
        cost="one projection",
        guarantee="proven",
        cites=("yuan2018",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
        hard=True,
    )

    primal: OGD
    beta: Float[Array, ""]

    def __init__(self, *, beta: Any = 0.5):
        self.primal = OGD()
        self.beta = parameter(beta, "beta", 0, 1)

    def _step(self, problem, horizon):
        return problem.domain.diameter(2) / lipschitz(problem, "YuanLamperski") * horizon**-self.beta

    def rule(self, problem, horizon):
        square = max(problem.constraints, 1) * lipschitz(problem, "YuanLamperski") ** 2
        return Penalty(2 * square * self._step(problem, horizon.astype(float)))

    def bounds(self, problem):
        return with_steps(problem, lambda T: self._step(problem, T))


class _State(eqx.Module):
    point: Point  # x_t
    queue: Float[Array, " m"]  # Q_t
    round: Int[Array, ""]  # t


class AbstractProximal(AbstractLearner):
    r"""$x_{t+1} = \arg\min_{x\in X} \langle\nabla f_t(x_t), x\rangle + \langle w_t, [g_t(x)]_+\rangle +
    \alpha_t\|x-x_t\|^2$, with weights from queues of hard violation.

    If $g_t(x)\le0$ for all t and $\alpha_t$ grows, for every rule for the weights
    $\mathrm{Reg}(x)+\sum_t\langle w_t,[g_t(x_{t+1})]_+\rangle \le R^2\alpha_T+\frac{D^2}4\sum_t\frac1{\alpha_t}$.

    The step is `primal.proximal.penalised_step`; the multiplier that is reported is the weight that $g_t$ really had in
    it, $\nu\in[0,w_t]$. Needs no horizon and no constants.
    """

    def first_queue(self) -> float:
        """The queue before the first round."""
        return 0.0

    @abc.abstractmethod
    def curvature(self, t: Array) -> Any:
        """alpha_t."""

    @abc.abstractmethod
    def weigh(self, queue: Array, t: Array) -> Any:
        """w_t."""

    @abc.abstractmethod
    def charge(self, queue: Array, t: Array, violation: Array) -> Any:
        """The next queue, after [g_t(x_{t+1})]_+."""

    def init(self, problem, *, key, horizon=None, start=None):
        start = first_decision(problem, start)
        queue = jnp.full(problem.constraints, self.first_queue(), tree.dtype(start))
        return _State(start, queue, jnp.ones((), jnp.int32))

    def decision(self, state):
        return state.point

    def observe(self, problem, state, round, *, played=None):
        played = point_played(played, state.point)
        loss, values, pull = problem.linearize(played, round)
        gradient = pull(jnp.ones_like(loss), jnp.zeros_like(values))
        t = state.round.astype(state.queue.dtype)
        weights = self.weigh(state.queue, t)
        staying = problem.after(None)  # its values and gradients are of one function
        point, multipliers, count = penalised_step(staying, round, gradient, state.point, weights, self.curvature(t))
        violation = jnp.maximum(problem.values(point, round, played)[1], 0)
        used = cost(gradient_calls=1 + count, finite=tree.all_finite((gradient, point)))
        state = _State(point, self.charge(state.queue, t, violation), state.round + 1)
        return state, outcome(loss, values, Weights(jnp.ones_like(loss), multipliers), used)


class Yi(AbstractProximal):
    r"""Queues of hard violation and a proximal step (Yi, Li, Yang, Xie, Chai, Johansson, ICML 2021), for fixed g.

    $x_{t+1} = \arg\min_{x\in X} \langle\nabla f_t, x\rangle + \langle q_t, [g(x)]_+\rangle + t^c\|x-x_t\|^2,\qquad
    q_{t+1} = q_t + (t+1)^c[g(x_{t+1})]_+,\quad q_1=0$

    For $c\in(0,1)$ regret $O(T^{\max(c,1-c)})$ and hard violation $O(T^{(1-c)/2})$: rates confirmed in print. The step
    sizes are chosen here, in the form that is in print from memory ($\alpha_t=t^{-c}$, $\beta_t=1$,
    $\gamma_t=t^c$), and these rates are proven for them:
    $\mathrm{Reg} \le R^2T^c+\frac{D^2}4\sum_tt^{-c} =: B$ and
    $\|q_{T+1}\| \le \sqrt mG\gamma + \sqrt{2\gamma(RDT+B)}$ with $\gamma=(T+1)^c$. Constraints that vary from round to
    round keep the regret, and add $D\sum_t\|x_{t+1}-x_t\| = O(T^{1-c/2})$ to the hard violation.

    >>> import cocoax as cx
    >>> learner = cx.baselines.Yi(c=0.5)
    >>> str(learner.facts.regret), str(learner.facts.violation)  # of T
    ('1/2', '1/4')
    """

    facts = Facts(
        cost="50 projections and more",
        guarantee="in general T^max(c,1-c) and T^((1-c)/2), one fixed constraint, proven",
        cites=("yi2021",),
        regret=Fraction(1, 2),
        violation=Fraction(1, 4),
        hard=True,
    )

    c: Float[Array, ""]

    def __init__(self, *, c: Any = 0.5):
        self.c = parameter(c, "c", 0, 1)

    def curvature(self, t):
        return t ** self.c.astype(t.dtype)

    def weigh(self, queue, t):
        return queue

    def charge(self, queue, t, violation):
        return queue + self.curvature(t + 1) * violation


class RECOO(AbstractProximal):
    r"""Rectified online optimisation (Guo, Liu, Wei, Ying, NeurIPS 2022): a queue that is kept away from zero.

    $x_{t+1} = \arg\min_{x\in X} \langle\nabla f_t, x\rangle + \gamma_tQ_t[g_t(x)]_+ + \sqrt t\,\|x-x_t\|^2,\qquad
    Q_{t+1} = \max\{Q_t + \gamma_t[g_t(x_{t+1})]_+,\ \sqrt t\}$

    with $\gamma_t=t^{1/2+\epsilon}$ and $Q_1=1$; several constraints have a queue each. The rates in print are
    confirmed, the parameters are from memory, and with them these are proven, if $g_t(x)\le0$ for all t: regret
    $\le (R^2+\frac{D^2}2)\sqrt T$; hard violation $O(1/\epsilon)$ if g is the same in all rounds, and $O(T^{3/4})$ if
    it is not.

    >>> import cocoax as cx
    >>> learner = cx.baselines.RECOO(epsilon=0.1)
    >>> learner.curvature(9.0)  # in round 9
    3.0
    """

    facts = Facts(
        cost="50 projections and more",
        guarantee="O(1) if the constraint is fixed, proven",
        cites=("guo2022",),
        regret=Fraction(1, 2),
        violation=Fraction(3, 4),
        hard=True,
    )

    epsilon: Float[Array, ""]

    def __init__(self, *, epsilon: Any = 0.1):
        self.epsilon = positive_parameter(epsilon, "epsilon")

    def first_queue(self):
        return 1.0

    def curvature(self, t):
        return t**0.5

    def _gain(self, t):
        return t ** (0.5 + self.epsilon.astype(t.dtype))

    def weigh(self, queue, t):
        return self._gain(t) * queue

    def charge(self, queue, t, violation):
        return jnp.maximum(queue + self._gain(t) * violation, t**0.5)
