"""What is painted on a page, for tests of what a reader can see."""

import io

import numpy as np
from PIL import Image

MARGIN = 6  # pixels around a thing, for its ring and its ground


def luminance(page, box):
    """Relative luminance of the pixels of a box in the window and of its margin."""
    left, top = (max(box[name] - MARGIN, 0) for name in ("x", "y"))
    clip = {
        "x": left,
        "y": top,
        "width": box["x"] + box["width"] + MARGIN - left,
        "height": box["y"] + box["height"] + MARGIN - top,
    }
    image = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
    rgb = np.asarray(image) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, two):
    """WCAG 2 contrast of luminances."""
    return (np.maximum(one, two) + 0.05) / (np.minimum(one, two) + 0.05)
