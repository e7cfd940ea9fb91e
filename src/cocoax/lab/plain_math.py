"""Turns the formulas in docstrings into Unicode text for a terminal."""

import re

_RELATIONS = {
    "le": "≤", "ge": "≥", "in": "∈", "notin": "∉", "to": "→", "propto": "∝", "approx": "≈", "ne": "≠", "subset": "⊂",
    "subseteq": "⊆", "preceq": "⪯", "succeq": "⪰", "times": "×", "cup": "∪", "cap": "∩",
}  # fmt: skip
_NAMES = ("max", "min", "arg", "log", "exp", "sup", "inf")
_SYMBOLS = {
    "langle": "⟨", "rangle": "⟩", "lceil": "⌈", "rceil": "⌉", "cdot": "·", "mid": "|", "dots": "…", "ldots": "…",
    "sum": "Σ", "prod": "Π", "nabla": "∇", "top": "ᵀ", "infty": "∞", "pm": "±", "sqrt": "√", "ell": "ℓ", "star": "*",
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "eta": "η", "nu": "ν",
    "theta": "θ", "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ",
    "omega": "ω", "Pi": "Π", "Phi": "Φ", "Sigma": "Σ", "Delta": "Δ", "operatorname": "", "mathcal": "", "mathrm": "",
    "mathbb": "", "text": "", "left": "", "right": "", "big": "", "Big": "", "bar": "", "hat": "", "tilde": "",
    "quad": " ", "qquad": " ",
    **{name: f" {symbol} " for name, symbol in _RELATIONS.items()},
    **{name: f" {name} " for name in _NAMES},
}  # fmt: skip
_GROUP = r"\{([^{}]*)\}"


def plain(text: str) -> str:
    r"""The text, with formulas between dollar signs written in Unicode; the last one may lack its second dollar.

    >>> plain(r"$f_t(X) = \frac12\sum_{(i,j)\in B_t}(X_{ij}-M_{ij})^2$ with $\|X\|_*\le k$")
    'f_t(X) = ½Σ_{(i,j) ∈ B_t}(X_ij-M_ij)² with ‖X‖_* ≤ k'
    """
    return re.sub(r"\$([^$]*)(?:\$|$)", lambda formula: _unicode(formula[1]), text)


def _unicode(formula: str) -> str:
    """One formula in LaTeX as Unicode text."""
    formula = formula.replace(r"\|", "‖").replace(r"\{", "⦃").replace(r"\}", "⦄").replace(r"\frac12", "½")
    formula = re.sub(r"\\[,;:! ]", " ", formula)
    formula = re.sub(r"\\frac(\\[a-z]+|\w)(\w)", r"\1/\2", formula)
    formula = re.sub(r"\\frac(\w)(?=\{)", r"\\frac{\1}", formula)
    for _ in range(3):  # groups in groups
        formula = re.sub(rf"\\frac{_GROUP}{_GROUP}", lambda parts: "/".join(map(_in_brackets, parts.groups())), formula)
        formula = re.sub(rf"\\sqrt\s*{_GROUP}", r"√(\1)", formula)
        formula = re.sub(rf"([_^]){_GROUP}", lambda part: part[1] + _grouped(part[2]), formula)
        formula = re.sub(rf"(\\[A-Za-z]+){_GROUP}", r"\1 \2", formula)
    formula = re.sub(r"\\([A-Za-z]+)", lambda name: _SYMBOLS.get(name[1], name[1]), formula)
    formula = re.sub(r"([\w)}])  ?(max|min|log|exp) ", r"\1 \2 ", formula)
    formula = re.sub(r"(max|min|exp|arg)  ?(?=[(_])", r"\1", formula)
    formula = re.sub(r"([⟨√(\[]) +", r"\1", formula)
    formula = re.sub(r"[{}]", "", formula).translate(str.maketrans("⦃⦄", "{}"))
    return " ".join(re.sub(r"\^(2(?!\d)|ᵀ)", lambda power: "²" if power[1] == "2" else "ᵀ", formula).split())


def _grouped(text: str) -> str:
    return text if re.fullmatch(r"\\?\w+", text) else f"⦃{text}⦄"


def _in_brackets(text: str) -> str:
    return text if re.fullmatch(r"\\?\w+", text) else f"({text})"
