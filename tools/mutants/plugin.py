"""A pytest plugin: which lines a test executes, and whether tests notice a mutant.

``--lines-to FILE`` writes the lines of ``lib`` that each test executes, and its
processor time. ``--judge FILE`` runs the tests named there in their order, each within
a limit of processor time of its own.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: Contexts of lines that no test has for itself.
IMPORT, COLLECTION = "import", "collection"
MEMORY = 8 << 30  # bytes of addresses: a mutant that asks for more meets MemoryError
IMPORTS = 120  # seconds of the processor that pytest and the modules may take


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lines-to", type=Path, help="where the lines of tests go")
    parser.addoption("--judge", type=Path, help="JSON: tests, limits, where to say")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before anything imports ``lib``, which may be what does not end."""
    if early_config.known_args_namespace.judge:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        limit_processor(IMPORTS)


def limit_processor(seconds: float) -> None:
    """End this process, by a signal, after so many more seconds of the processor."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, most))


def pytest_configure(config: pytest.Config) -> None:
    import lib

    here = Path.cwd()
    if not Path(lib.__file__).is_relative_to(here):
        raise pytest.UsageError(f"lib is imported from elsewhere than {here}")
    _same_examples()
    if target := config.getoption("--lines-to"):
        config.pluginmanager.register(Lines(target, here))
    if asked := config.getoption("--judge"):
        config.pluginmanager.register(Judge(json.loads(asked.read_text("utf-8"))))


def _same_examples() -> None:
    """Let hypothesis draw the same examples each time, and shrink none."""
    from hypothesis import Phase, settings

    phases = [Phase.explicit, Phase.generate]
    settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, deadline=None
    )
    settings.load_profile("mutants")


class Lines:
    """Lines of ``lib`` by test, with those of the fixtures that tests share."""

    def __init__(self, target: Path, root: Path):
        from coverage import Coverage

        self.target, self.root = target, root
        self.tests: dict[str, dict[str, Any]] = {}
        self.fixtures: dict[str, list[str]] = {}
        self.context = COLLECTION
        self.coverage = Coverage(
            data_file=None, config_file=False, source=[str(root / "lib")]
        )
        self.coverage.start()
        self.coverage.switch_context(IMPORT)
        for path in sorted((root / "lib").rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if not {"figures", "exhibits"} & {*parts}:
                importlib.import_module(".".join(parts).removesuffix(".__init__"))
        self.coverage.switch_context(COLLECTION)
        # What one test has left there, the next one does not compute.
        self.caches = [
            each
            for each in gc.get_objects()
            if isinstance(each, functools._lru_cache_wrapper)
            and str(getattr(each, "__module__", "")).startswith("lib.")
        ]

    def switch(self, context: str) -> None:
        self.context = context
        self.coverage.switch_context(context)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for cache in self.caches:
            cache.cache_clear()
        self.switch(item.nodeid)
        self.fixtures[item.nodeid] = [
            f"fixture {name}" for name in getattr(item, "fixturenames", ())
        ]
        start = time.process_time()
        yield
        seconds = round(time.process_time() - start, 3)
        self.tests[item.nodeid] = {"seconds": seconds}
        self.switch(COLLECTION)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before = self.context
        if fixturedef.scope != "function":
            self.switch(f"fixture {fixturedef.argname}")
        yield
        self.switch(before)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines: dict[str, dict[str, list[int]]] = {}
        for file in data.measured_files():
            name = Path(file).relative_to(self.root).as_posix()
            for line, contexts in sorted(data.contexts_by_lineno(file).items()):
                for context in contexts:
                    lines.setdefault(context, {}).setdefault(name, []).append(line)
        for test, traced in self.tests.items():
            traced["lines"] = _joined(
                lines.get(each, {}) for each in [COLLECTION, test, *self.fixtures[test]]
            )
        content = {"import": lines.get(IMPORT, {}), "tests": self.tests}
        self.target.write_text(json.dumps(content), "utf-8")


def _joined(parts: Any) -> dict[str, list[int]]:
    """Lines by file of several contexts together."""
    joined: dict[str, set[int]] = {}
    for part in parts:
        for file, lines in part.items():
            joined.setdefault(file, set()).update(lines)
    return {file: sorted(lines) for file, lines in joined.items()}


class Judge:
    """The tests that are asked, in the order asked; what runs is said beforehand."""

    def __init__(self, asked: dict[str, Any]):
        self.limits: dict[str, float] = dict(asked["tests"])
        self.said = Path(asked["said"])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self.limits if name in by_name]

    @pytest.hookimpl(tryfirst=True, hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A test beyond its limit ends the process, which says that it hung."""
        self.said.write_text(item.nodeid, "utf-8")
        limit_processor(self.limits[item.nodeid])
        yield
