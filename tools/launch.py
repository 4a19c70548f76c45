"""Ways to run a page: Binder, Colab, and the first cell of a downloaded notebook.

The public addresses stand in pyproject.toml alone. Where one is not known, whatever
needs it is absent.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any
from urllib.parse import urlsplit

from tools.command import ROOT, PipelineError

BRANCH = "main"
# Where the deployment puts the notebooks in plain Markdown, which Colab shows as the
# site does. Those of the main branch are MyST, for a program that can read it.
PLAIN_BRANCH = "notebooks"
BINDER, COLAB = "https://mybinder.org", "https://colab.research.google.com"
# The only forge that Colab opens notebooks from.
GITHUB = re.compile(r"https://github\.com/(?P<name>[\w.-]+/[\w.-]+?)/?")
PYPI = re.compile(r"https://pypi\.org/project/(?P<name>[\w.-]+?)/?")
# Who finds no package has a clone around the notebook, a wheel beside it, or neither.
SETUP = """\
import sys
from importlib.util import find_spec
from pathlib import Path

sys.path += [str(p) for p in Path.cwd().parents if (p / "lib/claims.py").is_file()]
package, problem = find_spec("lib"), None
if package is None:
    install = "{install}"
    for wheel in Path.cwd().glob("{wheels}"):
        install = f"run %pip install {{wheel.name}} in a cell"
    problem = f"this notebook needs the package of the book: {{install}}"
elif not (package.submodule_search_locations and find_spec("lib.claims")):
    other = package.origin or [*package.submodule_search_locations][0]
    problem = f"another lib hides the package of the book: rename {{other}}"
if problem:
    error = ImportError(problem)
    error._render_traceback_ = lambda: [f"ImportError: {{problem}}"]
    raise error"""


def project(pyproject: str | None = None) -> dict[str, Any]:
    """The table ``[project]`` of pyproject.toml."""
    if pyproject is None:
        pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    table: dict[str, Any] = tomllib.loads(pyproject)["project"]
    return table


def project_url(name: str, pyproject: str | None = None) -> str | None:
    """An address from ``[project.urls]``; None while it is not there."""
    address: str | None = project(pyproject).get("urls", {}).get(name)
    return address


def public_address(pyproject: str | None = None) -> str | None:
    """Return the address of the site, with a slash at its end; None without one."""
    address = project_url("Homepage", pyproject)
    if address is None:
        return None
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"Homepage in pyproject.toml is no https address: {address!r}")
    return f"{address.rstrip('/')}/"


def base_path(address: str | None) -> str:
    """Path under which the site is served: that of its address, or the root."""
    return urlsplit(address).path if address else "/"


def _name_in(pattern: re.Pattern[str], url: str, where: str, text: str | None) -> Any:
    address = project_url(url, text)
    if address is None:
        return None
    if not (match := pattern.fullmatch(address)):
        raise ValueError(
            f"{url} in pyproject.toml is no address on {where}: {address!r}"
        )
    return match["name"]


def repository(pyproject: str | None = None) -> str | None:
    """``owner/name`` of the repository on GitHub; None while there is none."""
    name = _name_in(GITHUB, "Repository", "GitHub", pyproject)
    return name and name.removesuffix(".git")


def wheels(pyproject: str | None = None) -> str:
    """Pattern of the names that the package has as a wheel."""
    return project(pyproject)["name"].replace("-", "_") + "-*.whl"


def wheel_name(pyproject: str | None = None) -> str:
    """The name of the wheel of this version."""
    version = project(pyproject)["version"]
    return wheels(pyproject).replace("-*.", f"-{version}-py3-none-any.")


def published(pyproject: str | None = None) -> str | None:
    """Return the best that pip can install the package from; None where nothing is.

    The package index, the wheel that stands on the site, or the repository.
    """
    if name := _name_in(PYPI, "PyPI", "PyPI", pyproject):
        return str(name)
    if site := project_url("Homepage", pyproject):
        return f"{site.rstrip('/')}/{wheel_name(pyproject)}"
    if name := repository(pyproject):
        return f"git+https://github.com/{name}"
    return None


def theme_options(name: str | None) -> dict[str, Any]:
    """Make the theme put launch buttons on the pages that are notebooks."""
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


def open_plain(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Lead the button for Colab, which the theme made, to the plain notebook."""
    offered = app.config.html_theme_options.get("launch_buttons", {}).get("colab_url")
    if not offered or "kernelspec" not in app.env.metadata.get(page, {}):
        return
    groups = [group.get("buttons", ()) for group in context["header_buttons"]]
    buttons = [button for group in groups for button in group]
    start, here = f"{COLAB}/", f"/blob/{BRANCH}/"
    colab = [each for each in buttons if each.get("url", "").startswith(start)]
    if [each["url"].count(here) for each in colab] != [1]:
        raise PipelineError(f"{page}: its one button for Colab should lead to {here}")
    colab[0]["url"] = colab[0]["url"].replace(here, f"/blob/{PLAIN_BRANCH}/")


def setup_cell(pyproject: str | None = None) -> str:
    """The first cell of a notebook, which says what to do where ``lib`` is missing."""
    return SETUP.format(wheels=wheels(pyproject), install=install_line(pyproject))


def install_line(pyproject: str | None = None) -> str:
    """Say what to do where there is neither a clone nor a wheel."""
    if place := published(pyproject):
        return f"run %pip install {place} in a cell"
    return (
        f"put the file {wheels(pyproject)}, which the page 'Running the book' offers,"
        " beside this notebook and run this cell again, or run %pip install PATH in a"
        " cell, where PATH is the folder of the book"
    )
