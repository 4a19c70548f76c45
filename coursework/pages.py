"""HTML of notebooks that needs no network: MathJax is in the file, 2.1 MB of it."""

from __future__ import annotations

import functools
import re
from importlib.metadata import distribution
from pathlib import Path

from tools.command import PipelineError

CONFIG = r"""<script>window.MathJax = {
  tex: {inlineMath: [["$", "$"], ["\\(", "\\)"]],
        displayMath: [["$$", "$$"], ["\\[", "\\]"]],
        processEscapes: true, processEnvironments: true},
  options: {skipHtmlTags: ["script", "noscript", "style", "textarea", "pre", "code"]},
};</script>
"""
REMOTE = re.compile(r"<script\b[^>]*\bsrc=[\"']https?:[^>]*>\s*</script>")
INLINE = re.compile(r"<script\b(?![^>]*\bsrc=)[^>]*>.*?</script>", re.S)
HUB = re.compile(r"MathJax\.Hub|mermaid|https?://cdn", re.I)


@functools.cache
def mathjax() -> str:
    """The script of MathJax that draws with its own outlines and loads nothing."""
    name = "sphinx-mathjax-offline"
    files = distribution(name).files or []
    matching = [f for f in files if f.name == "tex-svg.js"]
    if not matching:
        raise PipelineError(f"{name} has no tex-svg.js any more")
    text = Path(str(matching[0].locate())).read_text("utf-8")
    return text.replace("</script", r"<\/script")


def offline(page: str) -> str:
    """A page of nbconvert with what it loads from elsewhere taken out or put in."""
    page = REMOTE.sub("", page)
    page = INLINE.sub(lambda m: "" if HUB.search(m[0]) else m[0], page)
    script = f"{CONFIG}<script>{mathjax()}</script>\n</head>"
    whole, count = re.subn("</head>", lambda _: script, page, count=1)
    if not count:
        raise PipelineError("a page of nbconvert has no head any more")
    return whole
