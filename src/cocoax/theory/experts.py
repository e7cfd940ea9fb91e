"""Regret bounds of experts, of hints and of bets; also available in `theory.regret`.

`variance`, `span` and `squares` describe the experts' losses, or the gains of a bet, round by round.
"""

import math
from typing import Any

import numpy as np


def mixture(*, count: int, variance: Any, span: Any) -> Any:
    r"""$2\sqrt{V\ln K}+S(\frac43\ln K+4)$: what AdaHedge over K experts loses at most, compared with the best of them.

    `variance` is V, the sum over rounds of the losses' variance under the shares. `span` is S, the largest difference
    of two losses in a round. Proof after de Rooij et al. (2014), Theorem 8, where the gap $\Delta$ begins at half of
    the first round's span instead of 0: $\Delta_1^2\le\frac12S\Delta_T$ and the first round's gap is at most S, so
    $\Delta_T\le\sqrt{V\ln K}+S(\frac23\ln K+\frac32)$ and the regret is at most $2\Delta_T+S$.

    >>> round(float(mixture(count=2, variance=0.0, span=1.0)), 3)
    4.924
    """
    return 2 * np.sqrt(variance * math.log(count)) + span * (4 / 3 * math.log(count) + 4)


def exponentiated_gradient(*, dimension: int, step: Any, spans: Any) -> Any:
    r"""$\frac{\ln d}\eta+\frac\eta8\sum_sS_s^2$: regret on a simplex of total 1, from its centre.

    `spans` are the $S_s$: the largest difference of two entries of each gradient.

    >>> round(float(exponentiated_gradient(dimension=2, step=1.0, spans=[2.0, 2.0])), 3)
    1.693
    """
    return math.log(dimension) / step + step / 8 * np.sum(np.square(spans))


def optimistic(*, diameter: Any, squares: Any) -> Any:
    r"""$\left(\frac12+\frac{1+\sqrt5}2\right)R\sqrt{E_t}$ with $E_t=\sum_{s\le t}\|\nabla_s-m_s\|^2$, about 2.12.

    Follow the leader regularised by $\frac{\sqrt{E_{t-1}}}{2R}\|x-x_1\|^2$, with the hint m in place of the next
    gradient. The regulariser costs $\frac12R\sqrt{E_t}$, and a round at most
    $R\min(e,\frac{e^2}{2\sqrt{E_{t-1}}})$ with $e=\|\nabla_t-m_t\|$, which is at most
    $\frac{1+\sqrt5}2R(\sqrt{E_t}-\sqrt{E_{t-1}})$: look at $e^2$ below and above $4E_{t-1}$.

    >>> round(float(optimistic(diameter=1.0, squares=4.0)), 3)
    4.236
    """
    return (0.5 + (1 + 5**0.5) / 2) * diameter * np.sqrt(squares)


def favourite(*, span: Any) -> Any:
    r"""$3Z$ with $Z=\max_s|z_s|$ (`span`): how much more a `Bet` costs at most than the favourite.

    While the scale S stays, the wealth $M_t=\varepsilon\sum_\eta\pi_\eta P_\eta$ is never negative, and grows by
    $q_t\tilde w_t$, where q is p before it is cut to 1. If it is cut and $w_t>0$, nothing counts; if $w_t\le0$, then
    $p_tw_t\ge q_tw_t$. So $\sum p_tz_t\ge S(M_{end}-M_{begin})$. With a new scale S' at most $SM$ is taken along, and
    $\varepsilon S'$ added, $\varepsilon=\frac14$; the round itself costs at most $|z_t|=\frac12S'$. Scales at least
    double, and the last is at most 2Z: in all $(\varepsilon+\frac12)\cdot2\cdot2Z=3Z$.

    >>> favourite(span=2.0)
    6.0
    """
    return 3 * span


def challenger(*, scale: Any, squares: Any) -> Any:
    r"""$S\left(\frac74+\min_\eta\left(\eta\frac V{S^2}+\frac1\eta\left(\ln\frac4{\pi_\eta\eta}-1\right)\right)\right)$:
    how much more a `Bet` costs at most than the challenger, while its scale is S.

    $V=\sum z_s^2$ (`squares`); $\eta=2^{-j}$, $\pi_\eta=\frac{13}{12}\frac1{j(j+1)}$, $j\le12$. By the proof of
    `favourite`, $\sum(1-p_t)w_t\le\sum\tilde w_t-M+M_{begin}$ with $M_{begin}\le\varepsilon+1$, and
    $M\ge\varepsilon\pi_\eta e^{\eta W-\eta^2V/S^2}$ with $W=\sum\tilde w_t$, as $\ln(1+x)\ge x-x^2$ for
    $|x|\le\frac12$; the largest value over W is the one above, less $\frac12$ for the round that set the scale. Scales
    follow one another; their bounds add up.

    >>> round(float(challenger(scale=1.0, squares=100.0)), 1)
    40.7
    """
    j = np.arange(1, 13)
    rates, prior = 2.0**-j, 13 / 12 / (j * (j + 1))
    return scale * (1.75 + np.min(rates * squares / scale**2 + (np.log(4 / (prior * rates)) - 1) / rates))
