"""Ways to run a page: Binder, Colab, and the first cell of a downloaded notebook.

The address of the repository stands in pyproject.toml alone. Where it is not known,
whatever needs it is absent.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BRANCH = "main"
BINDER, COLAB = "https://mybinder.org", "https://colab.research.google.com"
# The only forge that Colab opens notebooks from.
GITHUB = re.compile(r"https://github\.com/(?P<name>[\w.-]+/[\w.-]+?)/?")
SETUP = """\
from importlib.util import find_spec

found, install = find_spec("lib"), "{install}"
if found is None:
    raise ImportError(f"this notebook needs the package of the book: {{install}}")
if not (found.submodule_search_locations and find_spec("lib.claims")):
    other = found.origin or [*found.submodule_search_locations][0]
    raise ImportError(f"another lib hides the package of the book: rename {{other}}")"""


def project_url(name: str, pyproject: str | None = None) -> str | None:
    """An address from ``[project.urls]``; None while it is not there."""
    if pyproject is None:
        pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    urls: dict[str, str] = tomllib.loads(pyproject)["project"].get("urls", {})
    return urls.get(name)


def repository(pyproject: str | None = None) -> str | None:
    """``owner/name`` of the repository on GitHub; None while there is none."""
    address = project_url("Repository", pyproject)
    if address is None:
        return None
    if not (found := GITHUB.fullmatch(address)):
        raise ValueError(
            f"Repository in pyproject.toml is no address on GitHub: {address!r}"
        )
    return found["name"].removesuffix(".git")


def theme_options(name: str | None) -> dict[str, Any]:
    """What makes the theme put launch buttons on the pages that are notebooks."""
    if name is None:
        return {}
    return {
        "repository_url": f"https://github.com/{name}",
        "repository_branch": BRANCH,
        "launch_buttons": {
            "notebook_interface": "jupyterlab",
            "binderhub_url": BINDER,
            "colab_url": COLAB,
        },
    }


def setup_cell(name: str | None) -> str:
    """The first cell of a notebook, which says what to do where ``lib`` is missing."""
    return SETUP.format(install=("%" if name else "") + install_line(name))


def install_line(name: str | None) -> str:
    """How to install the package, from GitHub where the repository is known."""
    if name:
        return f"pip install git+https://github.com/{name}"
    return "pip install PATH, the path of a clone of the project"
