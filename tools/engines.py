"""Firefox and WebKit, driven by the protocols that they speak themselves.

Firefox listens for WebDriver BiDi; WebKit has a WebDriver (in webkit2gtk-driver) for
its MiniBrowser, which needs a display: Xvfb is one without a screen. Both are given the
same few commands.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import websocket

from tools.command import LIMIT, PipelineError, until

KEYS = {
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
    "Control": "\ue009",
    "Shift": "\ue008",
    "Enter": "\ue007",
}
# Said of a formula of which Firefox has parsed a part when a script asks for the
# layout; whether formulas have all their parts in the end, their test counts itself.
CUT = "Invalid markup: Incorrect number of children for <m"
# A window as narrow as a phone: the buttons of MiniBrowser would keep it wider.
NARROW = "* { min-width: 0; padding: 0; margin: 0; border-width: 0; font-size: 1px; }"


class Missing(Exception):
    """A program is not installed; the message says which package has it."""


def program(*names, package):
    places = "/usr/lib/*/webkit2gtk-4.*"
    for name in names:
        inside = (p / name for p in Path("/").glob(places.lstrip("/")))
        path = shutil.which(name) or next((str(p) for p in inside if p.exists()), None)
        if path:
            return path
    raise Missing(f"{names[0]} is not installed; Debian has it in {package}")


def strokes(keys):
    """Actions of a keyboard: texts are typed, names like "Control+a" are pressed."""
    actions = []
    for key in keys:
        names = key.split("+") if len(key) > 1 else [key]
        parts = [KEYS.get(name, name) for name in names]
        for part in parts:
            actions.append({"type": "keyDown", "value": part})
        for part in reversed(parts):
            actions.append({"type": "keyUp", "value": part})
    return [{"type": "key", "id": "keyboard", "actions": actions}]


class Engine:
    """A browser, and the commands that both kinds are given."""

    def wait(self, script, *values):
        """The value of a script, once it is true."""
        if value := until(lambda: self.run(script, *values)):
            return value
        raise PipelineError(f"never true: {script}\n{self.complaints()}")

    def press(self, *keys):
        self.act(strokes(keys))

    def type(self, text):
        self.act(strokes(["Enter" if letter == "\n" else letter for letter in text]))

    def foreign(self, host):
        """Addresses that the page has asked for elsewhere."""
        asked = "performance.getEntriesByType('resource').map((each) => each.name)"
        return [
            n for n in self.run(f"return {asked}") if not n.startswith((host, "data:"))
        ]


class Firefox(Engine):
    def __init__(self, address):
        self.numbers, self.errors = itertools.count(1), []
        self.socket = websocket.create_connection(
            f"{address}/session", timeout=LIMIT, suppress_origin=True
        )
        version = self.ask("session.new", capabilities={})["capabilities"]
        self.name = f"Firefox {version['browserVersion']}"
        self.ask("session.subscribe", events=["log.entryAdded"])
        tree = self.ask("browsingContext.getTree")
        self.context = tree["contexts"][0]["context"]

    def ask(self, method, **params):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == number:
                if answer["type"] == "error":
                    raise PipelineError(f"{method}: {answer['message']}")
                return answer["result"]
            if answer.get("method") == "log.entryAdded":
                entry = answer["params"]
                text = str(entry["text"])
                if entry["level"] == "error" and not text.startswith(CUT):
                    self.errors.append(text)

    def goto(self, address):
        self.errors.clear()
        self.ask(
            "browsingContext.navigate",
            context=self.context,
            url=address,
            wait="complete",
        )

    def run(self, script, *values):
        declared = (
            "async (json) => JSON.stringify((await (async (values) => {"
            f"{script}}})(JSON.parse(json))) ?? null)"
        )
        result = self.ask(
            "script.callFunction",
            functionDeclaration=declared,
            arguments=[{"type": "string", "value": json.dumps(values)}],
            target={"context": self.context},
            awaitPromise=True,
        )
        if result["type"] == "exception":
            raise PipelineError(result["exceptionDetails"]["text"])
        return json.loads(result["result"]["value"])

    def act(self, actions):
        self.ask("input.performActions", context=self.context, actions=actions)

    def resize(self, width, height):
        viewport = {"width": width, "height": height}
        self.ask("browsingContext.setViewport", context=self.context, viewport=viewport)

    def complaints(self):
        self.run("return 0")  # what happened before has arrived
        return list(self.errors)

    def screenshot(self):
        return base64.b64decode(
            self.ask("browsingContext.captureScreenshot", context=self.context)["data"]
        )


@contextmanager
def firefox(folder):
    """Firefox without a window, with a profile of its own."""
    command = [program("firefox-esr", "firefox", package="firefox-esr")]
    command += ["--headless", "--no-remote", "--profile", str(folder)]
    command += ["--remote-debugging-port", "0", "about:blank"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        lines = (re.search(r"BiDi listening on (ws:\S+)", x) for x in process.stderr)
        address = next(filter(None, lines), None)
        if address is None:
            raise PipelineError("Firefox did not start")
        yield Firefox(address[1])
    finally:
        process.terminate()
        process.wait(LIMIT)


class WebKit(Engine):
    def __init__(self, address, log):
        self.address, self.log, self.read = address, log, 0
        browser = program("MiniBrowser", package="webkit2gtk-driver")
        args = ["--automation", "--enable-write-console-messages-to-stdout=true"]
        options = {"webkitgtk:browserOptions": {"binary": browser, "args": args}}
        made = self.ask("POST", "/session", capabilities={"alwaysMatch": options})
        self.name = f"WebKitGTK {made['capabilities']['browserVersion']}"
        self.address += f"/session/{made['sessionId']}"
        self.ask("POST", "/timeouts", script=1000 * LIMIT)

    def ask(self, method, path, **body):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise PipelineError(f"{path}: {error.read().decode()}") from None

    def goto(self, address):
        self.complaints()
        self.ask("POST", "/url", url=address)
        self.read = len(self.log.read_text(errors="replace"))

    def run(self, script, *values):
        whole = (
            "const done = arguments[1];"
            f"(async (values) => {{ {script} }})(arguments[0])"
            ".then((v) => done([v ?? null]), (e) => done(String(e)));"
        )
        answer = self.ask("POST", "/execute/async", script=whole, args=[list(values)])
        if isinstance(answer, str):
            raise PipelineError(answer)
        return answer[0]

    def act(self, actions):
        self.ask("POST", "/actions", actions=actions)

    def resize(self, width, height):
        """Asked again until it fits: what the frame takes is known late."""

        def fits():
            extra = self.run("return outerHeight - innerHeight")
            rect = {"x": 0, "y": 0, "width": width, "height": height + extra}
            self.ask("POST", "/window/rect", **rect)
            return self.run("return [innerWidth, innerHeight]") == [width, height]

        if not until(fits):
            raise PipelineError(f"the window is never {width} by {height}")

    def complaints(self):
        text = self.log.read_text(errors="replace")[self.read :]
        return [
            line for line in text.splitlines() if re.match(r"CONSOLE.* ERROR", line)
        ]

    def screenshot(self):
        return base64.b64decode(self.ask("GET", "/screenshot"))


def answers(address):
    """Tell whether a server is there yet."""
    try:
        urllib.request.urlopen(address).close()
    except urllib.error.URLError:
        return False
    return True


@contextmanager
def display():
    """The number of a display of our own, which the program chooses."""
    command = [program("Xvfb", package="xvfb"), "-displayfd", "1", "-nolisten", "tcp"]
    command += ["-screen", "0", "1400x1100x24"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield f":{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(LIMIT)


@contextmanager
def webkit(folder, port, environment):
    """WebKit's MiniBrowser, with settings of its own."""
    style = folder / "gtk-3.0" / "gtk.css"
    style.parent.mkdir()
    style.write_text(NARROW)
    driver = program("WebKitWebDriver", package="webkit2gtk-driver")
    log = folder / "log"
    with display() as name, log.open("w") as out:
        env = environment | {"DISPLAY": name, "XDG_CONFIG_HOME": str(folder)}
        process = subprocess.Popen(
            [driver, f"--port={port}"], env=env, stdout=out, stderr=out
        )
        try:
            address = f"http://127.0.0.1:{port}"
            until(lambda: answers(f"{address}/status"))
            engine = WebKit(address, log)
            yield engine
            engine.ask("DELETE", "")
        finally:
            process.terminate()
            process.wait(LIMIT)
