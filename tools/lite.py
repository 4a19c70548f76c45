"""Python in the browser beside the site: JupyterLite and Pyodide, all from one host.

    python -m tools.lite [--core]

Nothing is taken unseen. Pyodide comes from the npm registry, against the digest below;
its lock names a digest for every package that it compiles, among them NumPy, SciPy and
Matplotlib, which come from the address that the release is published at. Packages in
pure Python come from the package index, against the digests of tools/lite-wheels.lock.
Whatever does not fit stops the build with a sentence. ``--core`` leaves the compiled
packages out, for a machine that reaches registries only.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import posixpath
import shutil
import subprocess
import tarfile
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tools import environment
from tools.command import ROOT, PipelineError, run_main
from tools.serve import LITE, build
from tools.site.finish import set_policy
from tools.site.live_page import SUFFIX, offered
from tools.site.markup import one, parsed
from tools.texts import texts
from tools.wheel import build as build_wheel

VERSION = "314.0.6"  # the one that jupyterlite-pyodide-kernel in tools/lite.lock is for
INTEGRITY = (  # of the npm registry: SHA-512 of the package, in base 64
    "BKDTJyIqFxC4BExLqeRS3f5xvXZIjOt8C3zGLN/Cc7tFxSwvKVhVkchQQ2AGLOtR4YrVOIFxbV8poyDOOmWwxQ=="
)
RELEASE = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
COMPILED = ("contourpy", "kiwisolver", "matplotlib", "numpy", "pillow", "scipy")
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"
BOOK = "attention-in-the-limit"
# What a kernel has before the first cell.
LOADED = (BOOK, "ipython", "comm", "jedi")
ENVIRONMENT, BUILDER = ".venv-lite", "tools/lite.lock"
WHEELS = ROOT / "tools" / "lite-wheels.lock"
MARKERS = {
    "sys_platform": "emscripten", "platform_system": "Emscripten", "os_name": "posix",
    "python_version": "3.14", "python_full_version": "3.14.2", "extra": "",
    "platform_machine": "wasm32", "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}  # fmt: skip
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
# JupyterLite compiles Python to WebAssembly and imports Pyodide by a made function.
SCRIPTS = "'self' 'unsafe-eval' 'wasm-unsafe-eval'"
MORE = (
    "worker-src 'self' blob:",
    "connect-src 'self' data: blob:",
    "font-src 'self' data:",
)


# -- What the browser gets -------------------------------------------------------------


def fetch_core(folder: Path) -> None:
    """Pyodide without packages, by npm, into an empty folder."""
    if shutil.which("npm") is None:
        raise PipelineError("Python in the browser needs npm, which fetches Pyodide")
    command = ["npm", "pack", "--silent", f"pyodide@{VERSION}"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    archive = folder / f"pyodide-{VERSION}.tgz"
    if result.returncode or not archive.exists():
        raise PipelineError(f"npm could not fetch Pyodide: {result.stderr.strip()}")
    unpack_core(archive, folder)
    archive.unlink()


def unpack_core(archive: Path, folder: Path, integrity: str = INTEGRITY) -> None:
    """The files of Pyodide that a browser needs, if the archive is the pinned one."""
    sha512 = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if sha512 != integrity:
        raise PipelineError(f"{archive.name} is not Pyodide {VERSION}: sha512-{sha512}")
    with tarfile.open(archive) as packed:
        for name in (*RUNTIME, LOCK):
            member = packed.extractfile(f"package/{name}")
            assert member is not None, name
            (folder / name).write_bytes(member.read())


def fetch_compiled(folder: Path, release: str = RELEASE) -> None:
    """The compiled packages, each against the digest in the lock of Pyodide."""
    packages = json.loads((folder / LOCK).read_text("utf-8"))["packages"]
    for name in COMPILED:
        file, digest = packages[name]["file_name"], packages[name]["sha256"]
        try:
            with urllib.request.urlopen(release + file, timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            raise PipelineError(f"{release}{file} cannot be fetched: {error}") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise PipelineError(f"{file} is not the one that the lock of Pyodide names")
        (folder / file).write_bytes(content)


def fetch_pure(folder: Path, python: Path) -> None:
    """The wheels of the hashed list, for the Python of Pyodide."""
    command = [
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
    ]
    command += ["--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--python-version", "3.14", "--platform", "any"]
    command += ["--requirement", WHEELS, "--dest", folder]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise PipelineError(f"pip could not fetch {WHEELS.name}: {result.stderr}")


def entry(wheel: Path) -> dict[str, Any]:
    """Describe a wheel in pure Python as the lock of Pyodide describes a package."""
    name, version, *_ = parse_wheel_filename(wheel.name)
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        (path,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(files.read(path).decode())
    needs = map(Requirement, about.get_all("Requires-Dist", []))
    tops = {n.split("/")[0].removesuffix(".py") for n in names if n.endswith(".py")}
    return {
        "name": name,
        "version": str(version),
        "file_name": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
        "imports": sorted(top for top in tops if "." not in top),
        "depends": sorted(
            canonicalize_name(need.name)
            for need in needs
            if need.marker is None or need.marker.evaluate(MARKERS)
        ),
    }


def with_packages(lock: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The lock of Pyodide for the packages that are in a folder, and for no other.

    What a package needs and the folder lacks is left out.
    """
    packages = {
        name: each
        for name, each in lock["packages"].items()
        if (folder / each["file_name"]).is_file()
    }
    for wheel in sorted(folder.glob("*-none-any.whl")):
        made = entry(wheel)
        packages[made["name"]] = made
    for name, each in packages.items():
        depends = [need for need in each["depends"] if need in packages]
        packages[name] = {**each, "depends": depends}
    return {**lock, "packages": packages}


def loaded(lock: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """The packages of these names with all that they need."""
    needed: list[str] = []
    todo = ["micropip", *names]
    while todo:
        name = todo.pop()
        if name in lock["packages"] and name not in needed:
            needed.append(name)
            todo += lock["packages"][name]["depends"]
    return needed


def megabytes(folder: Path, lock: dict[str, Any]) -> int:
    """Count what a kernel loads before its first cell, in whole megabytes."""
    wheels = [lock["packages"][name]["file_name"] for name in loaded(lock, LOADED)]
    return round(sum((folder / n).stat().st_size for n in (*RUNTIME, *wheels)) / 1e6)


# -- The site of JupyterLite -----------------------------------------------------------


def make_lite(pyodide: Path, site: Path, jupyter: Path) -> None:
    """JupyterLite with the notebooks of a site, in a folder of that site."""
    source, target = pyodide.parent / "lite-source", site / LITE
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pyodide, source / "static" / "pyodide")
    for text in texts():
        name = text.relative_to(ROOT).with_suffix(".ipynb")
        (source / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(site / "_sources" / name, source / "files" / name)
    settings = {
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": list(LOADED)},
    }
    config = {"jupyter-config-data": {"litePluginSettings": {KERNEL: settings}}}
    (source / "jupyter-lite.json").write_text(json.dumps(config), "utf-8")
    command = [jupyter, "build", "--lite-dir", source, "--output-dir", target]
    command += ["--contents", source / "files", "--apps", "notebooks", "--apps", "tree"]
    command += ["--no-sourcemaps", "--no-unused-shared-packages", "--no-libarchive"]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if result.returncode:
        print(result.stdout[-3000:] + result.stderr[-3000:])
        raise PipelineError("JupyterLite was not built; its messages are above")
    shutil.rmtree(source)
    for page in target.rglob("*.html"):
        page.write_text(with_its_policy(page.read_text("utf-8")), "utf-8")


def with_its_policy(html: str) -> str:
    """A page of JupyterLite that may compile Python, and load from this host alone."""
    tree = parsed(html)
    set_policy(tree, "a page of JupyterLite", *MORE, scripts=SCRIPTS)
    return str(tree)


def offer(site: Path, size: int) -> None:
    """Show the button on each page with code, and JupyterLite on its live twin."""
    for text in texts():
        name = text.relative_to(ROOT).with_suffix(".ipynb").as_posix()
        twin = (site / name).with_suffix(SUFFIX)
        start = posixpath.relpath(
            f"{LITE}/notebooks/index.html", posixpath.dirname(name)
        )
        tree = parsed(twin.read_text("utf-8"))
        bar = one(tree, twin.name, "a bar", "section.live")
        bar.attrs |= {"data-lite": f"{start}?path={name}", "data-size": str(size)}
        twin.write_text(str(tree), "utf-8")
        page = (site / name).with_suffix(".html")
        page.write_text(offered(page.read_text("utf-8")), "utf-8")


def add_lite(site: Path, pyodide: Path, jupyter: Path) -> int:
    """Python in the browser beside a site; the megabytes that a reader will load."""
    lock = json.loads((pyodide / LOCK).read_text("utf-8"))
    made = with_packages(lock, pyodide)
    (pyodide / LOCK).write_text(json.dumps(made), "utf-8")
    make_lite(pyodide, site, jupyter)
    size = megabytes(pyodide, made)
    offer(site, size)
    return size


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.lite")
    parser.add_argument("--core", action="store_true")
    options = parser.parse_args()
    site = build()
    environment.main(ENVIRONMENT, BUILDER)
    tools = ROOT / ENVIRONMENT / "bin"
    pyodide = ROOT / "_build" / "pyodide"
    shutil.rmtree(pyodide, ignore_errors=True)
    pyodide.mkdir()
    print(f"lite: fetching Pyodide {VERSION} and the packages of the book", flush=True)
    fetch_core(pyodide)
    fetch_pure(pyodide, tools / "python")
    if not options.core:
        fetch_compiled(pyodide)
    build_wheel(pyodide)
    size = add_lite(site, pyodide, tools / "jupyter-lite")
    print(f"lite: built into {site / LITE}; a reader loads about {size} MB")
    if options.core:
        print("lite: without NumPy, SciPy and Matplotlib, so chapters do not run in it")


if __name__ == "__main__":
    run_main(main)
