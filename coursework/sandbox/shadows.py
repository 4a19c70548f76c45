"""Stand-ins for modules that are off limits: they can be imported and not be called.

The files of whole packages and of modules of ``lib`` are not in the sandbox, so nothing
is behind their stand-ins that could be reached around them. A part of another package,
such as ``scipy.special``, has to stay for the rest of it, and is only hidden.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn


class OffLimits(RuntimeError):
    """A call of what is off limits here."""


def _used(self: Shadow, *args: Any, **kwargs: Any) -> NoReturn:
    name, called = self.__dict__["_shadow"]
    called.append(name)
    raise OffLimits(f"{name} is off limits here")


class Shadow:
    """An attribute of a module that is off limits."""

    def __init__(self, name: str, called: list[str]):
        self.__dict__["_shadow"] = name, called

    def __getattr__(self, name: str) -> Shadow:
        if name.startswith("__") or name.startswith("_ipython_"):
            raise AttributeError(name)
        whole, called = self.__dict__["_shadow"]
        return Shadow(f"{whole}.{name}", called)

    def __repr__(self) -> str:
        return f"<{self.__dict__['_shadow'][0]}, off limits here>"

    __call__ = __iter__ = __getitem__ = __len__ = __float__ = __int__ = _used
    __array__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = _used
    __truediv__ = __rtruediv__ = __pow__ = __matmul__ = __rmatmul__ = __neg__ = _used


class Finder(MetaPathFinder, Loader):
    """Finds a stand-in for each module of ``names`` and below; lists what is called."""

    def __init__(self, names: Sequence[str], called: list[str]):
        self._names, self._called = tuple(names), called

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        """The stand-in for a module that is off limits."""
        if is_off(fullname, self._names):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module whose every attribute is a stand-in."""
        called = self._called

        class Module(ModuleType):
            def __getattr__(self, name: str) -> Shadow:
                if name.startswith("__"):
                    raise AttributeError(name)
                return Shadow(f"{self.__name__}.{name}", called)

        return Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""


def is_off(module: str, off_limits: Sequence[str]) -> bool:
    """Tell whether a module is one of those, or below one; the checks always stay."""
    if module in ("lib", "lib.coursework"):
        return False
    return any(f"{module}.".startswith(f"{name}.") for name in off_limits)


def removable(name: str) -> bool:
    """Tell whether a module can be taken away altogether: nothing else needs it."""
    return name.split(".")[0] == "lib" or "." not in name


def install(off_limits: Sequence[str]) -> list[str]:
    """Stand-ins from now on; returns the list of what is called of them."""
    called: list[str] = []
    names = tuple(off_limits)
    for name in (n for n in names if not removable(n)):
        _import_others(name)
    for module in [m for m in sys.modules if is_off(m, names)]:
        del sys.modules[module]
    sys.meta_path.insert(0, Finder(names, called))
    for name in (n for n in names if not removable(n)):
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, importlib.import_module(name))
    return called


def _import_others(name: str) -> None:
    """Import the modules of a package, which may need the one that will be hidden."""
    top = importlib.import_module(name.partition(".")[0])
    for module in pkgutil.iter_modules(top.__path__):
        if not module.name.startswith(("_", "conftest")):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{top.__name__}.{module.name}")
