"""Live pages in a browser, against the server that ``make live`` starts."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from test_site import AXE, SIZES, axe_violations, opened

from tools import live, live_page
from tools.command import ROOT, PipelineError
from tools.serve import HTML

SITE = ROOT / HTML
PAGE = "chapters/reference/more-checks-2"
LIVE, LANDING = f"{PAGE}.live.html", "chapters/index.live.html"
EXPLORER = """
from matplotlib.figure import Figure
from lib.figures import explore, figure
def draw(height):
    fig = Figure(figsize=(3, 1.5))
    fig.subplots().set(xlim=(0, 1), ylim=(0, height))
    return figure(fig, alt=f"An empty rectangle that is as high as {height}, no more.")
explore(draw, height=[1, 2, 3])"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def started(home):
    """Process and address of ``make live``, with a home of its own."""
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "IPYTHONDIR": home / "ipython",
    }
    env = os.environ | {name: str(path) for name, path in places.items()}
    command = [sys.executable, "-m", "tools.live", "--port", str(free_port())]
    log = (home / "log").open("w")
    server = subprocess.Popen(
        [*command, "checks-2"], cwd=ROOT, env=env, text=True, stderr=log,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        lines = iter(server.stdout.readline, "")
        address = next((line for line in lines if "#token=" in line), None)
        assert address, (home / "log").read_text()
        yield server, address.split()[-1]
    finally:
        server.terminate()
        server.wait(30)
        log.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with started(tmp_path_factory.mktemp("home")) as (_, address):
        yield address


@pytest.fixture
def page(browser, address):
    """A live page with a server; it complains of nothing, and asks nobody else."""
    context, seen = browser.new_context(), []
    page = opened(context, address, seen)
    says(page, "Connected")
    yield page
    context.close()
    assert seen == []


def says(page, words):
    """What the page says, once it has these words."""
    line = page.locator(".live-says", has_text=words)
    line.wait_for(timeout=60_000)
    return line.inner_text()


def cell(page, number):
    return page.locator(".cell:has(.cell_input)").nth(number - 1)


def write(page, number, code):
    """Replace the code of a cell as a reader does, and run it."""
    editor = page.get_by_role("textbox", name=f"Code of cell {number}", exact=True)
    editor.fill(code)
    editor.press("Shift+Enter")


def test_edited_cell_shows_the_new_number(page):
    key = page.evaluate("location.href")
    assert "token" not in key  # taken out of the address, kept from the history
    stored = cell(page, 3).locator(".cell_output").inner_text()
    write(page, 2, "number = 6 * 7\nprint(f'{number} / {np.pi:.2f}')")
    says(page, "Cell 2 has run")
    # The cell above, with the imports, ran first; the one below did not.
    assert cell(page, 2).locator(".cell_output").inner_text().strip() == "42 / 3.14"
    assert cell(page, 3).locator(".cell_output").inner_text() == stored
    write(page, 3, "print(number + 1); 1 / 0")
    assert "cell 3" in says(page, "Stopped in")
    output = cell(page, 3).locator(".cell_output").inner_text()
    assert output.startswith("43") and "ZeroDivisionError: division by zero" in output
    # An edit above is run again before what stands below it.
    page.get_by_role("textbox", name="Code of cell 2", exact=True).fill("number = 1")
    write(page, 3, "number + 1")
    says(page, "Cell 3 has run")
    assert cell(page, 3).locator(".cell_output").inner_text().strip() == "2"


def test_keys_of_an_editor(page):
    editor = page.get_by_role("textbox", name="Code of cell 1", exact=True)
    editor.fill("for k in range(2):")
    editor.press("End")
    editor.press("Enter")
    page.keyboard.type("print(4 / 2 + k)")  # "/" elsewhere opens the search
    editor.press("Enter")
    page.keyboard.type("print('twice')")
    editor.press("Control+Enter")
    says(page, "Cell 1 has run")
    output = cell(page, 1).locator(".cell_output").inner_text()
    assert output.split() == ["2.0", "twice", "3.0", "twice"]


def test_forms_of_output(page):
    write(page, 1, EXPLORER)
    says(page, "Cell 1 has run")
    found = cell(page, 1).locator(".cell_output")
    drawing = found.get_by_role("img")
    before = drawing.get_attribute("aria-label")
    found.get_by_role("slider").press("ArrowRight")
    assert drawing.get_attribute("aria-label") == before.replace("1", "2")
    write(
        page,
        1,
        "from IPython.display import HTML, SVG, clear_output, display\n"
        "from PIL import Image as Pictures\n"
        "print('gone'); clear_output(wait=True)\n"
        "display(HTML('<b>bold</b>'))\n"
        'display(SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="9"></svg>\'))\n'
        "shown = display('first', display_id=True); shown.update('second')\n"
        "Pictures.new('RGB', (7, 5))",
    )
    says(page, "Cell 1 has run")
    assert found.locator("b").inner_text() == "bold"
    assert found.locator("svg").get_attribute("width") == "9"
    assert found.locator("img.output").evaluate("e => e.naturalWidth") == 7
    assert "'second'" in found.inner_text()
    assert not {"gone", "first"} & set(re.findall(r"\w+", found.inner_text()))


def test_scripts_in_output_do_not_run(browser, address):
    context, seen = browser.new_context(), []
    page = opened(context, address, seen)
    handler = '<img src="data:,x" onerror="window.ran = 1"><script>ran = 1</script>'
    write(page, 1, f"from IPython.display import HTML\nHTML({handler!r})")
    says(page, "Cell 1 has run")
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in each for each in seen)
    context.close()


def test_kernel_that_dies_is_replaced_and_edits_stay(page):
    write(page, 1, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    said = says(page, "The kernel died")
    assert "A new one has started" in said and "edits are kept" in said
    assert "SIGKILL" in cell(page, 1).locator("pre").first.inner_text()
    write(page, 1, "print(6 * 7)")
    says(page, "Cell 1 has run")
    assert cell(page, 1).locator(".cell_output").inner_text().strip() == "42"


def test_stop_and_restart(page):
    stop = page.get_by_role("button", name="Stop")
    assert stop.is_disabled()
    write(page, 1, "print('on')\nwhile True: pass")
    cell(page, 1).get_by_text("on", exact=True).wait_for(timeout=60_000)
    page.get_by_role("button", name="Run cell 2", exact=True).click()
    says(page, "Wait for the cell that is running")
    stop.click()
    says(page, "Stopped in cell 1")
    assert "KeyboardInterrupt" in cell(page, 1).locator(".cell_output").inner_text()
    write(page, 1, "known = 1")
    says(page, "Cell 1 has run")
    page.get_by_role("button", name="Restart").click()
    says(page, "was restarted")
    write(page, 1, "'known' in globals()")
    says(page, "Cell 1 has run")
    assert cell(page, 1).locator(".cell_output").inner_text().strip() == "False"


def test_live_page_passes_the_gate_and_runs_code_that_it_hides(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.goto(address.replace(LIVE, LANDING).partition("#")[0])
    says(page, "Connected")  # with the key that the first page has kept
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.get_by_role("button", name="Run cell 1", exact=True).click()
    says(page, "Cell 1 has run")
    assert page.locator(".traceback").count() == 0
    write(page, 2, "print(groups.max()); 1 / 0")
    says(page, "Stopped in cell 2")
    page.evaluate(AXE)
    found = []
    for (width, height), scheme in zip(SIZES.values(), ("light", "dark"), strict=True):
        page.set_viewport_size({"width": width, "height": height})
        wide = "document.documentElement.scrollWidth - window.innerWidth"
        assert page.evaluate(wide) <= 0
        page.emulate_media(color_scheme=scheme)
        page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        found += axe_violations(page)
    assert found == []


def test_server_that_goes_is_said_and_edits_stay(browser, address):
    context, sockets = browser.new_context(), []

    def keep(socket):
        socket.connect_to_server()
        sockets.append(socket)

    context.route_web_socket("**/jupyter/**", keep)
    page = opened(context, address, [])
    says(page, "Connected")
    write(page, 1, "print('here')")
    says(page, "Cell 1 has run")
    context.route("**/jupyter/**", lambda route: route.abort())
    sockets[0].close()
    assert "edits are kept" in says(page, "connection to the server is lost")
    page.get_by_role("button", name="Run cell 1", exact=True).click()
    assert "make live" in says(page, "No server answers")
    assert "'here'" in cell(page, 1).locator("pre").first.inner_text()
    context.close()


def test_without_a_server_the_page_says_so_and_reads(site, browser):
    page = browser.new_page()
    page.goto(site + LIVE)
    assert "make live" in says(page, "No server answers")
    assert page.locator("[contenteditable], .live-run").count() == 0
    assert page.locator(".verdict").first.is_visible()
    page.get_by_role("button", name="Try again").click()
    says(page, "No server answers")
    page.get_by_role("link", name="Reading page").click()
    page.wait_for_url(f"**/{PAGE}.html")
    page.close()


def test_without_its_key_a_page_is_refused(browser, address):
    page = browser.new_page()
    page.goto(address.partition("#")[0])
    assert "make live" in says(page, "does not know this page")
    page.close()


def test_without_scripts_there_is_a_sentence(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}{PAGE}.html")
    link = page.get_by_role("link", name="Live code")
    page.goto(f"{site}chapters/reference/{link.get_attribute('href')}")
    assert "JavaScript" in page.locator(".live-says").inner_text()
    assert page.locator(".live button, [contenteditable]").count() == 0
    assert page.locator(".verdict").first.is_visible()
    context.close()


def test_binder_makes_a_server_where_there_is_none(browser, address):
    """A page as with a known repository, and a Binder that gives a server of ours.

    The policy of such a page, which this server is not in, has a test of its own.
    """
    place, key = address.split("#token=")
    server = place.partition("chapters")[0] + "jupyter/"
    answers = [
        {"phase": "failed"},
        {"phase": "building"},
        {"phase": "ready", "url": server, "token": key},
    ]
    context, streams = browser.new_context(bypass_csp=True), [answers[:1], answers[1:]]

    def answer(route):
        body = "".join(f"data: {json.dumps(each)}\n\n" for each in streams.pop(0))
        head = {"Access-Control-Allow-Origin": "*"}
        route.fulfill(body=body, headers=head, content_type="text/event-stream")

    build = "https://mybinder.org/build/gh/owner/name/main"
    context.route(build, answer)
    context.add_init_script(
        "document.addEventListener('readystatechange', () =>"
        f" document.querySelector('.live').dataset.binder = '{build}')"
    )
    page = context.new_page()
    page.goto(place)
    says(page, "does not know this page")
    page.get_by_role("button", name="Start on Binder").click()
    says(page, "could not make a server")
    page.get_by_role("button", name="Start on Binder").click()
    says(page, "Connected")
    write(page, 1, "6 * 7")
    says(page, "Cell 1 has run")
    assert cell(page, 1).locator(".cell_output").inner_text().strip() == "42"
    context.close()


def policy_of(html):
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    parts = (part.split(None, 1) for part in found.group(1).split("; "))
    return {name: value for name, value in parts}


def test_live_page_has_a_policy_and_a_script_that_reading_pages_have_not():
    reading, twin = (
        (SITE / name).read_text("utf-8") for name in (f"{PAGE}.html", LIVE)
    )
    assert "live.mjs" in twin and "live.mjs" not in reading
    assert policy_of(twin) == policy_of(reading) | {"connect-src": "'self'"}
    notebook = nbformat.read(ROOT / f"{PAGE}.ipynb", 4)
    known = live_page.live_page(reading, "x.html", notebook, "owner/name")
    assert 'data-binder="https://mybinder.org/build/gh/owner/name/main"' in known
    allowed = policy_of(known)["connect-src"].split()
    assert allowed[0] == "'self'" and "wss://*.mybinder.org" in allowed
    assert not any(each.startswith(("http:", "ws:")) or each == "*" for each in allowed)


def test_page_whose_cells_are_not_those_of_its_notebook_is_refused():
    html = (SITE / f"{PAGE}.html").read_text("utf-8")
    with pytest.raises(PipelineError, match="x.html: its cells are not those"):
        live_page.live_page(html, "x.html", new_notebook(), None)
    cells = [new_code_cell("</script>", metadata={"tags": ["remove-cell"]})]
    assert live_page.hidden_cells(new_notebook(cells=cells)) == ["</script>"]


def test_server_is_for_this_machine_and_holders_of_the_key_alone(address):
    config = live.settings(8000, "key")
    assert config.ServerApp.ip == "127.0.0.1" and config.ServerApp.allow_origin == ""
    place, key = address.split("#token=")
    assert len(key) >= 32 and re.match(r"http://127\.0\.0\.1:\d+/", place)
    api = place.partition("chapters")[0] + "jupyter/api/"
    right = {"Authorization": f"token {key}"}
    assert status(f"{api}kernels", right) == 200
    assert status(f"{api}kernels") == 403
    assert status(f"{api}kernels", {"Authorization": "token wrong"}) == 403
    assert status(f"{api}kernels", {"Origin": "https://example.org"}) in (403, 404)
    # Files, terminals and the like are not served at all.
    for name in ("contents", "terminals", "sessions", "shutdown"):
        assert status(f"{api}{name}", right) == 404
    # What anybody may fetch does not contain the key.
    with urllib.request.urlopen(place) as answer:
        assert key not in answer.read().decode()


def status(address, headers=()):
    request = urllib.request.Request(address, headers=dict(headers))
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code


def test_full_port_is_one_sentence(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["tools.live", "--port", str(port)])
        with pytest.raises(PipelineError) as error:
            live.main()
    assert str(error.value) == (
        f"port {port} is taken; choose another one, as in: make live PORT={port + 1}"
    )
