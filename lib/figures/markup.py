"""HTML of a figure, and the forms in which a notebook stores it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Container
from html import escape
from typing import Any


def digest(*parts: object) -> str:
    """Eight hexadecimal digits that identify the parts."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def image(svg: str, alt: str) -> str:
    """The svg, as one image with its description."""
    head = f'<svg role="img" aria-label="{escape(alt)}" visibility="visible" '
    return svg.replace("<svg ", head, 1)


def picture(svg: str, alt: str) -> str:
    """The drawing; where a notebook is not trusted, its description instead.

    There JupyterLab drops the tags of svg and template and keeps what they enclose:
    tick labels, which then are hidden, and a sentence, which then is not.
    """
    return (
        f'<div style="visibility:hidden;font-size:0">{image(svg, alt)}</div>'
        f"{_instead(alt)}"
    )


def below(caption: str | None, changes: bool = False) -> str:
    """The caption, or nothing; a caption that changes is read aloud when it does."""
    live = ' aria-live="polite"' if changes else ""
    if not caption and not changes:
        return ""
    return f"<figcaption{live}>{escape(caption or '')}</figcaption>"


def data_script(data: Any) -> str:
    """Write data into the page as JSON, for the script that brings a figure to life."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A closing tag, or the start of a comment, would change where the element ends.
    text = text.replace("</", "<\\/").replace("<!", "<\\u0021")
    return f'<script type="application/json">{text}</script>'


def with_still(html: str, alt: str, png: bytes) -> str:
    """The form with a PNG where :func:`picture` has the description for the untrusted.

    JupyterLab prefers HTML to PNG for them too, so the PNG must be in it.
    """
    data = base64.b64encode(png).decode()
    shown = f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'
    return html.replace(_instead(alt), f"<template>{shown}</template>", 1)


def _instead(alt: str) -> str:
    return f"<template><p>{escape(alt)}</p></template>"


def stored_forms(
    html: str,
    alt: str,
    draw: Callable[[str], bytes | None],
    include: Container[str] | None,
    exclude: Container[str] | None,
) -> dict[str, Any]:
    """HTML, PNG and text of a figure by mime type, those that are asked for.

    ``draw`` makes the PNG, in which it notes the sha256 of the HTML without it.
    """

    def asked(kind: str) -> bool:
        return (include is None or kind in include) and kind not in (exclude or ())

    forms: dict[str, Any] = {"text/plain": alt, "text/html": html}
    if asked("text/html") or asked("image/png"):
        png = draw(hashlib.sha256(html.encode()).hexdigest())
        if png is not None:
            forms["text/html"] = with_still(html, alt, png)
            forms["image/png"] = base64.b64encode(png).decode()
    return {kind: form for kind, form in forms.items() if asked(kind)}
