"""Complete regret bounds of the primals; `constants` has the leading terms at the prescribed parameters.

R is the diameter, D the Lipschitz constant, L the smoothness, T the horizon. `squares` is the sum of the
squared (dual) norms of the gradients. Sources and tags: the functions of the same names in `constants`.
"""

import math
from typing import Any

import numpy as np

from .constants import ftpl as ftpl_constants
from .constants import kappa
from .experts import challenger as challenger
from .experts import exponentiated_gradient as exponentiated_gradient
from .experts import favourite as favourite
from .experts import mixture as mixture
from .experts import optimistic as optimistic


def ocg(horizon: Any, *, diameter: Any, lipschitz: Any, rounds: Any = None) -> Any:
    r"""OCG tuned for T, after t <= T rounds: $RD(2T^{3/4} + \tfrac83 t^{3/4} + \tfrac14 t\,T^{-3/4})$.

    >>> round(ocg(10_000, diameter=1.0, lipschitz=1.0) / 10_000**0.75, 3)
    4.669
    """
    played = horizon if rounds is None else rounds
    turns = 2 * horizon**0.75 + 8 / 3 * played**0.75 + played / 4 * horizon**-0.75
    return diameter * lipschitz * turns


def ofw(rounds: Any, *, diameter: Any, squares: Any, rate: Any, mixing: Any) -> Any:
    r"""OFW with learning rate $\eta$, mixing $\sigma$, $V = \sum\|\nabla_t\|^2$:
    $R^2/2\eta + \eta V/\sigma + R\sqrt{VT\sigma/2}$."""
    curvature = diameter * (squares * rounds * mixing / 2) ** 0.5
    return diameter**2 / (2 * rate) + rate * squares / mixing + curvature


def adaofw(horizon: Any, *, diameter: Any, squares: Any) -> Any:
    r"""AdaOFW tuned for T, after any $t \le T$ rounds: $3 R T^{1/4} \sqrt{V_t}$."""
    return 3 * diameter * horizon**0.25 * squares**0.5


def loo_bogd(horizon: Any, *, diameter: Any, lipschitz: Any, block: Any) -> Any:
    r"""LOO-BOGD with blocks of B rounds: $RD(\sqrt{BT} + \sqrt3\,T^{3/4})$."""
    return diameter * lipschitz * ((block * horizon) ** 0.5 + 3**0.5 * horizon**0.75)


def tracked(*, diameter: Any, powers: Any) -> Any:
    r"""Tracked with steps $\eta_t = R\,S_t^{-3/4}$, $S_t = \sum_{s\le t}\|\nabla_s\|^{4/3}$ (`powers`), after any t
    rounds: $4.86\,R\,S_t^{3/4}$.

    Let $d_t=|x_t-y_t|$, $\delta_t=\eta_t|\nabla_t|$, $N=RS_T^{3/4}$, $W=\sum|\nabla_t|d_t$. After the pull the squared
    distance q is at most the gap, hence at most $R^2$, and the line search leaves $d_{t+1}^2\le q-q^2/R^2$ with
    $q\le(d_t+\delta_t)^2$; so $d_t\le R/2$. Weighing with $1/\eta_t$ and summing,
    $\sum d_{t+1}^4/\eta_t \le R^2(2W + \sum\eta_t|\nabla_t|^2 + R^2/4\eta_T) \le R^2(2W+\frac43N+\frac14N)$. In
    rounds whose $|\nabla_t|^{4/3}$ exceeds $bS_{t-1}$, W grows by at most $\frac12 R|\nabla_t|$, in all
    $BN$ with $B=\frac12(\frac b{1+b})^{3/4}/(1-(1+b)^{-3/4})$; in the others Hoelder's inequality gives
    $(W-BN)^4\le(1+b)^{3/4}\frac{64}{27}N^3(2W+\frac43N+\frac14N)$. The target's own regret is at most
    $(\frac32R)^2/2\eta_T+\frac12\sum\eta_t|\nabla_t|^2\le(\frac98+\frac23)N$. With $b=0.6$ the sum is below $4.86N$.
    """
    return 4.86 * diameter * powers**0.75


def tracked_constant(*, diameter: Any, step: Any, powers: Any, squares: Any) -> Any:
    r"""Tracked with one step $\eta$: $\frac{R^2}{2\eta} + \frac{\eta V}2 + (2R^2\eta)^{1/3}S + (R^2\eta^2S^3V)^{1/4}$.

    $S=\sum\|\nabla_t\|^{4/3}$ (`powers`) and $V=\sum\|\nabla_t\|^2$ (`squares`). As in `tracked`,
    $W^4\le S^3R^2\eta(2W+\eta V)$, and $W^4\le aW+b$ implies $W\le a^{1/3}+b^{1/4}$. At $\eta=RD^{-1}T^{-3/4}$ it is
    $1.76RDT^{3/4}$ and lower powers of T.
    """
    own = diameter**2 / (2 * step) + step * squares / 2
    return own + (2 * diameter**2 * step) ** (1 / 3) * powers + (diameter**2 * step**2 * powers**3 * squares) ** 0.25


def slow_start(*, diameter: Any, rounds: Any, squares: Any, powers: Any, smallest: Any, first: float = 1e-3) -> Any:
    r"""Tracked with SlowStart's steps, all memory, on sets that are not boxes, after any t rounds:
    $(K+1)(12/\varepsilon+1)\,R\sqrt V$ + `slow_start_lag`, with $\varepsilon$ = `first` and K = `slow_start_stops`.

    $V=\sum\|\nabla_s\|^2$ (`squares`). Let $W_t$ be the state's `total` and $r_t$ its `far`, so that
    $\eta_t=r_t^2/\sqrt{2W_t}$ and $\varepsilon R\le r_t\le R$. A stop multiplies W by $(r'/r)^2$ where r becomes r', so
    $W_t/r_t^2$ never grows by more than $|\nabla_t|^2$: it is at most V, and $1/\eta_t\le\sqrt{2V}/\varepsilon R$.
    Between stops r and W only grow, and $1/\eta_t$ rises by at most $\sqrt2(\sqrt{W_t}-\sqrt{W_{t-1}})/r_t^2$: in
    rounds with $2^jr\le r_t<2^{j+1}r$ by at most $2\sqrt{2V}/2^jr$, in all $4\sqrt{2V}/\varepsilon R$; in a stop by
    $\sqrt{2V}/\varepsilon R$. With $|y_t-z|\le\frac32R$ (see `tracked`) these rises cost the target
    $\frac98R^2$ each. What a stop takes back of y is at most R long: it costs at most
    $(2(\frac32+\frac1{\sqrt2})+1)R^2/2\eta_t$. And $\frac12\sum\eta_t|\nabla_t|^2\le R\sqrt{V/2}$ between stops.
    """
    stops = slow_start_stops(rounds)
    own = (stops + 1) * (12 / first + 1) * diameter * squares**0.5
    return own + slow_start_lag(
        diameter=diameter, rounds=rounds, squares=squares, powers=powers, smallest=smallest, first=first
    )


def slow_start_lag(*, diameter: Any, rounds: Any, squares: Any, powers: Any, smallest: Any, first: float = 1e-3) -> Any:
    r"""What following costs in `slow_start`, $\sum|\nabla_t|d_t$: $R\,S^{3/4}\max((2K)^{1/4},\sqrt2\,t^{1/12}l^{1/6})$.

    $S=\sum\|\nabla_s\|^{4/3}$ (`powers`), $l=1+\ln(V/|\nabla|^2)+2(K+1)\ln\frac1\varepsilon$ with the first gradient
    that is not 0 (`smallest`, or any bound from below). With $\delta_t=\eta_t|\nabla_t|$:
    $\sum\delta_t^2\le\frac{R^2}2\sum r_t^2|\nabla_t|^2/W_t\le\frac{R^2}2l$, since a stop makes W at most
    $\varepsilon^{-2}$ times smaller. In the notation of `tracked`, $A=\sum q_t^2\le R^2(\sum2\sqrt{q_t}\delta_t+KR^2)$,
    by Hoelder's inequality $\le R^2(2A^{1/4}t^{1/4}R\sqrt{l/2}+KR^2)$, and $\sum|\nabla_t|d_t\le A^{1/4}S^{3/4}$.
    """
    stops = slow_start_stops(rounds)
    log = 1 + np.log(squares / smallest**2) + 2 * (stops + 1) * math.log(1 / first)
    return diameter * powers**0.75 * np.maximum((2 * stops) ** 0.25, 2**0.5 * rounds ** (1 / 12) * log ** (1 / 6))


def slow_start_stops(rounds: Any) -> Any:
    r"""How often SlowStart can stop in t rounds: $1+\log_4(1+\frac34t)$.

    After k stops it resumes once $-A>2^k\sqrt B$, and $|A|\le\sqrt{nB}$ after n rounds: not before $n>4^k$.

    >>> round(float(slow_start_stops(10_000)), 1)
    7.4
    """
    return 1 + np.log(1 + 0.75 * rounds) / math.log(4)


def adagrad_by_coordinate(*, widths: Any, squares: Any) -> Any:
    r"""$\frac32\sum_iw_i\sqrt{\sum_s\nabla_{si}^2}$: AdaGrad by coordinate on a box with sides w; any convex losses.

    Each coordinate is mirror descent with $D_t=\sqrt{S_t}/w$: at most $\frac{w^2}2D_T+\sum_t\frac{\nabla_t^2}{2D_t}$,
    and the sum is at most $w\sqrt{S_T}$. `squares` are $S_T$ by coordinate.

    >>> float(adagrad_by_coordinate(widths=2.0, squares=9.0))
    9.0
    """
    return 1.5 * np.sum(widths * np.sqrt(squares))


def online_newton(*, first_rate: Any, rate: Any, log_ratio: Any, errors: Any = 0.0, damping: Any = 1.0) -> Any:
    r"""$\frac\rho{2\gamma_1}+\frac1{2\gamma_t}\ln\frac{\det A_t}{\varepsilon^d}+\sum_s\gamma_s\delta_s$.

    For exp-concave losses and $\gamma$ that never grows, $f(x_t)-f(z)\le\langle\nabla_t,x_t-z\rangle-
    \frac{\gamma_t}2\langle\nabla_t,x_t-z\rangle^2$ (Hazan et al., 2007, Lemma 3). A step is worth at most
    $\frac{\gamma_t}2(\|x_t-z\|_{A_t}^2-\|x_{t+1}-z\|_{A_t}^2)+\frac1{2\gamma_t}\nabla_t^\top A_t^{-1}\nabla_t+
    \gamma_t\delta_t$, where $\delta$ is the projection's gap; the sum of $\nabla^\top A^{-1}\nabla$ is at most
    the logarithm of the determinants' ratio.

    >>> online_newton(first_rate=0.5, rate=0.25, log_ratio=3.0)
    7.0
    """
    return damping / (2 * first_rate) + log_ratio / (2 * rate) + errors


def ftpl(size: Any, squares: Any, *, diameter: Any, dimension: int, perturbation: str = "ball") -> Any:
    r"""Fresh perturbations, linear losses $w_t$ (they may adapt to past plays).

    Cube $[0,s]^d$: $Rs + dR\sum\|w_t\|_\infty^2/s$; centred cube of side s: $Rs/2$ for $Rs$;
    ball of radius s: $Rs + \kappa_d R\sum\|w_t\|_2^2/s$.

    >>> ftpl(20.0, 100.0, diameter=1.0, dimension=4, perturbation="cube")
    40.0
    """
    if perturbation == "ball":
        return diameter * (size + kappa(dimension) * squares / size)
    if perturbation not in ("cube", "centred"):
        raise ValueError(f"perturbation must be 'cube', 'centred' or 'ball', got {perturbation!r}")
    reach = size if perturbation == "cube" else size / 2
    return diameter * (reach + dimension * squares / size)


def ftpl_adaptive(squares: Any, *, diameter: Any, dimension: int) -> Any:
    r"""Ball of radius $\sqrt{2\kappa_d\sum_{s\le t}H_s^2}$ with $H_t \ge \|w_t\|$ known before round t:
    $2\sqrt2\,R\sqrt{\kappa_d\sum_{s\le t}H_s^2}$ after any t rounds."""
    return 2 * diameter * (2 * kappa(dimension) * squares) ** 0.5


def sftpl(horizon: Any, *, diameter: Any, dimension: int, lipschitz: Any, samples: Any) -> Any:
    r"""SFTPL with m samples per round: $2RD\sqrt{\kappa_d T} + RDT/\sqrt m$."""
    linear = ftpl_constants(diameter, dimension).regret(horizon, lipschitz)
    return linear + diameter * lipschitz * horizon / samples**0.5


def sftpl_smooth(horizon: Any, *, diameter: Any, dimension: int, lipschitz: Any, smoothness: Any, samples: Any) -> Any:
    r"""SFTPL with m samples per round, smooth losses: $2RD\sqrt{\kappa_d T} + LR^2T/m$."""
    linear = ftpl_constants(diameter, dimension).regret(horizon, lipschitz)
    return linear + smoothness * diameter**2 * horizon / samples


def ospf(horizon: Any, *, diameter: Any, dimension: int, lipschitz: Any, smoothness: Any, block: Any) -> Any:
    r"""OSPF with blocks of k rounds and k samples: $2RD\sqrt{\kappa_d kT} + LR^2T/k$."""
    linear = ftpl_constants(diameter, dimension).regret(block * horizon, lipschitz)
    return linear + smoothness * diameter**2 * horizon / block


def orgfw(horizon: int, *, diameter: Any, lipschitz: Any, smoothness: Any) -> Any:
    r"""ORGFW, i.i.d. losses: $4\sqrt2\,R(D+LR)\sqrt T + RD(1+\ln T) + \tfrac12LR^2(\tfrac12\ln^2T + 1/e)$."""
    noise = 4 * 2**0.5 * diameter * (lipschitz + smoothness * diameter) * horizon**0.5
    log = math.log(horizon)
    start = diameter * lipschitz * (1 + log)
    return noise + start + smoothness * diameter**2 / 2 * (log**2 / 2 + 1 / math.e)


def mfw(
    horizon: Any,
    *,
    diameter: Any,
    dimension: int,
    lipschitz: Any,
    smoothness: Any,
    inner: Any,
    perturbation: str = "ball",
) -> Any:
    r"""MFW with K inner steps, $\gamma_k = 2/(k+1)$: Regret of FTPL $+\ 2LR^2T/(K+1)$."""
    linear = ftpl_constants(diameter, dimension, perturbation).regret(horizon, lipschitz)
    return linear + 2 * smoothness * diameter**2 * horizon / (inner + 1)


def morgfw_exact(
    horizon: Any,
    *,
    diameter: Any,
    dimension: int,
    lipschitz: Any,
    smoothness: Any,
    inner: int,
    perturbation: str = "ball",
) -> Any:
    r"""MORGFW with K inner steps and exact gradients: Regret of FTPL
    $+\ \frac{T}{K+1}(RD + \tfrac12LR^2\ln(K+1))$."""
    linear = ftpl_constants(diameter, dimension, perturbation).regret(horizon, lipschitz)
    curvature = smoothness * diameter**2 / 2 * math.log(inner + 1)
    return linear + horizon / (inner + 1) * (diameter * lipschitz + curvature)


def morgfw(horizon: Any, *, diameter: Any, dimension: int, lipschitz: Any, smoothness: Any, inner: int) -> Any:
    r"""MORGFW with K inner steps and stochastic gradients (each D-bounded, each L-smooth), ball of radius
    $D\sqrt{\kappa_d T}$, with $W = D^2 + L^2R^2$: the exact bound
    $+\ 2R\sqrt{\kappa_dT}\,\frac{W\ln(K+1)}{D(K+1)} + 2RT\sqrt{2W/(K+1)}$.

    The k-th estimate has mean square error at most $2W/(k+1)$, so FTPL meets $E\|d^k\|^2 \le D^2 + 2W/(k+1)$.
    """
    exact = morgfw_exact(
        horizon,
        diameter=diameter,
        dimension=dimension,
        lipschitz=lipschitz,
        smoothness=smoothness,
        inner=inner,
    )
    error = lipschitz**2 + (smoothness * diameter) ** 2
    stability = (kappa(dimension) * horizon) ** 0.5 * error * math.log(inner + 1) / (lipschitz * (inner + 1))
    return exact + 2 * diameter * (stability + horizon * (2 * error / (inner + 1)) ** 0.5)
