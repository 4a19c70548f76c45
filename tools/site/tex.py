"""Formulas where none can be set: short ones in letters, and the letters they have.

A search result shows "n ≥ m" for a formula of that kind and "…" for a long one.
"""

from __future__ import annotations

import re

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε",
    "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ",
    "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "varphi": "φ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ",
    "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ",
    "Omega": "Ω", "ell": "ℓ",
}  # fmt: skip
SIGNS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "to": "→", "infty": "∞",
    "times": "×", "cdot": "·", "approx": "≈", "in": "∈", "sum": "Σ", "nabla": "∇",
    "partial": "∂", "pm": "±", "sim": "~", "ll": "≪", "gg": "≫", "top": "ᵀ",
    "otimes": "⊗", "circ": "∘", "dots": "…", "ldots": "…", "log": "log", "exp": "exp",
    "cos": "cos", "sin": "sin", "max": "max", "min": "min", "quad": " ", "lvert": "|",
    "rvert": "|", "langle": "⟨", "rangle": "⟩", "mapsto": "↦", "propto": "∝",
}  # fmt: skip
FONTS = r"\\(?:mathrm|mathbb|mathcal|mathbf|text|operatorname|tilde|hat|bar|dot)"
LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
HIGH = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LONG = 28


def readable(tex: str) -> str:
    r"""A formula in plain letters where it is short, else "…": ``\tau_0^2`` is τ₀²."""
    text = re.sub(r"^\s*\\[(\[]|\\[)\]]\s*$", "", tex).strip()
    text = re.sub(r"\\[,;:! ]|\\(?:big|Big|left|right)\b|~", " ", text)
    text = re.sub(rf"{FONTS}\s*\{{([^{{}}]*)\}}", r"\1", text)
    text = re.sub(rf"{FONTS}\s*(\w)", r"\1", text)
    text = re.sub(r"\\sqrt\s*\{(\w+)\}|\\sqrt\s*(\w)", r"√\1\2", text)
    text = re.sub(r"\\(?:tfrac|frac)\s*(\d)\s*(\w)", r"\1/\2", text)
    text = re.sub(r"\\(?:tfrac|frac)\{(\w+)\}\{(\w+)\}", r"\1/\2", text)
    for name, sign in [*LETTERS.items(), *SIGNS.items()]:
        text = re.sub(rf"\\{name}(?![A-Za-z])", sign, text)
    text = re.sub(r"_\{?(\d+)\}?", lambda m: m.group(1).translate(LOW), text)
    text = re.sub(r"\^\{?(-?\d+)\}?", lambda m: m.group(1).translate(HIGH), text)
    text = re.sub(r"_\{?(\w+)\}?", r"_\1", text)
    text = re.sub(r"\^\{?(\w|ᵀ)\}?", r"^\1", text).replace("^ᵀ", "ᵀ")
    text = re.sub(r"\s+", " ", text).strip()
    return "…" if len(text) > LONG or re.search(r"[\\{}$&]", text) else text


def letter_of(tex: str) -> str | None:
    r"""The letter that a symbol starts with, as in a formula: ``\tau_0``, ``n_k``.

    None for what is no letter, such as a norm.
    """
    text = re.sub(r"\{(\w)\}", r" \1", tex.partition("(")[0])
    text = re.sub(r"([_^]) ", r"\1", re.sub(r"\s+", " ", text)).strip()
    name = r"\\[A-Za-z]+(?: [A-Za-z]| ?\{\w+\})?|[A-Za-z]"
    index = r"(?:[_^](?:\w|\\[A-Za-z]+|\{[^{}]*\}))"
    if text.startswith(("\\lvert", "\\lVert", "\\langle", "\\xrightarrow")):
        return None
    return text if re.fullmatch(rf"(?:{name}){index}{{0,2}}", text) else None
