"""Published architectures: their sizes, where these are printed, what is special."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Settings that the models of a paper share; ``source`` is in the bibliography."""

    source: str
    positions: str
    activation: str
    norm: str
    layers_shared: bool = False
    causal: bool = False  # each token sees those before it alone

    @property
    def length_fixed(self) -> bool:
        """True where normalization after each branch gives all tokens one length."""
        return self.norm == _AFTER


@dataclass(frozen=True)
class Preset:
    """A published model; ``config`` says where its sizes were read."""

    title: str
    width: int
    depth: int
    heads: int
    tokens: int
    family: Family
    config: str
    notes: str = ""

    @property
    def sizes(self) -> dict[str, int | bool]:
        """Arguments of :func:`lib.regimes.describe`."""
        return {
            "width": self.width,
            "depth": self.depth,
            "heads": self.heads,
            "tokens": self.tokens,
            "layers_shared": self.family.layers_shared,
        }

    @property
    def special(self) -> str:
        """Name, in words, what this model has and the model of the book has not."""
        known = self.family
        parts = (
            f"{known.positions} positions", known.activation,
            f"attention with normalization {known.norm}",
            "a causal mask" if known.causal else "",
            self.notes,
        )  # fmt: skip
        return ", ".join(part for part in parts if part)


_BEFORE, _AFTER = "before each branch", "after each branch"
_BERT = Family("devlin2019bert", "learned", "GELU", _AFTER)
_ALBERT = Family("lan2020albert", "learned", "GELU", _AFTER, layers_shared=True)
_GPT2 = Family("radford2019language", "learned", "GELU", _BEFORE, causal=True)
_GPT3 = Family("brown2020language", "learned", "GELU", _BEFORE, causal=True)
_VIT = Family("dosovitskiy2021image", "learned", "GELU", _BEFORE)
_BLOOM = Family("bigscience2022bloom", "ALiBi", "GELU", _BEFORE, causal=True)
_LLAMA = Family("touvron2023llama", "rotary", "SwiGLU", f"{_BEFORE} (RMS)", causal=True)
_MISTRAL = Family(
    "jiang2023mistral", "rotary", "SwiGLU", f"{_BEFORE} (RMS)", causal=True
)
_HUB = "config.json on the Hugging Face Hub"

#: The published models of ``--preset``, by name.
PRESETS: dict[str, Preset] = {
    "bert-base": Preset(
        "BERT base", 768, 12, 12, 512, _BERT, f"bert-base-uncased, {_HUB}"
    ),
    "bert-large": Preset(
        "BERT large", 1024, 24, 16, 512, _BERT, f"bert-large-uncased, {_HUB}"
    ),
    "albert-large": Preset(
        "ALBERT large", 1024, 24, 16, 512, _ALBERT, f"albert-large-v2, {_HUB}"
    ),
    "albert-xxlarge": Preset(
        "ALBERT xxlarge", 4096, 12, 64, 512, _ALBERT, f"albert-xxlarge-v2, {_HUB}"
    ),
    "gpt2": Preset("GPT-2", 768, 12, 12, 1024, _GPT2, f"gpt2, {_HUB}"),
    "gpt2-xl": Preset("GPT-2 XL", 1600, 48, 25, 1024, _GPT2, f"gpt2-xl, {_HUB}"),
    "gpt3": Preset(
        "GPT-3 175B", 12288, 96, 96, 2048, _GPT3,
        "the table of sizes of its paper, as public summaries quote it",
    ),
    "vit-base": Preset(
        "ViT-B/16", 768, 12, 12, 197, _VIT, f"vit-base-patch16-224, {_HUB}"
    ),
    "vit-large": Preset(
        "ViT-L/16", 1024, 24, 16, 197, _VIT, f"vit-large-patch16-224, {_HUB}"
    ),
    "bloom": Preset(
        "BLOOM 176B", 14336, 70, 112, 2048, _BLOOM, "model card of bigscience/bloom"
    ),
    "llama2-7b": Preset(
        "Llama 2 7B", 4096, 32, 32, 4096, _LLAMA,
        "notes on the architecture of meta-llama/llama",
    ),
    "mistral-7b": Preset(
        "Mistral 7B", 4096, 32, 32, 4096, _MISTRAL, "params.json of mistral-7B-v0.1",
        "four heads share their keys, and a layer sees a window of 4,096 tokens",
    ),
}  # fmt: skip


def preset(name: str) -> Preset:
    """Return a published model by name; ValueError names those nearest to others."""
    text = name if isinstance(name, str) else repr(name)
    if text in PRESETS:
        return PRESETS[text]
    near = difflib.get_close_matches(text.lower(), PRESETS, n=3, cutoff=0.4)
    listed = f"did you mean {', '.join(near)}?" if near else f"known: {known()}"
    short = text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"
    raise ValueError(f"preset must be the name of a model, got {short!r}: {listed}")


def known() -> str:
    """Return the names of all models."""
    return ", ".join(PRESETS)
