"""Build the site from stored outputs when it is stale; serve it, compressed.

python -m tools.serve [--port 8000] [--build-only]
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tornado.httpserver
import tornado.netutil
import tornado.web

from tools.command import NOT_FOUND, ROOT, PipelineError, exclusive, run_main
from tools.digests import sha, stale
from tools.launch import base_path, public_address
from tools.texts import texts

HTML = Path("_build/html")
STAMP = Path("_build/built-from")
LITE = "lite"  # folder of Python in the browser, in the site
# What a build makes; a course, a printed book and other things lie beside it.
MADE = (HTML, Path("_build/.doctrees"), Path("_build/jupyter_execute"))
# What the site is made from: a change of any of these means a new build.
SOURCES = (
    "_config.yml",
    "_toc.yml",
    "requirements.lock",
    "benchmarks",
    "chapters",
    "coursework",
    "figures",
    "lib",
    "pyproject.toml",
    "tools",
)
# What single pages are made from, so that the others can stand.
OF_PAGES = re.compile(
    r"chapters/.*\.(md|ipynb|json)|lib/.*\.py|(benchmarks|coursework)/\w+\.json"
    r"|coursework/source/.*"
)


def source_digest(root: Path = ROOT) -> str:
    """Digest of every file the site is made from, one a line, before its name."""
    lines = []
    for name in SOURCES:
        top = root / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            skipped = {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)
            if path.is_file() and not skipped:
                lines.append(f"{sha(path.read_bytes())}  {path.relative_to(root)}\n")
    return "".join(lines)


def edited(before: str, now: str) -> list[str] | None:
    """Files of pages that changed; None if something else did, or a file is new."""
    one, two = (set(each.splitlines()) for each in (before, now))
    old, new = ({line.partition("  ")[2] for line in x} for x in (one - two, two - one))
    return sorted(new) if old == new and all(map(OF_PAGES.fullmatch, new)) else None


def build(root: Path = ROOT) -> Path:
    """Build the site unless it is fresh; a warning is an error."""
    for path in texts(root):
        if changed := stale(path, root):
            print(
                f"site: the page {path.stem} is STALE ({', '.join(changed)} changed);"
                " make notebooks executes it"
            )
    stamp, digest = root / STAMP, source_digest(root)
    before = stamp.read_text() if stamp.exists() else None
    if before == digest:
        print("site: already built")
    else:
        with exclusive(root, "build of the site"):
            added = (root / HTML / LITE).exists()  # to each page, by tools.lite
            anew = added or before is None
            _build(root, None if anew else edited(before, digest))
            stamp.write_text(digest)
    return root / HTML


def _build(root: Path, files: list[str] | None) -> None:
    """Build the pages that some files reach, or all from nothing."""
    if not os.access(root, os.W_OK):
        raise PipelineError(
            f"the site is not built, and {root} is read-only: copy the project to a"
            " folder that you may write to"
        )
    (root / STAMP).unlink(missing_ok=True)  # what is interrupted is begun anew
    if files is None:
        print("site: building from stored outputs")
        for folder in MADE:
            shutil.rmtree(root / folder, ignore_errors=True)
    else:
        print(f"site: building again what these reach: {', '.join(files)}")
    command = [
        str(Path(sys.executable).with_name("jupyter-book")),
        "build",
        ".",
        "-W",
        "-n",
        "--keep-going",
        "-q",
    ]
    result = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode:
        print(result.stdout)
        raise PipelineError("the site did not build; the messages above say where")


class Files(tornado.web.StaticFileHandler):
    """Static files, and the site's own page for an address that has none."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        page = Path(self.root) / f"{NOT_FOUND}.html"
        if status_code == 404 and page.is_file():
            self.set_header("Content-Type", "text/html; charset=UTF-8")
            self.finish(page.read_bytes())
        else:
            super().write_error(status_code, **kwargs)


def application(folder: Path) -> tornado.web.Application:
    """Static files, compressed, with a folder's index.html for its address.

    They stand under the path of the public address as well: the page of unknown
    addresses names all others by it.
    """
    options = {"path": str(folder), "default_filename": "index.html"}
    bases = dict.fromkeys([base_path(public_address()), "/"])
    return tornado.web.Application(
        [(rf"{re.escape(base)}(.*)", Files, options) for base in bases],
        compress_response=True,
        log_function=lambda handler: None,
    )


def require_free(port: int, target: str) -> None:
    """Stop with one sentence when another program listens on the port."""
    try:
        for each in tornado.netutil.bind_sockets(port, "127.0.0.1"):
            each.close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise PipelineError(
            f"port {port} is taken; choose another one, as in: make {target}"
            f" PORT={port + 1}"
        ) from None


async def serve(folder: Path, port: int) -> None:
    require_free(port, "serve")
    server = application(folder).listen(port, address="127.0.0.1")
    print(f"site: http://localhost:{port}/ (Ctrl-C stops it)", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        server.stop()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of the site while a thread serves it on a free port."""
    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    loop = asyncio.new_event_loop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        tornado.httpserver.HTTPServer(application(folder)).add_sockets(sockets)
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.serve")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    try:
        folder = build()
    except KeyboardInterrupt:
        raise PipelineError("interrupted; the site is then built anew") from None
    if not options.build_only:
        asyncio.run(serve(folder, options.port))


if __name__ == "__main__":
    try:
        run_main(main)
    except KeyboardInterrupt:
        print("site: stopped")
