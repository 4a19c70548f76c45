"""Controls of a live exhibit: sliders over a range, choices among a few."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from lib.core.checks import require_flag, require_number, require_within


@dataclass(frozen=True)
class Slider:
    """A slider over every number from ``low`` to ``high``, or every whole one.

    On a logarithmic one equal ways are equal ratios; with ``zero`` its lower end is 0.
    """

    label: str
    low: float
    high: float
    start: float
    log: bool = False
    zero: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label.strip():
            raise ValueError(f"label must be a text, got {self.label!r}")
        for name in ("log", "zero", "whole"):
            require_flag(name, getattr(self, name))
        low, high, start = (
            require_number(n, getattr(self, n)) for n in ("low", "high", "start")
        )
        # Numbers of other kinds become those that JSON and widgets know.
        for name, number in (("low", low), ("high", high), ("start", start)):
            object.__setattr__(self, name, number)
        if not low < high:
            raise ValueError(f"low must be less than high, got {low!r} and {high!r}")
        if self.log and low <= 0:
            raise ValueError(f"low must be positive where log=True, got {low!r}")
        if self.zero and not self.log:
            raise ValueError("zero=True needs log=True: else let low be 0")
        require_within("start", self.start, 0.0 if self.zero else low, high)

    def at(self, place: float) -> float:
        """Return the value at a place between the ends, from 0 to 1."""
        place = require_within("place", place, 0, 1)
        if self.zero and place <= 0:
            return 0.0
        if not self.log:
            value = self.low + (self.high - self.low) * place
        else:
            value = self.low * (self.high / self.low) ** place
        return float(round(value)) if self.whole else value

    def place(self, value: float) -> float:
        """Return the place of a value between the ends, from 0 to 1."""
        require_within("value", value, 0 if self.zero else self.low, self.high)
        if self.zero and value <= 0:
            return 0.0
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def described(self) -> dict[str, Any]:
        """Return what a script of the site needs to know."""
        return {"kind": "slider", **asdict(self)}

    def html(self, key: str) -> str:
        """Write the control as it is before a script gives it life."""
        return (
            f'<label for="{key}">{escape(self.label)}</label>'
            f'<input type="range" id="{key}" min="0" max="1" step="any"'
            f' value="{self.place(self.start):.6g}"'
            f' aria-valuetext="{self.start:.4g}">'
            f'<output for="{key}">{self.start:.4g}</output>'
        )

    def widget(self) -> Any:
        """Return the widget that it is in a kernel."""
        import ipywidgets

        common = {"description": self.label, "tooltip": self.label}
        if self.whole:
            return ipywidgets.IntSlider(
                int(self.start), min=int(self.low), max=int(self.high), **common
            )
        if self.zero or not self.log:
            # A logarithmic slider of ipywidgets has no 0.
            low = 0.0 if self.zero else self.low
            step = (self.high - low) / 1000
            return ipywidgets.FloatSlider(
                self.start, min=low, max=self.high, step=step, **common
            )
        bounds = {"min": math.log10(self.low), "max": math.log10(self.high)}
        return ipywidgets.FloatLogSlider(
            self.start, base=10, step=0.001, readout_format=".3g", **bounds, **common
        )


@dataclass(frozen=True)
class Choice:
    """Buttons for a few numbers with names, of which one is chosen."""

    label: str
    options: dict[str, float]
    start: float

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label.strip():
            raise ValueError(f"label must be a text, got {self.label!r}")
        if not isinstance(self.options, dict) or len(self.options) < 2:
            raise ValueError(
                f"options must map at least two names to numbers, got {self.options!r}"
            )
        numbers = {}
        for name, value in self.options.items():
            if not isinstance(name, str):
                raise ValueError(f"options must have texts as names, got {name!r}")
            numbers[name] = require_number(f"options[{name!r}]", value)
        object.__setattr__(self, "options", numbers)
        object.__setattr__(self, "start", require_number("start", self.start))
        if self.start not in numbers.values():
            raise ValueError(f"start must be one of the options, got {self.start!r}")

    def described(self) -> dict[str, Any]:
        """Return what a script of the site needs to know."""
        return {"kind": "choice", "start": self.start, **asdict(self)}

    def html(self, key: str) -> str:
        """Write the control as it is before a script gives it life."""
        buttons = "".join(
            f'<label><input type="radio" name="{key}" value="{value:g}"'
            f"{' checked' if value == self.start else ''}> {escape(name)}</label>"
            for name, value in self.options.items()
        )
        return (
            f'<fieldset class="exhibit-choice"><legend>{escape(self.label)}</legend>'
            f"<div>{buttons}</div></fieldset>"
        )

    def widget(self) -> Any:
        """Return the widget that it is in a kernel."""
        import ipywidgets

        return ipywidgets.ToggleButtons(
            options=list(self.options.items()),
            value=self.start,
            description=self.label,
            tooltips=[self.label] * len(self.options),
        )


Control = Slider | Choice


def starts(controls: Mapping[str, Control]) -> dict[str, float]:
    """Return the value at which each control opens."""
    return {name: each.start for name, each in controls.items()}
