"""A JupyterLab with a home of its own, for the tests."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

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
def serving(folder, home):
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
    with (home / "log").open("w") as log:
        env = os.environ | {name: str(path) for name, path in places.items()}
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        yield address(server, home)
    finally:
        server.terminate()
        server.wait(30)


def address(server, home):
    """What the server writes down once it listens."""
    for _ in range(600):
        if server.poll() is not None:
            break
        for path in (home / "runtime").glob("jpserver-*.json"):
            if (text := path.read_text()).endswith("}"):
                return json.loads(text)["url"]
        time.sleep(0.1)
    return pytest.fail((home / "log").read_text())
