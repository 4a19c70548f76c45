"""One drawing function, two lives: sliders on a static page, widgets in a kernel."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import product
from typing import Any

from lib.figures import widgets
from lib.figures.book_figure import BookFigure
from lib.figures.markup import below, digest, image, picture, stored_forms
from lib.figures.stops import between, checked_stops, labels, numeric, place
from lib.figures.svg import merge, own_ids

#: Largest static form of one explorer, in bytes, before compression.
BUDGET = 250_000
# What arguments of explore say that are none of the drawing function.
_ROLES = {
    "continuous": "whether sliders move between the stops",
    "paper": "which positions are printed",
}


@dataclass(frozen=True)
class Explorer:
    """Frames of a figure over a grid of values, from ``explore`` or ``animate``."""

    draw: Callable[..., BookFigure]
    values: dict[str, tuple[Any, ...]]
    frames: tuple[BookFigure, ...]
    plays: bool = False
    continuous: bool = False
    paper: tuple[tuple[int, ...], ...] = ()

    def __repr__(self) -> str:
        return self.frames[0].alt

    @cached_property
    def html(self) -> str:
        """The static form, made once."""
        return _static_form(self)

    def _repr_html_(self) -> str:
        return self.html

    def _repr_mimebundle_(
        self,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
    ) -> dict[str, Any]:
        first = self.frames[0]
        forms = stored_forms(self.html, first.alt, first._still, include, exclude)
        live = self.widget()._repr_mimebundle_() if widgets.in_kernel() else {}
        view = {k: v for k, v in live.items() if k.startswith("application/")}
        return view | forms

    def widget(self) -> Any:
        """The live form: ipywidgets around the same ``draw``.

        Selection sliders over the stops; where the explorer is continuous, lists of
        numbers become continuous sliders, logarithmic where they are nearly geometric.
        """
        return widgets.live_form(
            self.values,
            self.frames[0]._repr_html_(),
            lambda point: _frame(self.draw, point)._repr_html_(),
            continuous=self.continuous,
            plays=self.plays,
        )


def explore(
    draw: Callable[..., BookFigure],
    *,
    continuous: bool = False,
    paper: Sequence[Mapping[str, Any]] = (),
    **values: Sequence[Any],
) -> Explorer:
    """Let the reader move the arguments of a drawing function.

    On the static site: one range input for each argument over frames drawn here,
    stored as the first frame and what changes from it. In a live kernel: widgets
    around the same function. What it raises there stands in the place of the picture.

    Parameters
    ----------
    draw : callable
        Pure function of the named values that returns ``figure(...)``.
    continuous : bool
        Whether ``draw`` can draw every number between the stops: then the sliders of
        a kernel offer them, and one is tried here. By default they offer the stops.
    paper : sequence of mappings, optional
        Positions that make the point, each a stop of every argument: the printed book
        has their frames beside each other. By default these are the first, the middle
        and the last stop of the argument with the most.
    **values : sequence
        Stops of each argument, at least two and distinct; the first is shown at first.

    Returns
    -------
    Explorer
        Its ``_repr_html_()`` is the static form.

    Raises
    ------
    ValueError
        Without values or with stops that repeat, when ``draw`` raises, returns
        something else than a figure or differs between two calls, or beyond 250 kB.
    """
    return _explorer(draw, values, continuous, plays=False, paper=paper)


def animate(
    draw: Callable[..., BookFigure],
    *,
    continuous: bool = False,
    **values: Sequence[Any],
) -> Explorer:
    """Let one argument of a drawing function run through its stops by itself.

    As :func:`explore` for one argument, with a button that plays and pauses. On the
    static site it starts when it comes into view, unless the reader asked the system
    for less motion.

    Parameters
    ----------
    draw : callable
        Pure function of the named value that returns ``figure(...)``.
    continuous : bool
        As for :func:`explore`; the button stays with the stops.
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
    return _explorer(draw, values, continuous, plays=True)


def _explorer(
    draw: Callable[..., BookFigure],
    values: dict[str, Sequence[Any]],
    continuous: bool,
    plays: bool,
    paper: Sequence[Mapping[str, Any]] = (),
) -> Explorer:
    """The frames at all combinations of the values, checked."""
    _require_drawing(draw, continuous)
    if not values:
        raise ValueError(
            "values are missing: name at least one argument with its stops"
        )
    stops = {
        name: checked_stops(name, given, continuous) for name, given in values.items()
    }
    grid = [dict(zip(stops, point, strict=True)) for point in product(*stops.values())]
    frames = [replace(_frame(draw, point), source=None) for point in grid]
    if continuous:
        _require_continuity(draw, stops)
    # Last, so that its source is as drawn even where draw has one figure for all.
    first = _frame(draw, grid[0])
    if first != frames[0]:
        raise ValueError(f"draw is impure: two calls differ at {place(grid[0])}")
    explorer = Explorer(
        draw, stops, (first, *frames[1:]), plays, continuous, _positions(paper, stops)
    )
    size = len(explorer.html.encode())
    if size > BUDGET:
        raise ValueError(
            f"values give {len(frames)} frames of {size} bytes in all, more than the"
            f" {BUDGET} of one explorer: use fewer stops or simpler frames"
        )
    return explorer


def _require_drawing(draw: Callable[..., BookFigure], continuous: bool) -> None:
    """Raise ValueError unless the two say what to draw and how it moves."""
    if not callable(draw):
        raise ValueError(f"draw must be a function, got {draw!r}")
    if not isinstance(continuous, bool):
        raise ValueError(
            "continuous must be True or False, whether sliders move between the stops,"
            f" got {continuous!r}"
        )
    try:
        names = inspect.signature(draw).parameters
    except (TypeError, ValueError):  # some builtins have none
        return
    for name, role in _ROLES.items():
        if name in names:
            raise ValueError(
                f"draw has an argument named {name}, which no slider can move, since"
                f" it says {role}: rename it"
            )


def _positions(
    paper: Sequence[Mapping[str, Any]], stops: dict[str, tuple[Any, ...]]
) -> tuple[tuple[int, ...], ...]:
    """Indices of the stops of some positions; ValueError for what is none."""
    if not isinstance(paper, list | tuple):
        raise ValueError(f"paper must be a list of positions, got {paper!r}")
    for position in paper:
        if not isinstance(position, Mapping) or set(position) != set(stops):
            raise ValueError(
                f"paper must give a stop of {', '.join(stops)} in each position,"
                f" got {position!r}"
            )
        for name, value in position.items():
            if value not in stops[name]:
                raise ValueError(
                    f"paper has {name} = {value!r}, which is no stop: there are"
                    f" {', '.join(map(repr, stops[name]))}"
                )
    return tuple(
        tuple(each.index(position[name]) for name, each in stops.items())
        for position in paper
    )


def _require_continuity(
    draw: Callable[..., BookFigure], stops: dict[str, tuple[Any, ...]]
) -> None:
    """Raise ValueError unless there are numbers, and draw can draw between them."""
    if not any(numeric(each) for each in stops.values()):
        raise ValueError(
            "continuous=True needs an argument whose stops are numbers, got"
            f" {', '.join(stops)}"
        )
    try:
        _frame(draw, {name: between(each) for name, each in stops.items()})
    except ValueError as error:
        raise ValueError(
            f"{error}, which is between the stops: let draw compute every value, or"
            " leave out continuous=True"
        ) from error


def _frame(draw: Callable[..., BookFigure], point: dict[str, Any]) -> BookFigure:
    """What is drawn at a point; what goes wrong, in one sentence that names it."""
    try:
        frame = draw(**point)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
        said = f"{said[:200]}…" if len(said) > 200 else said
        raise ValueError(f"draw raised {said} at {place(point)}") from error
    if not isinstance(frame, BookFigure):
        kind = type(frame).__name__
        raise ValueError(f"draw must return figure(...), got {kind} at {place(point)}")
    return frame


def _static_form(explorer: Explorer) -> str:
    """HTML that the page's explorer.mjs brings to life; without it, the first frame."""
    frames = explorer.frames
    key = digest(*(frame.svg for frame in frames), explorer.values)
    merged = merge([frame.svg for frame in frames])
    if merged is not None:
        first, slots, rows = merged
    else:  # frames built of different elements: each one whole
        first, slots = frames[0].svg, []
        rows = [[image(frame.svg, frame.alt)] for frame in frames]
    shown = {name: labels(stops) for name, stops in explorer.values.items()}
    data = {
        "slots": slots,
        "frames": [[_owned(value, key) for value in row] for row in rows],
        "alt": [frame.alt for frame in frames],
        "stops": [*shown.values()],
    }
    if explorer.paper:
        data["paper"] = explorer.paper
    # A closing tag, or the start of a comment, would change where the script ends.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("</", "<\\/").replace("<!", "<\\u0021")
    sliders = "".join(
        _slider(f"{key}-s{number}", *item) for number, item in enumerate(shown.items())
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


def _slider(key: str, name: str, shown: list[str]) -> str:
    label, first = escape(name.replace("_", " ")), escape(shown[0])
    return (
        f'<label for="{key}">{label}</label>'
        f'<input type="range" id="{key}" min="0" max="{len(shown) - 1}" step="1"'
        f' value="0" aria-valuetext="{first}">'
        f'<output for="{key}">{first}</output>'
    )
