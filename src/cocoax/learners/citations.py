"""What to cite: a BibTeX entry for every public learner, primal and dual."""

_PAPER = """\
@misc{lee-projection-free,
  title  = {Projection-Free Online Convex Optimization with Stochastic Constraints},
  author = {Lee, Duksang and Ho-Nguyen, Nam and Lee, Dabeen}
}"""

_LONG_TERM = """\
@article{mahdavi2012,
  title   = {Trading Regret for Efficiency: Online Convex Optimization with Long Term Constraints},
  author  = {Mahdavi, Mehrdad and Jin, Rong and Yang, Tianbao},
  journal = {Journal of Machine Learning Research},
  volume  = {13},
  pages   = {2503--2528},
  year    = {2012}
}"""

_ADAPTIVE = """\
@inproceedings{jenatton2016,
  title     = {Adaptive Algorithms for Online Convex Optimization with Long-term Constraints},
  author    = {Jenatton, Rodolphe and Huang, Jim and Archambeau, C{\\'e}dric},
  booktitle = {International Conference on Machine Learning},
  pages     = {402--411},
  year      = {2016}
}"""

_DRIFT_PLUS_PENALTY = """\
@inproceedings{yu2017,
  title     = {Online Convex Optimization with Stochastic Constraints},
  author    = {Yu, Hao and Neely, Michael J. and Wei, Xiaohan},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {30},
  year      = {2017}
}"""

_BOOK = """\
@book{hazan-oco,
  title     = {Introduction to Online Convex Optimization},
  author    = {Hazan, Elad},
  edition   = {2nd},
  publisher = {MIT Press},
  year      = {2022},
  note      = {arXiv:1909.05207, Algorithm 27}
}"""

_GRADIENT = """\
@inproceedings{zinkevich2003,
  title     = {Online Convex Programming and Generalized Infinitesimal Gradient Ascent},
  author    = {Zinkevich, Martin},
  booktitle = {International Conference on Machine Learning},
  pages     = {928--936},
  year      = {2003}
}"""

_FASTER = """\
@inproceedings{hazan2020,
  title     = {Faster Projection-free Online Learning},
  author    = {Hazan, Elad and Minasyan, E.},
  booktitle = {Conference on Learning Theory},
  pages     = {1877--1893},
  year      = {2020},
  note      = {arXiv:2001.11568}
}"""

_RECURSIVE = """\
@inproceedings{xie2020,
  title     = {Efficient Projection-Free Online Methods with Stochastic Recursive Gradient},
  author    = {Xie, Jiahao and Shen, Zebang and Zhang, Chao and Wang, Boyu and Qian, Hui},
  booktitle = {AAAI Conference on Artificial Intelligence},
  volume    = {34},
  pages     = {6446--6453},
  year      = {2020},
  doi       = {10.1609/aaai.v34i04.6116}
}"""

_META = """\
@inproceedings{chen2018,
  title     = {Projection-Free Online Optimization with Stochastic Gradient: From Convexity to Submodularity},
  author    = {Chen, Lin and Harshaw, Christopher and Hassani, Hamed and Karbasi, Amin},
  booktitle = {International Conference on Machine Learning},
  pages     = {814--823},
  year      = {2018}
}"""

_PERTURBED_LEADER = """\
@article{kalai2005,
  title   = {Efficient Algorithms for Online Decision Problems},
  author  = {Kalai, Adam and Vempala, Santosh},
  journal = {Journal of Computer and System Sciences},
  volume  = {71},
  pages   = {291--307},
  year    = {2005}
}"""

_HARD = """\
@inproceedings{yuan2018,
  title     = {Online Convex Optimization for Cumulative Constraints},
  author    = {Yuan, Jianjun and Lamperski, Andrew},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {31},
  year      = {2018}
}"""

_ADAGRAD = """\
@article{duchi2011,
  title   = {Adaptive Subgradient Methods for Online Learning and Stochastic Optimization},
  author  = {Duchi, John and Hazan, Elad and Singer, Yoram},
  journal = {Journal of Machine Learning Research},
  volume  = {12},
  pages   = {2121--2159},
  year    = {2011}
}"""

_ONLINE_FRANK_WOLFE = """\
@misc{weibel2025,
  title  = {Optimized Projection-Free Algorithms for Online Learning: Construction and Worst-Case Analysis},
  author = {Weibel, Julien and Gaillard, Pierre and Koolen, Wouter M. and Taylor, Adrien},
  year   = {2025},
  note   = {arXiv:2506.05855, Theorem 2.1}
}"""

_LINEAR_OPTIMIZATION = """\
@inproceedings{garber2022,
  title     = {New Projection-free Algorithms for Online Convex Optimization with Adaptive Regret Guarantees},
  author    = {Garber, Dan and Kretzu, Ben},
  booktitle = {Conference on Learning Theory},
  year      = {2022}
}"""

_LYAPUNOV = """\
@inproceedings{sinha2024,
  title     = {Optimal Algorithms for Online Convex Optimization with Adversarial Constraints},
  author    = {Sinha, Abhishek and Vaze, Rahul},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""

_LOW_COMPLEXITY = """\
@article{yu2020,
  title   = {A Low Complexity Algorithm with {$O(\\sqrt{T})$} Regret and {$O(1)$} Constraint Violations for Online \
Convex Optimization with Long Term Constraints},
  author  = {Yu, Hao and Neely, Michael J.},
  journal = {Journal of Machine Learning Research},
  volume  = {21},
  year    = {2020}
}"""

_PRIMAL_DUAL_MIRROR = """\
@article{wei2020,
  title   = {Online Primal-Dual Mirror Descent under Stochastic Constraints},
  author  = {Wei, Xiaohan and Yu, Hao and Neely, Michael J.},
  journal = {Proceedings of the ACM on Measurement and Analysis of Computing Systems},
  volume  = {4},
  year    = {2020},
  note    = {arXiv:1908.00305}
}"""

_CAUTIOUS = """\
@inproceedings{liakopoulos2019,
  title     = {Cautious Regret Minimization: Online Optimization with Long-Term Budget Constraints},
  author    = {Liakopoulos, Nikolaos and Destounis, Apostolos and Paschos, Georgios and Spyropoulos, Thrasyvoulos \
and Mertikopoulos, Panayotis},
  booktitle = {International Conference on Machine Learning},
  year      = {2019}
}"""

_CUMULATIVE = """\
@inproceedings{yi2021,
  title     = {Regret and Cumulative Constraint Violation Analysis for Online Convex Optimization with Long \
Term Constraints},
  author    = {Yi, Xinlei and Li, Xiuxian and Yang, Tao and Xie, Lihua and Chai, Tianyou and Johansson, Karl H.},
  booktitle = {International Conference on Machine Learning},
  year      = {2021},
  note      = {arXiv:2106.05135}
}"""

_RECTIFIED = """\
@inproceedings{guo2022,
  title     = {Online Convex Optimization with Hard Constraints: Towards the Best of Two Worlds and Beyond},
  author    = {Guo, Hengquan and Liu, Xin and Wei, Honghao and Ying, Lei},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {35},
  year      = {2022}
}"""

_PERTURBED_CONSTRAINTS = """\
@inproceedings{valls2020,
  title     = {Online Convex Optimization with Perturbed Constraints: Optimal Rates against Stronger Benchmarks},
  author    = {Valls, V{\\'i}ctor and Iosifidis, George and Leith, Douglas J. and Tassiulas, Leandros},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2020},
  note      = {arXiv:1906.00049}
}"""

_UNIFYING = """\
@inproceedings{castiglioni2022,
  title     = {A Unifying Framework for Online Optimization with Long-Term Constraints},
  author    = {Castiglioni, Matteo and Celli, Andrea and Marchesi, Alberto and Romano, Giulia and Gatti, Nicola},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {35},
  year      = {2022}
}"""

_CONSERVATIVE = """\
@misc{akhtar2020,
  title  = {Conservative Stochastic Optimization with Expectation Constraints},
  author = {Akhtar, Zeeshan and Bedi, Amrit Singh and Rajawat, Ketan},
  year   = {2020},
  note   = {arXiv:2008.05758}
}"""

_SUBMODULAR = """\
@inproceedings{sadeghi2020,
  title     = {Online Continuous {DR}-Submodular Maximization with Long-Term Budget Constraints},
  author    = {Sadeghi, Omid and Fazel, Maryam},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2020}
}"""

_COCOAX = """\
@software{cocoax,
  title = {cocoax: Constrained online convex optimization in JAX, without projections}
}"""

_TRACKED_PI = """\
@software{cocoax-trackedpi-1,
  title   = {TrackedPI, version 1: constrained online learning without constants at one linear minimization a round},
  note    = {The learner Auto of cocoax},
  version = {1}
}"""

CITATIONS: dict[str, str] = {
    # learners
    "Auto": _TRACKED_PI,
    "TrackedPI": _TRACKED_PI,
    "Capped": _COCOAX,  # cite its learner too
    "Anytime": _COCOAX,  # cite its learner too
    "Blocks": _PAPER,
    "PDMFW": _PAPER,
    "PrimalDual": _COCOAX,  # any pair: cite its primal and its dual too
    "PDOGD": _LONG_TERM,
    "AdaptivePDOGD": _ADAPTIVE,
    "DPP": _DRIFT_PLUS_PENALTY,
    "Stay": _COCOAX,
    "Castiglioni": _UNIFYING,
    "DPPMirror": _PRIMAL_DUAL_MIRROR,
    "FWCSOA": _CONSERVATIVE,
    "Liakopoulos": _CAUTIOUS,
    "OSPHG": _SUBMODULAR,
    "RECOO": _RECTIFIED,
    "Valls": _PERTURBED_CONSTRAINTS,
    "Yi": _CUMULATIVE,
    "YuNeely": _LOW_COMPLEXITY,
    "YuanLamperski": _HARD,
    "LyapHard": _LYAPUNOV,
    "LyapPred": _COCOAX,
    "LyapStoch": _COCOAX,
    "PDOFW": _COCOAX,
    "PENOFW": _COCOAX,
    # primals
    "AdaGrad": _ADAGRAD,
    "AdaMFW": _META,
    "AdaOFW": _ONLINE_FRANK_WOLFE,
    "LOOBOGD": _LINEAR_OPTIMIZATION,
    "OFW": _ONLINE_FRANK_WOLFE,
    "FTPL": _PERTURBED_LEADER,
    "MFW": _META,
    "MORGFW": _RECURSIVE,
    "OCG": _BOOK,
    "Tracked": _COCOAX,
    "MetaOGD": _SUBMODULAR,
    "OGD": _GRADIENT,
    "ORGFW": _RECURSIVE,
    "OSPF": _FASTER,
    "SFTPL": _FASTER,
    # duals
    "DriftPotential": _COCOAX,
    "ExponentialPotential": _LYAPUNOV,
    "Hard": _COCOAX,
    "Penalty": _HARD,
    "PI": _COCOAX,
    "BoundedAscent": _UNIFYING,
    "FlooredQueue": _LOW_COMPLEXITY,
    "RegularizedAscent": _LONG_TERM,
    "VirtualQueue": _DRIFT_PLUS_PENALTY,
}
"""The entry of every public learner, primal and dual by the name of its class; several may share one."""
