"""Pictures that a reader moves: stored ones, and widgets in a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from functools import cached_property
from typing import Any

from lib.figures import widgets
from lib.figures.book_figure import BookFigure
from lib.figures.markup import stored_forms


class Moving(ABC):
    """Frames of which one opens; the text form is its description."""

    frames: tuple[BookFigure, ...]

    @property
    def opening(self) -> BookFigure:
        """The frame that is shown at first, stored and printed."""
        return self.frames[0]

    @abstractmethod
    def _static_form(self) -> str:
        """Return HTML that a script of the page brings to life."""

    @abstractmethod
    def widget(self) -> Any:
        """Return the live form in a kernel."""

    def __repr__(self) -> str:
        return self.opening.alt

    @cached_property
    def html(self) -> str:
        """The static form, made once."""
        return self._static_form()

    def _repr_html_(self) -> str:
        return self.html

    def _repr_mimebundle_(
        self,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
    ) -> dict[str, Any]:
        first = self.opening
        forms = stored_forms(self.html, first.alt, first._still, include, exclude)
        live = self.widget()._repr_mimebundle_() if widgets.in_kernel() else {}
        view = {k: v for k, v in live.items() if k.startswith("application/")}
        return view | forms
