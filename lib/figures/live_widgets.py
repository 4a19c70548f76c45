"""The live form of an exhibit in a kernel: ipywidgets around the functions of lib."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np


def live_form(exhibit: Any) -> Any:
    """Put controls, and buttons for what moves by itself, above a picture of the state.

    What ``advance`` or ``draw`` raises as ValueError stands above the opening picture
    until the next good value.
    """
    import ipywidgets

    controls = {name: each.widget() for name, each in exhibit.controls.items()}
    view = ipywidgets.HTML(exhibit.frames[0]._repr_html_())
    now = {"state": exhibit.state, "drawn": 0, "moving": False}

    def chosen() -> dict[str, Any]:
        return {name: each.value for name, each in controls.items()}

    def put(values: Mapping[str, Any]) -> None:
        now["moving"] = True
        for name, value in values.items():
            controls[name].value = value
        now["moving"] = False

    def show(move: Any = None) -> None:
        try:
            state = now["state"]
            if move is not None:
                state = move(state)
                put({name: state[name] for name in controls if name in state})
            view.value = exhibit.draw(state, **chosen())._repr_html_()
            now["state"] = state
        except ValueError as error:
            view.value = (
                f'<p class="book-figure" role="alert">{escape(str(error))}</p>'
                f"{exhibit.frames[0]._repr_html_()}"
            )

    def step(_: Any = None) -> None:
        advance = exhibit.advance
        if advance is not None:
            show(lambda state: advance(state, **chosen()))

    def draw_again(_: Any) -> None:
        again = exhibit.again
        if again is not None:
            now["drawn"] += 1
            rng = np.random.default_rng([exhibit.seed, now["drawn"]])
            show(lambda state: again(state, rng, **chosen()))

    def reset(_: Any) -> None:
        put({name: each.start for name, each in exhibit.controls.items()})
        show(lambda state: exhibit.state)

    def moved(_: Any) -> None:
        if not now["moving"]:
            show()

    for each in controls.values():
        each.observe(moved, "value")
    buttons = []
    if exhibit.advance is not None:
        player = ipywidgets.Play(max=10**9, interval=150, description="Play")
        player.observe(step, "value")
        buttons = [player, _button("Step", step), _button("Reset", reset)]
    if exhibit.again is not None:
        buttons.append(_button("Draw again", draw_again))
    row = [ipywidgets.HBox(buttons)] if buttons else []
    return ipywidgets.VBox([*row, *controls.values(), view])


def _button(name: str, act: Any) -> Any:
    import ipywidgets

    button = ipywidgets.Button(description=name)
    button.on_click(act)
    return button
