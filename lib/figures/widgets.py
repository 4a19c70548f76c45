"""The live form of an explorer: ipywidgets around a drawing function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from lib.figures.stops import labels, logarithmic, numeric, positions, spelled, whole


def live_form(
    values: dict[str, tuple[Any, ...]],
    starts: dict[str, int],
    first: str,
    draw: Callable[[dict[str, Any]], str],
    *,
    continuous: bool,
) -> Any:
    """Put controls of the arguments above the picture that ``draw`` makes of them.

    ``first`` is the picture at the stops with the numbers ``starts``. What ``draw``
    raises as ValueError stands in the place of the picture until the next good value.
    """
    import ipywidgets

    controls = {
        name: control(name, stops, continuous, starts[name])
        for name, stops in values.items()
    }
    view = ipywidgets.HTML(first)

    def redraw(_: Any) -> None:
        chosen = {name: each.value for name, each in controls.items()}
        try:
            view.value = draw(chosen)
        except ValueError as error:
            view.value = f'<p class="book-figure" role="alert">{escape(str(error))}</p>'

    for each in controls.values():
        each.observe(redraw, "value")
    return ipywidgets.VBox([*controls.values(), view])


def control(name: str, stops: tuple[Any, ...], continuous: bool, start: int = 0) -> Any:
    """Return a slider over the stops or, of numbers, over all values between them.

    The continuous slider is logarithmic where the stops are nearer to equal ratios
    than to equal differences.
    """
    import ipywidgets

    label = spelled(name)
    common = {"description": label, "tooltip": label, "value": stops[start]}
    if not (continuous and numeric(stops)):
        options = list(zip(labels(stops), stops, strict=True))
        return ipywidgets.SelectionSlider(options=options, **common)
    low, high = min(stops), max(stops)
    if whole(stops):
        if logarithmic(stops):
            return ipywidgets.SelectionSlider(options=positions(stops), **common)
        return ipywidgets.IntSlider(min=low, max=high, **common)
    common |= {"readout_format": ".4g"}
    if logarithmic(stops):
        bounds = {"min": np.log10(low), "max": np.log10(high), "step": 0.01}
        return ipywidgets.FloatLogSlider(base=10, **bounds, **common)
    return ipywidgets.FloatSlider(min=low, max=high, step=(high - low) / 100, **common)


def in_kernel() -> bool:
    """Say whether a Jupyter kernel is there to answer a widget."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")
