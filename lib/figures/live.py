"""An exhibit: a state that the reader moves, computed by lib wherever it is shown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from lib.core.checks import require_count
from lib.figures import live_widgets
from lib.figures.book_figure import BookFigure
from lib.figures.controls import Choice, Control, Slider, starts
from lib.figures.markup import below, data_script, digest, picture
from lib.figures.moving import Moving
from lib.figures.svg import own_ids

#: Largest static form of one exhibit, in bytes, before compression.
BUDGET = 160_000

State = Mapping[str, Any]
_NAME = re.compile(r"[a-z][a-z0-9-]*")
# Digits of a number of the state: tokens then lie on the sphere within 1e-9.
_DIGITS = 10


@dataclass(frozen=True, repr=False)
class Exhibit(Moving):
    """A state, what draws it, what moves it, and pictures of it; from :func:`live`."""

    script: str
    draw: Callable[..., BookFigure]
    state: State
    controls: dict[str, Control]
    frames: tuple[BookFigure, ...]
    kernels: dict[str, str]
    advance: Callable[..., State] | None = None
    again: Callable[..., State] | None = None
    seed: int = 0
    caption: str | None = None

    def _static_form(self) -> str:
        return _static_form(self)

    def widget(self) -> Any:
        """Return ipywidgets around ``advance`` and ``draw``: the live form."""
        return live_widgets.live_form(self)


def live(
    script: str,
    draw: Callable[..., BookFigure],
    *,
    state: State,
    controls: Mapping[str, Control],
    kernels: Mapping[str, str],
    positions: Sequence[tuple[State, Mapping[str, float]]] = (),
    advance: Callable[..., State] | None = None,
    again: Callable[..., State] | None = None,
    seed: int = 0,
    caption: str | None = None,
) -> Exhibit:
    """Show a state that the reader moves: one definition, three lives.

    *Stored*: pictures of the opening and of further positions, drawn here. They stand
    in the notebook, on paper, and where a browser runs no scripts. *In a kernel*:
    widgets that call ``advance`` and ``draw``. *On the site*: a script that draws the
    state, moved by the functions of lib themselves, printed as JavaScript (the
    kernels). A kernel that leaves what it was recorded for says so; the stored pictures
    then stand in its place.

    Parameters
    ----------
    script : str
        The drawing script of the site, such as ``"globe"``: a file of ``lib/exhibits``.
    draw : callable
        ``draw(state, **values)``: a pure function that returns ``figure(...)``.
    state : mapping
        Where the exhibit opens: names to arrays, numbers, texts, or lists of them.
    controls : mapping of name to Slider or Choice
        What the reader moves; the names are those of the arguments of ``draw``.
    kernels : mapping of str to str
        For each function that the script calls, the name of the file of its kernel.
    positions : sequence of (state, values)
        Further pictures.
    advance : callable, optional
        ``advance(state, **values)``: the next state, by the functions of the kernels.
        An entry with the name of a control moves that control.
    again : callable, optional
        ``again(state, rng, **values)``: a first state drawn anew.
    seed : int
        Seed of the generator that draws anew, on the page and in the kernel.
    caption : str, optional
        What to see, printed below; that of the first picture by default.

    Returns
    -------
    Exhibit
        Its ``_repr_html_()`` is the static form.

    Raises
    ------
    ValueError
        For names that are none, a state that is not finite numbers or texts, when
        ``draw`` returns something else than a figure or differs between two calls, or
        beyond 160 kB.
    """
    for name, given in (("state", state), ("controls", controls), ("kernels", kernels)):
        if not isinstance(given, Mapping):
            raise ValueError(f"{name} must map names to values, got {given!r}")
    _require_names(script, kernels)
    _require_controls(draw, controls)
    seed = require_count("seed", seed, least=0)
    if caption is not None and not isinstance(caption, str):
        raise ValueError(f"caption must be a text, got {caption!r}")
    if not isinstance(positions, list | tuple):
        raise ValueError(f"positions must be a list of pairs, got {positions!r}")
    for name, function in (("advance", advance), ("again", again)):
        if function is not None and not callable(function):
            raise ValueError(f"{name} must be a function, got {function!r}")
    frames = _frames(draw, [(state, starts(controls)), *positions])
    exhibit = Exhibit(
        script, draw, dict(state), dict(controls), frames, dict(kernels),
        advance, again, seed, frames[0].caption if caption is None else caption,
    )  # fmt: skip
    size = len(exhibit.html.encode())
    if size > BUDGET:
        raise ValueError(
            f"state and positions take {size} bytes, more than the {BUDGET} of one"
            " exhibit: use fewer positions or simpler pictures"
        )
    return exhibit


def _require_names(script: str, kernels: Mapping[str, str]) -> None:
    """Raise ValueError for names that no file of the site can have."""
    if not isinstance(script, str) or not _NAME.fullmatch(script):
        raise ValueError(f"script must be a name in small letters, got {script!r}")
    for role, kernel in kernels.items():
        if not (isinstance(kernel, str) and _NAME.fullmatch(kernel)):
            raise ValueError(
                f"kernels[{role!r}] must be the name of a kernel, got {kernel!r}"
            )


def _require_controls(
    draw: Callable[..., BookFigure], controls: Mapping[str, Control]
) -> None:
    """Raise ValueError unless draw takes a state and the values of the controls."""
    if not callable(draw):
        raise ValueError(f"draw must be a function, got {draw!r}")
    for name, each in controls.items():
        if not isinstance(each, Slider | Choice):
            raise ValueError(
                f"controls[{name!r}] must be a Slider or a Choice, got {each!r}"
            )
    try:
        inspect.signature(draw).bind({}, **starts(controls))
    except TypeError as error:
        raise ValueError(
            f"draw must take a state and {', '.join(controls)}: {error}"
        ) from error


def _frames(
    draw: Callable[..., BookFigure], positions: list[tuple[State, Mapping[str, float]]]
) -> tuple[BookFigure, ...]:
    """Draw the positions, of which the first is the opening and keeps its source."""
    first, *others = (_frame(draw, *each) for each in positions)
    if _frame(draw, *positions[0]) != first:
        raise ValueError("draw is impure: two calls differ at the opening state")
    return first, *(replace(each, source=None) for each in others)


def _frame(
    draw: Callable[..., BookFigure], state: State, values: Mapping[str, float]
) -> BookFigure:
    frame = draw(state, **values)
    if not isinstance(frame, BookFigure):
        raise ValueError(f"draw must return figure(...), got {type(frame).__name__}")
    return frame


def _static_form(exhibit: Exhibit) -> str:
    """Write HTML for exhibit.mjs; where that does not run, the pictures stand."""
    opens = starts(exhibit.controls)
    key = digest(*(f.svg for f in exhibit.frames), opens, exhibit.script)
    data = {
        "script": exhibit.script,
        "kernels": exhibit.kernels,
        "controls": {n: each.described() for n, each in exhibit.controls.items()},
        "state": {name: _plain(name, v) for name, v in exhibit.state.items()},
        "seed": exhibit.seed,
    }
    pictures = "".join(
        f'<div class="exhibit-frame">{picture(own_ids(f.svg, f"{key}-{i}"), f.alt)}'
        f"{f'<p>{escape(f.caption)}</p>' if f.caption and i else ''}</div>"
        for i, f in enumerate(exhibit.frames)
    )
    controls = "".join(
        each.html(f"{key}-c{number}")
        for number, each in enumerate(exhibit.controls.values())
    )
    return (
        f'<figure class="book-figure book-exhibit" data-exhibit="{exhibit.script}">'
        f'<div class="exhibit-frames">{pictures}</div>'
        f'<div class="exhibit-stage" hidden="hidden"></div>'
        f'<p class="exhibit-note">Stored pictures: where scripts run, this moves.</p>'
        f'<div class="exhibit-controls" hidden="hidden">{controls}</div>'
        f"{data_script(data)}{below(exhibit.caption)}</figure>"
    )


def _plain(name: str, value: Any) -> Any:
    """Turn a part of the state into what JSON has."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return list(value)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(f"state[{name!r}] must be finite numbers or texts")
    flat = [float(f"{x:.{_DIGITS}g}") for x in array.ravel().tolist()]
    short = [int(x) if x.is_integer() and abs(x) < 2**53 else x for x in flat]
    return short if array.ndim else short[0]
