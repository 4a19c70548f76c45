"""Settings of the site that Jupyter Book does not pass on."""

from types import SimpleNamespace

import pytest

from tools.command import PipelineError
from tools.site.extension import drop_thebe


def listener(module):
    handler = SimpleNamespace(__module__=module)
    return SimpleNamespace(handler=handler)


def test_sphinx_thebe_is_dropped_and_nothing_else():
    ours, theirs = listener("tools.site.head"), listener("sphinx_thebe")
    events = {"build-finished": [ours], "doctree-resolved": [theirs, ours]}
    styles = [("sphinx-thebe.css", {}), ("book.css", {})]
    drop_thebe(events, styles)
    assert events == {"build-finished": [ours], "doctree-resolved": [ours]}
    assert styles == [("book.css", {})]


@pytest.mark.parametrize(
    ("module", "style", "what"),
    [("thebe", "sphinx-thebe.css", "listener"), ("sphinx_thebe", "x.css", "style")],
)
def test_where_there_is_nothing_to_drop_the_build_stops(module, style, what):
    with pytest.raises(PipelineError, match=f"sphinx_thebe has no {what} to drop"):
        drop_thebe({"doctree-resolved": [listener(module)]}, [(style, {})])
