"""The PNG of each drawing of lib.figures that was made by hand, drawn by Chromium.

    python -m tools.drawings

The sha256 of the SVG stands in the metadata, so that a test sees which one is stale.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from lib.figures.png import reduced
from tools.browser import launched, required_browser
from tools.command import ROOT, replace, run_main

DRAWINGS = ROOT / "lib" / "figures"
WIDTH = 576  # CSS pixels, as on a page


def photograph(svg: Path) -> bytes:
    """PNG of a drawing in dark ink on white, 1.4 pixels for each of CSS."""
    text = svg.read_text("utf-8")
    page_text = (
        "<style>body{margin:0;background:#fff;color:#010203}svg{display:block;"
        f"width:{WIDTH}px;height:auto;font-family:'DejaVu Sans'}}</style>{text}"
    )
    with launched(required_browser("draw the PNG")) as browser:
        page = browser.new_page(device_scale_factor=1.4)
        page.set_content(page_text)
        shot = page.locator("svg").first.screenshot()
        page.close()
    return reduced(shot, hashlib.sha256(text.encode()).hexdigest())


def main() -> None:
    for svg in sorted(DRAWINGS.glob("*.svg")):
        replace(svg.with_suffix(".png"), photograph(svg))


if __name__ == "__main__":
    run_main(main)
