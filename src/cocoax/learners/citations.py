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

_COCOAX = """\
@software{cocoax,
  title = {cocoax: Constrained online convex optimization in JAX, without projections}
}"""

CITATIONS: dict[str, str] = {
    # learners
    "Blocks": _PAPER,
    "PDMFW": _PAPER,
    "PrimalDual": _COCOAX,  # any pair: cite its primal and its dual too
    "PDOGD": _LONG_TERM,
    "AdaptivePDOGD": _ADAPTIVE,
    "DPP": _DRIFT_PLUS_PENALTY,
    "Stay": _COCOAX,
    # primals
    "FTPL": _PERTURBED_LEADER,
    "MFW": _META,
    "MORGFW": _RECURSIVE,
    "OCG": _BOOK,
    "OGD": _GRADIENT,
    "ORGFW": _RECURSIVE,
    "OSPF": _FASTER,
    "SFTPL": _FASTER,
    # duals
    "RegularizedAscent": _LONG_TERM,
    "VirtualQueue": _DRIFT_PLUS_PENALTY,
}
"""The entry of every public learner, primal and dual by the name of its class; several may share one."""
