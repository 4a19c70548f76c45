"""The live form of an exhibit in a kernel: ipywidgets around the functions of lib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np


def live_form(exhibit: Any) -> Any:
    """Put controls, and buttons for what moves by itself, above a picture of the state.

    What ``advance`` or ``draw`` raises as ValueError stands above the opening picture
    until the next good value.
    """
    import ipywidgets

    shown = _Shown(exhibit)
    for each in shown.controls.values():
        each.observe(shown.moved, "value")
    buttons = []
    if exhibit.advance is not None:
        player = ipywidgets.Play(max=10**9, interval=150, description="Play")
        player.observe(shown.step, "value")
        buttons = [player, _button("Step", shown.step), _button("Reset", shown.reset)]
    if exhibit.again is not None:
        buttons.append(_button("Draw again", shown.draw_again))
    row = [ipywidgets.HBox(buttons)] if buttons else []
    return ipywidgets.VBox([*row, *shown.controls.values(), shown.view])


class _Shown:
    """An exhibit in one state, its picture, and the controls that follow it."""

    def __init__(self, exhibit: Any):
        import ipywidgets

        self.exhibit, self.state = exhibit, exhibit.state
        self.controls = {n: each.widget() for n, each in exhibit.controls.items()}
        self.view = ipywidgets.HTML(exhibit.frames[0]._repr_html_())
        self._drawn, self._putting = 0, False

    def moved(self, _: Any) -> None:
        """A control was moved by the reader."""
        if not self._putting:
            self._show()

    def step(self, _: Any) -> None:
        advance = self.exhibit.advance
        self._show(lambda state: advance(state, **self._chosen()))

    def draw_again(self, _: Any) -> None:
        self._drawn += 1
        rng = np.random.default_rng([self.exhibit.seed, self._drawn])
        again = self.exhibit.again
        self._show(lambda state: again(state, rng, **self._chosen()))

    def reset(self, _: Any) -> None:
        self._put({n: each.start for n, each in self.exhibit.controls.items()})
        self._show(lambda state: self.exhibit.state)

    def _chosen(self) -> dict[str, Any]:
        return {name: each.value for name, each in self.controls.items()}

    def _put(self, values: Mapping[str, Any]) -> None:
        self._putting = True
        for name, value in values.items():
            self.controls[name].value = value
        self._putting = False

    def _show(self, move: Callable[[Any], Any] | None = None) -> None:
        try:
            state = self.state
            if move is not None:
                state = move(state)
                self._put({n: state[n] for n in self.controls if n in state})
            drawn = self.exhibit.draw(state, **self._chosen())
            self.view.value, self.state = drawn._repr_html_(), state
        except ValueError as error:
            self.view.value = (
                f'<p class="book-figure" role="alert">{escape(str(error))}</p>'
                f"{self.exhibit.frames[0]._repr_html_()}"
            )


def _button(name: str, act: Any) -> Any:
    import ipywidgets

    button = ipywidgets.Button(description=name)
    button.on_click(act)
    return button
