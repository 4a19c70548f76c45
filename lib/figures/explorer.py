"""One drawing function, two lives: sliders on a static page, widgets in a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import product
from typing import Any

import numpy as np

from lib.figures import widgets
from lib.figures.book_figure import BookFigure
from lib.figures.markup import below, data_script, digest, image, picture
from lib.figures.moving import Moving
from lib.figures.stops import between, checked_stops, labels, numeric, place, spelled
from lib.figures.svg import merge, own_ids

#: Largest static form of one explorer, in bytes, before compression.
BUDGET = 250_000
# What arguments of explore say that are none of the drawing function.
_ROLES = {
    "continuous": "whether sliders move between the stops",
    "start": "where sliders stand at first",
    "paper": "which positions are printed",
}


@dataclass(frozen=True, repr=False)
class Explorer(Moving):
    """Frames of a figure over a grid of values, from :func:`explore`."""

    draw: Callable[..., BookFigure]
    values: dict[str, tuple[Any, ...]]
    frames: tuple[BookFigure, ...]
    continuous: bool = False
    opens: int = 0
    paper: tuple[tuple[int, ...], ...] = ()

    @property
    def opening(self) -> BookFigure:
        """The frame at the start."""
        return self.frames[self.opens]

    @property
    def starts(self) -> dict[str, int]:
        """For each argument the number of its stop at first."""
        sizes = [len(stops) for stops in self.values.values()]
        places = map(int, np.unravel_index(self.opens, sizes))
        return dict(zip(self.values, places, strict=True))

    def _static_form(self) -> str:
        return _static_form(self)

    def widget(self) -> Any:
        """The live form: ipywidgets around the same ``draw``.

        Selection sliders over the stops; where the explorer is continuous, lists of
        numbers become continuous sliders, logarithmic where they are nearly geometric.
        """
        return widgets.live_form(
            self.values,
            self.starts,
            self.opening._repr_html_(),
            lambda point: _frame(self.draw, point)._repr_html_(),
            continuous=self.continuous,
        )


def explore(
    draw: Callable[..., BookFigure],
    *,
    continuous: bool = False,
    start: Mapping[str, Any] | None = None,
    paper: Sequence[Mapping[str, Any]] = (),
    **values: Sequence[Any],
) -> Explorer:
    """Let the reader move the arguments of a drawing function.

    On the static site: one range input for each argument over frames drawn here,
    stored as the frame shown at first and what changes from it. In a live kernel:
    widgets around the same function. What it raises there stands in the place of the
    picture.

    Parameters
    ----------
    draw : callable
        Pure function of the named values that returns ``figure(...)``.
    continuous : bool
        Whether ``draw`` can draw every number between the stops: then the sliders of
        a kernel offer them, and one is tried here. By default they offer the stops.
    start : mapping of str to stop, optional
        Where arguments stand at first: choose a state that makes the point. By default
        an argument starts at its first stop.
    paper : sequence of mappings, optional
        Positions that make the point, each a stop of every argument: the printed book
        has their frames beside each other. By default these are the first, the middle
        and the last stop of the argument with the most.
    **values : sequence
        Stops of each argument, at least two and distinct.

    Returns
    -------
    Explorer
        Its ``_repr_html_()`` is the static form.

    Raises
    ------
    ValueError
        Without values or with stops that repeat, for a start that is no stop, when
        ``draw`` raises, returns something else than a figure or differs between two
        calls, or beyond 250 kB.
    """
    _require_drawing(draw, continuous)
    if not values:
        raise ValueError(
            "values are missing: name at least one argument with its stops"
        )
    stops = {
        name: checked_stops(name, given, continuous) for name, given in values.items()
    }
    grid = [dict(zip(stops, point, strict=True)) for point in product(*stops.values())]
    opens = grid.index(_opening(stops, start))
    frames = [replace(_frame(draw, point), source=None) for point in grid]
    if continuous:
        _require_continuity(draw, stops)
    # Last, so that its source is as drawn even where draw has one figure for all.
    first = _frame(draw, grid[opens])
    if first != frames[opens]:
        raise ValueError(f"draw is impure: two calls differ at {place(grid[opens])}")
    frames[opens] = first
    explorer = Explorer(
        draw, stops, tuple(frames), continuous, opens, _positions(paper, stops)
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


def _opening(
    stops: dict[str, tuple[Any, ...]], start: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The stops at first; ValueError for a start that is none."""
    if not isinstance(start, Mapping | None):
        raise ValueError(f"start must map names to stops, got {start!r}")
    opening = {name: each[0] for name, each in stops.items()}
    for name, value in (start or {}).items():
        if name not in stops:
            raise ValueError(f"start names {name!r}, which is none of {[*stops]}")
        if value not in stops[name]:
            raise ValueError(
                f"start[{name!r}] must be one of its stops {[*stops[name]]},"
                f" got {value!r}"
            )
        opening[name] = value
    return opening


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
    """Draw at a point; say in one sentence that names it what goes wrong there."""
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
    """Write HTML for explorer.mjs; where that does not run, the opening stands."""
    frames, opens = explorer.frames, explorer.opens
    key = digest(*(frame.svg for frame in frames), explorer.values, opens)
    # The frame that is shown at first is the one that the others are written into.
    turned = [frame.svg for frame in (*frames[opens:], *frames[:opens])]
    merged = merge(turned)
    if merged is not None:
        first, slots, rows = merged
        rows = rows[len(frames) - opens :] + rows[: len(frames) - opens]
    else:  # frames built of different elements: each one whole
        first, slots = frames[opens].svg, []
        rows = [[image(frame.svg, frame.alt)] for frame in frames]
    shown = {name: labels(stops) for name, stops in explorer.values.items()}
    data = {
        "slots": slots,
        "frames": [[_with_own_ids(value, key) for value in row] for row in rows],
        "alt": [frame.alt for frame in frames],
        "stops": [*shown.values()],
    }
    captions = [frame.caption for frame in frames]
    if len({*captions}) > 1:
        data["captions"] = captions
    if explorer.paper:
        data["paper"] = explorer.paper
    sliders = "".join(
        _slider(f"{key}-s{number}", *item, explorer.starts[item[0]])
        for number, item in enumerate(shown.items())
    )
    return (
        f'<figure class="book-figure book-explorer">'
        f"{picture(own_ids(first, key), explorer.opening.alt)}"
        f'<div class="explorer-controls" hidden="hidden">{sliders}</div>'
        f"{data_script(data)}{below(explorer.opening.caption, 'captions' in data)}"
        "</figure>"
    )


def _with_own_ids(value: str, key: str) -> str:
    """Name this explorer in what a slot's value refers to."""
    return f"#{key}-{value[1:]}" if value.startswith("#") else own_ids(value, key)


def _slider(key: str, name: str, shown: list[str], at: int) -> str:
    label, first = escape(spelled(name)), escape(shown[at])
    return (
        f'<label for="{key}">{label}</label>'
        f'<input type="range" id="{key}" min="0" max="{len(shown) - 1}" step="1"'
        f' value="{at}" aria-valuetext="{first}">'
        f'<output for="{key}">{first}</output>'
    )
