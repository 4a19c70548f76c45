"""Serve the site together with a Jupyter server, so that its live pages can run.

    python -m tools.live [--port 8000] [3 | sinkhorn | ...]

One process and one origin for both: no other site may speak to the kernels, and the
pages need no permission to. The server listens on this machine alone. Its key is made
at each start and printed as the fragment of an address, the part that a browser keeps
to itself; no page that anybody may fetch contains it.
"""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

from jupyter_server.serverapp import ServerApp
from traitlets.config import Config

from tools.command import ROOT, run_main
from tools.lab import chapter
from tools.live_page import SUFFIX
from tools.serve import Files, build, require_free

JUPYTER = "/jupyter/"


class LiveServer(ServerApp):
    """A Jupyter server of kernels alone, and the files of the site beside it."""

    default_services = ("api", "auth", "kernels", "kernelspecs", "security")
    site = ROOT

    def init_webapp(self) -> None:
        super().init_webapp()
        options = {"path": str(self.site), "default_filename": "index.html"}
        self.web_app.add_handlers(".*", [(rf"/(?!{JUPYTER[1:]})(.*)", Files, options)])


def settings(port: int, key: str) -> Config:
    """What the server may do, whatever the reader's own configuration says."""
    config = Config()
    config.ServerApp = Config(
        ip="127.0.0.1",
        port=port,
        port_retries=0,
        base_url=JUPYTER,
        root_dir=str(ROOT / "chapters"),
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
    # Kernels of closed pages end by themselves.
    config.MappingKernelManager = Config(cull_idle_timeout=600)
    return config


def live_server(folder: Path, port: int, key: str) -> LiveServer:
    """The server, ready to start."""
    # Every kernel finds the package of this book before any other of that name.
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    server = LiveServer(config=settings(port, key))
    server.site = folder
    server.initialize([], find_extensions=False)
    return server


def address(page: str, port: int, key: str) -> str:
    """What the reader opens."""
    return f"http://127.0.0.1:{port}/{page}{SUFFIX}#token={key}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.live")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("chapter", nargs="?", default="index")
    options = parser.parse_args()
    page = chapter(options.chapter).relative_to(ROOT).with_suffix("").as_posix()
    require_free(options.port, "live")
    folder, key = build(), secrets.token_urlsafe(24)
    server = live_server(folder, options.port, key)
    print(f"live: {address(page, options.port, key)}")
    print('live: every page has a button "Live code" (Ctrl-C stops it)', flush=True)
    server.start()


if __name__ == "__main__":
    run_main(main)
