"""Serve the site together with a Jupyter server, so that its live pages can run.

    python -m tools.live [--port 8000] [3 | sinkhorn | ...]

One process and one origin for both: no other site may speak to the kernels, and the
pages need no permission to. The server listens on this machine alone. Its key is made
at each start and printed as the fragment of an address, the part that a browser keeps
to itself; no page that anybody may fetch contains it.

Kernels start in an empty folder of this server's own, as a downloaded notebook is run
alone: nothing of the project is found there by accident, and what a reader's cell
writes is gone when the server stops. The package is found by its name.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jupyter_server.serverapp import ServerApp
from traitlets.config import Config

from tools.command import ROOT, run_main
from tools.lab import chapter
from tools.serve import Files, build, require_free
from tools.site.live_page import SUFFIX, offered

JUPYTER = "/jupyter/"


class Pages(Files):
    """The files of the site; on its pages the way to the live ones is in sight."""

    def set_extra_headers(self, path: str) -> None:
        # A page that another server gave on this port is not to be taken for ours.
        self.set_header("Cache-Control", "no-cache")

    @classmethod
    def get_content(
        cls, abspath: str, start: int | None = None, end: int | None = None
    ) -> Iterator[bytes]:
        if not abspath.endswith(".html"):
            yield from super().get_content(abspath, start, end)
        else:
            yield offered(Path(abspath).read_text("utf-8")).encode()[start:end]

    def get_content_size(self) -> int:
        return sum(map(len, self.get_content(self.absolute_path)))


class LiveServer(ServerApp):
    """A Jupyter server of kernels alone, and the files of the site beside it."""

    default_services = ("api", "auth", "kernels", "kernelspecs", "security")
    site: Path

    def init_webapp(self) -> None:
        super().init_webapp()
        options = {"path": str(self.site), "default_filename": "index.html"}
        self.web_app.add_handlers(".*", [(rf"/(?!{JUPYTER[1:]})(.*)", Pages, options)])


def settings(port: int, key: str, scratch: Path) -> Config:
    """Say what the server may do, whatever the reader's own configuration says.

    It writes in the folder ``scratch`` alone: the home and the site may be read-only.
    """
    config = Config()
    config.ServerApp = Config(
        ip="127.0.0.1",
        port=port,
        port_retries=0,
        base_url=JUPYTER,
        root_dir=str(scratch / "work"),
        cookie_secret=secrets.token_bytes(32),
        allow_origin="",
        allow_origin_pat="",
        allow_remote_access=False,
        disable_check_xsrf=False,
        terminals_enabled=False,
        open_browser=False,
        allow_root=True,
        answer_yes=True,
        log_level="ERROR",
    )
    config.IdentityProvider = Config(token=key)
    # Kernels of closed pages end by themselves. One that does not answer in time is
    # asked again by its page, which hears sooner of one that cannot live.
    config.MappingKernelManager = Config(cull_idle_timeout=600, kernel_info_timeout=15)
    return config


def live_server(folder: Path, port: int, key: str, scratch: Path) -> LiveServer:
    """The server of the site in ``folder``, ready to start."""
    for name in ("work", "runtime"):
        (scratch / name).mkdir()
    # Every kernel finds the package of this book before any other of that name.
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    runtime = str(scratch / "runtime")
    server = LiveServer(config=settings(port, key, scratch), runtime_dir=runtime)
    server.site = folder
    server.initialize([], find_extensions=False)
    return server


def address(page: str, port: int, key: str) -> str:
    """Return the address that the reader opens."""
    return f"http://127.0.0.1:{port}/{page}{SUFFIX}#token={key}"


def announce(where: str) -> None:
    print(f"live: {where}")
    print('live: every page has a button "Live code" (Ctrl-C stops it)', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.live")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("chapter", nargs="?", default="index")
    options = parser.parse_args()
    page = chapter(options.chapter).relative_to(ROOT).with_suffix("").as_posix()
    require_free(options.port, "live")
    folder, key = build(), secrets.token_urlsafe(24)
    require_free(options.port, "live")  # again: building takes minutes
    with tempfile.TemporaryDirectory(prefix="live-") as scratch:
        server = live_server(folder, options.port, key, Path(scratch))
        # It listens once its loop runs. An address printed before would be refused.
        server.io_loop.add_callback(announce, address(page, options.port, key))
        server.start()


if __name__ == "__main__":
    run_main(main)
