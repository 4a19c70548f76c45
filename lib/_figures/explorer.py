"""One drawing function, two lives: sliders on a static page, widgets in a kernel."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import product
from typing import Any

import numpy as np

from lib._figures.svg import BookFigure, below, digest, image, merge, own_ids, picture

#: Largest static form of one explorer, in bytes, before compression.
BUDGET = 250_000


@dataclass(frozen=True)
class Explorer:
    """Frames of a figure over a grid of values, from ``explore`` or ``animate``."""

    draw: Callable[..., BookFigure]
    values: dict[str, tuple[Any, ...]]
    frames: tuple[BookFigure, ...]
    plays: bool = False

    def __repr__(self) -> str:
        return self.frames[0].alt

    @cached_property
    def html(self) -> str:
        """The static form, made once."""
        return _static_form(self)

    def _repr_html_(self) -> str:
        return self.html

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        live = self.widget()._repr_mimebundle_() if _in_kernel() else {}
        return {**live, "text/plain": repr(self), "text/html": self.html}

    def widget(self) -> Any:
        """The live form: ipywidgets around the same ``draw``.

        Lists of numbers become continuous sliders, logarithmic where they are
        geometric; other lists become selection sliders.
        """
        import ipywidgets

        controls = {name: _control(name, v) for name, v in self.values.items()}
        view = ipywidgets.HTML(self.frames[0]._repr_html_())

        def redraw(_: Any) -> None:
            chosen = {name: control.value for name, control in controls.items()}
            view.value = self.draw(**chosen)._repr_html_()

        for control in controls.values():
            control.observe(redraw, "value")
        player = [_player(self, controls)] if self.plays else []
        return ipywidgets.VBox([*player, *controls.values(), view])


def explore(draw: Callable[..., BookFigure], **values: Sequence[Any]) -> Explorer:
    """Let the reader move the arguments of a drawing function.

    On the static site: one range input for each argument over frames drawn here,
    stored as the first frame and what changes from it. In a live kernel: widgets
    around the same function.

    Parameters
    ----------
    draw : callable
        Pure function of the named values that returns ``figure(...)``.
    **values : sequence
        Stops of each argument, at least two and distinct; the first is shown at first.

    Returns
    -------
    Explorer
        Its ``_repr_html_()`` is the static form.

    Raises
    ------
    ValueError
        Without values or with stops that repeat, when ``draw`` returns something else
        than a figure or differs between two calls, or beyond 250 kB.
    """
    return _explorer(draw, values, plays=False)


def animate(draw: Callable[..., BookFigure], **values: Sequence[Any]) -> Explorer:
    """Let one argument of a drawing function run through its stops by itself.

    As :func:`explore` for one argument, with a button that plays and pauses. On the
    static site it starts when it comes into view, unless the reader asked the system
    for less motion.

    Parameters
    ----------
    draw : callable
        Pure function of the named value that returns ``figure(...)``.
    **values : sequence
        The name of the argument and its stops.

    Returns
    -------
    Explorer
        Its ``_repr_html_()`` is the static form.

    Raises
    ------
    ValueError
        For more than one argument, and as :func:`explore`.
    """
    if len(values) > 1:
        raise ValueError(
            f"values must name one argument that moves, got {', '.join(values)}"
        )
    return _explorer(draw, values, plays=True)


def _explorer(
    draw: Callable[..., BookFigure], values: dict[str, Sequence[Any]], plays: bool
) -> Explorer:
    """The frames at all combinations of the values, checked."""
    if not callable(draw):
        raise ValueError(f"draw must be a function, got {draw!r}")
    if not values:
        raise ValueError(
            "values are missing: name at least one argument with its stops"
        )
    stops = {name: _stops(name, given) for name, given in values.items()}
    grid = [dict(zip(stops, point, strict=True)) for point in product(*stops.values())]
    frames = []
    for point in grid:
        frame = draw(**point)
        if not isinstance(frame, BookFigure):
            raise ValueError(
                f"draw must return figure(...), got {type(frame).__name__} at {point}"
            )
        frames.append(frame)
    if draw(**grid[0]) != frames[0]:
        raise ValueError(f"draw is impure: two calls differ at {grid[0]}")
    explorer = Explorer(draw, stops, tuple(frames), plays)
    size = len(explorer.html.encode())
    if size > BUDGET:
        raise ValueError(
            f"values give {len(frames)} frames of {size} bytes in all, more than the"
            f" {BUDGET} of one explorer: use fewer stops or simpler frames"
        )
    return explorer


def _stops(name: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Stops of one argument as Python values, checked."""
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) < 2:
        raise ValueError(f"{name} must list at least two stops, got {given!r}")
    stops = tuple(x.item() if isinstance(x, np.generic) else x for x in given)
    for x in stops:
        if not (isinstance(x, str) or isinstance(x, int | float) and abs(x) < np.inf):
            raise ValueError(f"{name} must list finite numbers or texts, got {x!r}")
    if len(set(stops)) < len(stops):
        raise ValueError(f"{name} must list distinct stops, got {given!r}")
    return stops


def _static_form(explorer: Explorer) -> str:
    """HTML that the page's book.mjs brings to life; without it, the first frame."""
    frames = explorer.frames
    key = digest(*(frame.svg for frame in frames), explorer.values)
    merged = merge([frame.svg for frame in frames])
    if merged is not None:
        first, slots, rows = merged
    else:  # frames built of different elements: each one whole
        first, slots = frames[0].svg, []
        rows = [[image(frame.svg, frame.alt)] for frame in frames]
    data = {
        "slots": slots,
        "frames": [[_owned(value, key) for value in row] for row in rows],
        "alt": [frame.alt for frame in frames],
        "stops": [[_label(x) for x in stops] for stops in explorer.values.values()],
    }
    # A closing tag inside the JSON would end the script element.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("</", "<\\/")
    sliders = "".join(
        _slider(f"{key}-s{number}", *item)
        for number, item in enumerate(explorer.values.items())
    )
    button = '<button type="button" class="explorer-play">Play</button>'
    return (
        f'<figure class="book-figure book-explorer">'
        f"{picture(own_ids(first, key), frames[0].alt)}"
        f'<div class="explorer-controls" hidden="hidden">'
        f"{button if explorer.plays else ''}{sliders}</div>"
        f'<script type="application/json">{text}</script>'
        f"{below(frames[0].caption)}</figure>"
    )


def _owned(value: str, key: str) -> str:
    """A slot's value whose references are those of this explorer."""
    return f"#{key}-{value[1:]}" if value.startswith("#") else own_ids(value, key)


def _slider(key: str, name: str, stops: tuple[Any, ...]) -> str:
    label, first = escape(name.replace("_", " ")), escape(_label(stops[0]))
    return (
        f'<label for="{key}">{label}</label>'
        f'<input type="range" id="{key}" min="0" max="{len(stops) - 1}" step="1"'
        f' value="0" aria-valuetext="{first}">'
        f'<output for="{key}">{first}</output>'
    )


def _label(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _control(name: str, stops: tuple[Any, ...]) -> Any:
    """The live control of one argument."""
    import ipywidgets

    label = name.replace("_", " ")
    common = {"description": label, "tooltip": label, "value": stops[0]}
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in stops):
        return ipywidgets.SelectionSlider(options=stops, **common)
    low, high = min(stops), max(stops)
    if all(isinstance(x, int) for x in stops):
        return ipywidgets.IntSlider(min=low, max=high, **common)
    ordered = np.sort(np.asarray(stops, dtype=float))
    if low > 0 and len(stops) > 2 and np.ptp(np.diff(np.log(ordered))) < 1e-9:
        bounds = {"min": np.log10(low), "max": np.log10(high), "step": 0.01}
        return ipywidgets.FloatLogSlider(base=10, **bounds, **common)
    return ipywidgets.FloatSlider(min=low, max=high, step=(high - low) / 100, **common)


def _player(explorer: Explorer, controls: dict[str, Any]) -> Any:
    """A button that moves the only control through its stops."""
    import ipywidgets

    ((name, stops),) = explorer.values.items()
    player = ipywidgets.Play(max=len(stops) - 1, interval=200, description="Play")
    player.observe(
        lambda change: setattr(controls[name], "value", stops[change["new"]]), "value"
    )
    return player


def _in_kernel() -> bool:
    """Whether a Jupyter kernel is there to answer a widget."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")
