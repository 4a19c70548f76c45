"""The live form of an explorer: ipywidgets around a drawing function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from lib.figures.stops import labels, logarithmic, numeric, positions, whole


def live_form(
    values: dict[str, tuple[Any, ...]],
    starts: dict[str, int],
    first: str,
    draw: Callable[[dict[str, Any]], str],
    *,
    continuous: bool,
    plays: bool,
) -> Any:
    """Controls of the arguments above the picture that ``draw`` makes of their values.

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
    player = [_player(values, controls)] if plays else []
    return ipywidgets.VBox([*player, *controls.values(), view])


def control(name: str, stops: tuple[Any, ...], continuous: bool, start: int = 0) -> Any:
    """A slider over the stops or, of numbers, over the values between them as well.

    The continuous slider is logarithmic where the stops are nearer to equal ratios
    than to equal differences.
    """
    import ipywidgets

    label = name.replace("_", " ")
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
    """Whether a Jupyter kernel is there to answer a widget."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def _player(values: dict[str, tuple[Any, ...]], controls: dict[str, Any]) -> Any:
    """A button that moves the only control through its stops."""
    import ipywidgets

    ((name, stops),) = values.items()
    player = ipywidgets.Play(max=len(stops) - 1, interval=200, description="Play")
    player.observe(
        lambda change: setattr(controls[name], "value", stops[change["new"]]), "value"
    )
    return player
