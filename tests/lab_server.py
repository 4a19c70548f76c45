"""A JupyterLab with a home of its own, for the tests."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from waits import LIMIT, until

from tools.command import ROOT

SETTINGS = {
    # The plugin that asks a new user whether to fetch news from outside.
    "config/labconfig/page_config.json": {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    },
    # Cells out of sight are on the page as well.
    "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {
        "windowingMode": "none"
    },
}


def furnished(home):
    """An empty folder as a home, with the settings of the tests."""
    for name, content in SETTINGS.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    for name in ("data", "runtime"):
        (home / name).mkdir()
    return home


@contextmanager
def serving(folder, home, *options):
    """Address of a JupyterLab on a folder while it runs; ``home`` has its settings."""
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "IPYTHONDIR": home / "ipython",
        "PYTHONPATH": ROOT,
    }
    command = [Path(sys.executable).with_name("jupyter"), "lab", "--no-browser"]
    command += ["--allow-root", "--ServerApp.port=0", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly"]
    command += options
    with (home / "log").open("w") as log:
        env = os.environ | {name: str(path) for name, path in places.items()}
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        yield address(server, home)
    finally:
        # How JupyterLab ends is its own affair, and may take it minutes: kernels that
        # are being started are waited for. They end with the process that began them.
        server.kill()
        server.wait(LIMIT)


def address(server, home):
    """What the server writes down once it listens."""

    def listening():
        texts = (p.read_text() for p in (home / "runtime").glob("jpserver-*.json"))
        return next((text for text in texts if text.endswith("}")), None)

    content = until(listening, lambda: server.poll() is not None)
    assert content, (home / "log").read_text()
    return json.loads(content)["url"]
