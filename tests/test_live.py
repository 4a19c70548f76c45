"""Live pages in a browser, against the server that ``make live`` starts."""

import ast
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from test_site import AXE, SIZES, axe_violations, low_contrast, opened
from waits import LIMIT, MILLISECONDS

from tools import live, serve
from tools.command import ROOT, PipelineError
from tools.kernels.parity import free_port
from tools.serve import HTML
from tools.site import live_page
from tools.site.markup import one, parsed
from tools.texts import BOOK, texts

SITE = ROOT / HTML
PAGE = "chapters/reference/more-checks-1"
LIVE, LANDING = f"{PAGE}.live.html", "chapters/index.live.html"
TWINS = [
    text.relative_to(ROOT).with_suffix(".live.html").as_posix() for text in texts()
]
EXPLORER = """
from matplotlib.figure import Figure
from lib.figures import explore, figure
def draw(height):
    fig = Figure(figsize=(3, 1.5))
    fig.subplots().set(xlim=(0, 1), ylim=(0, height))
    return figure(fig, alt=f"An empty rectangle that is as high as {height}, no more.")
explore(draw, height=[1, 2, 3])"""


SLOW = """
import time
from tools import live

start = live.LiveServer.start_app
live.LiveServer.start_app = lambda server: (time.sleep(2), start(server))
live.run_main(live.main)
"""


@contextmanager
def started(home, port=None, program=("-m", "tools.live")):
    """Process and address of ``make live``, with a home of its own."""
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "IPYTHONDIR": home / "ipython",
    }
    env = os.environ | {name: str(path) for name, path in places.items()}
    port = str(port or free_port())
    command = [sys.executable, *program, "--port", port]
    log = (home / "log").open("w")
    server = subprocess.Popen(
        [*command, "checks-1"], cwd=ROOT, env=env, text=True, stderr=log,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        lines = iter(server.stdout.readline, "")
        address = next((line for line in lines if "#token=" in line), None)
        assert address, (home / "log").read_text()
        yield server, address.split()[-1]
    finally:
        server.terminate()
        server.wait(LIMIT)
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
    line.wait_for(timeout=MILLISECONDS)
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
    place = cell(page, 1).locator(".cell_output")
    drawing = place.get_by_role("img")
    before = drawing.get_attribute("aria-label")
    place.get_by_role("slider").press("ArrowRight")
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
    assert place.locator("b").inner_text() == "bold"
    assert place.locator("svg").get_attribute("width") == "9"
    assert place.locator("img.output").evaluate("e => e.naturalWidth") == 7
    assert "'second'" in place.inner_text()
    assert not {"gone", "first"} & set(re.findall(r"\w+", place.inner_text()))


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
    write(page, 1, "import os, signal")
    says(page, "Cell 1 has run")
    with page.expect_websocket():
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
    cell(page, 1).get_by_text("on", exact=True).wait_for()
    page.get_by_role("button", name="Run cell 2", exact=True).click()
    says(page, "Wait for the cell that is running")
    stop.click()
    says(page, "Stopped in cell 1")
    assert "KeyboardInterrupt" in cell(page, 1).locator(".cell_output").inner_text()
    write(page, 1, "known = 1")
    says(page, "Cell 1 has run")
    # On the connection of the kernel before, first messages of the next may be missed.
    with page.expect_websocket():
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
    violations = []
    for (width, height), scheme in zip(SIZES.values(), ("light", "dark"), strict=True):
        page.set_viewport_size({"width": width, "height": height})
        wide = "document.documentElement.scrollWidth - window.innerWidth"
        assert page.evaluate(wide) <= 0
        page.emulate_media(color_scheme=scheme)
        page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        violations += axe_violations(page) + low_contrast(page)
    assert violations == []


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


def reads_only(page):
    """A live page that is read: no editor, no dead button, every stored result."""
    assert page.locator(".live button, [contenteditable], .live-run").count() == 0
    assert page.locator(".verdict").first.is_visible()
    return page.locator(".live-says").inner_text()


def test_without_scripts_there_is_a_sentence(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address.replace(".live.html", ".html"))
    with context.expect_page() as twin:
        page.get_by_role("link", name="Live code").click()
    assert "JavaScript" in reads_only(twin.value)
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
    meta = one(parsed(html), "a page", "a policy", "meta[http-equiv]")
    parts = (part.split(None, 1) for part in meta["content"].split("; "))
    return {name: value for name, value in parts}


def test_live_page_has_a_policy_and_a_script_that_reading_pages_have_not():
    reading, twin = (
        (SITE / name).read_text("utf-8") for name in (f"{PAGE}.html", LIVE)
    )
    assert "live.mjs" in twin and "live.mjs" not in reading
    assert policy_of(twin) == policy_of(reading) | {"connect-src": "'self'"}
    notebook = nbformat.read(ROOT / f"{PAGE}.ipynb", 4)
    name = f"{PAGE}.html".rpartition("/")[2]
    known = live_page.live_page(reading, name, notebook, "owner/name")
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
    config = live.settings(8000, "key", Path("scratch"))
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


# Every page, from its first cell to its last.


def run_all(page, place):
    """Press "Run all" on a live page; what it says when all has run."""
    page.goto(place)
    says(page, "Connected")
    page.get_by_role("button", name="Run all").click()
    said = says(page, re.compile("has run|Stopped|lost|died"))
    assert page.locator(".traceback").all_inner_texts() == [], said
    assert "has run" in said
    return said


def at(address, twin):
    return address.replace(LIVE, twin).partition("#")[0]


def test_run_all_reaches_the_end_of_the_shortest_page(page, address):
    run_all(page, at(address, LANDING))


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS)
def test_run_all_reaches_the_end_of_every_page(page, address, twin, record_property):
    start = time.monotonic()
    run_all(page, at(address, twin))
    record_property("seconds", round(time.monotonic() - start))


def test_kernel_of_every_page_starts_in_an_empty_folder_of_its_own(page, address):
    # The cells above the first one that is shown run as well, those that are hidden.
    assert len(TWINS) >= 7
    for twin in TWINS:
        page.goto(at(address, twin))
        says(page, "Connected")
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = 1)")
        write(page, 1, "import os, lib\nprint(os.getcwd(), os.listdir(), lib.__file__)")
        says(page, "Cell 1 has run")
        shown = cell(page, 1).locator(".cell_output").inner_text().split()
        assert not Path(shown[0]).is_relative_to(ROOT) and shown[1] == "[]", twin
        assert shown[2] == str(ROOT / "lib" / "__init__.py")


def files_named(code, folder):
    """Texts in the code that name a file of ``folder``, as from there."""
    code = re.sub(r"^\s*[%!].*", "", code, flags=re.M)
    texts = (n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant))
    names = (text for text in texts if isinstance(text, str) and "\0" not in text)
    return [n for n in names if re.search(r"[./]", n) and (folder / n[:200]).is_file()]


def test_no_cell_needs_a_file_of_the_project():
    names = files_named("open('../tools/site/static/book.css')", ROOT / BOOK)
    assert names == ["../tools/site/static/book.css"]
    for text in texts():
        for each in nbformat.read(text.with_suffix(".ipynb"), 4).cells:
            if each.cell_type == "code":
                assert files_named(each.source, text.parent) == [], text.name


# Edits outlive a reload.


def edited(page, number, code):
    page.get_by_role("textbox", name=f"Code of cell {number}", exact=True).fill(code)


def code_of(page, number):
    return cell(page, number).locator("pre").first.inner_text()


def test_reload_keeps_edits_until_they_are_undone(page):
    undo = page.get_by_role("button", name="Undo my edits")
    book = code_of(page, 2)
    assert undo.is_hidden()
    edited(page, 2, "kept = 6 * 7\nprint(kept)")
    edited(page, 4, "# mine")
    page.reload()
    assert "cells: 2, 4" in says(page, "Your edits are back")
    page.get_by_role("button", name="Run cell 2", exact=True).click()
    says(page, "Cell 2 has run")
    assert cell(page, 2).locator(".cell_output").inner_text().strip() == "42"
    undo.click()
    says(page, "book's again")
    assert code_of(page, 2) == book and undo.is_hidden()
    assert cell(page, 2).locator("pre").first.locator("span").count() > 1  # colors
    page.reload()
    said = says(page, "Connected")
    assert "Your edits" not in said and code_of(page, 2) == book


def test_code_that_the_book_has_changed_does_not_come_back(page):
    edited(page, 2, "stale = 1")
    # The next edition, in which the code of this cell is another.
    with urllib.request.urlopen(page.url) as answer:
        html = answer.read().decode()
    start = [match.start() for match in re.finditer('<div class="cell_input', html)][1]
    line = html[start:].replace("<pre>", "<pre>by_the_book = 1\n", 1)
    changed = html[:start] + line
    page.route("**/*.live.html", lambda route: route.fulfill(body=changed))
    page.reload()
    assert "Your edits" not in says(page, "Connected")
    assert "by_the_book" in code_of(page, 2) and "stale" not in code_of(page, 2)


@pytest.mark.parametrize("way", ["refused", "full", "foreign"])
def test_page_works_where_the_browser_keeps_nothing(browser, address, way):
    context = browser.new_context()
    refuse = "() => { throw new DOMException('no', 'SecurityError'); }"
    scripts = {
        "refused": f"Object.defineProperty(window, 'localStorage', {{get: {refuse}}})",
        "full": f"Storage.prototype.setItem = {refuse}",
        "foreign": f"localStorage.setItem('live-edits:/{LIVE}', '[1,')",
    }
    context.add_init_script(scripts[way])
    page = context.new_page()
    page.goto(address)
    says(page, "Connected")
    edited(page, 1, "print(6 * 7)")
    if way != "foreign":
        says(page, "This browser keeps nothing")
    page.get_by_role("button", name="Run cell 1", exact=True).click()
    says(page, "Cell 1 has run")
    assert cell(page, 1).locator(".cell_output").inner_text().strip() == "42"
    context.close()


# The button is where it leads somewhere.


def button_of(browser, address):
    page = browser.new_page()
    page.goto(address)
    link = page.get_by_role("link", name="Live code")
    assert page.locator(".btn-live-button").count() == 1
    count = link.count()
    page.close()
    return count


def test_live_code_is_offered_where_a_cell_can_be_run(site, browser, address, tmp_path):
    assert button_of(browser, f"{site}{PAGE}.html") == 0
    here = address.replace(".live.html", ".html").partition("#")[0]
    assert button_of(browser, here) == 1
    with urllib.request.urlopen(here) as answer:
        marked = answer.read().decode()
        length = answer.headers["Content-Length"]
        assert length is None or int(length) == len(marked.encode())
        assert answer.headers["Cache-Control"] == "no-cache"
    plain = (SITE / f"{PAGE}.html").read_text("utf-8")
    assert live_page.offered(plain) == marked != plain
    assert live_page.offered(marked) == marked and policy_of(marked) == policy_of(plain)
    # With Binder, every page of the book is built with the button in sight.
    for name, offers in ((None, False), ("owner/name", True)):
        text = ROOT / f"{PAGE}.md"
        page = tmp_path / f"{PAGE}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(plain, "utf-8")
        live_page.write_live_pages(tmp_path, [text], ROOT, name)
        html = one(parsed(page.read_text("utf-8")), PAGE, "an html element", "html")
        assert html.has_attr("data-live") == offers


# What can be wrong with a browser, a kernel, a server.


def test_browser_without_modules_reads_the_stored_results(browser, address):
    context, seen = browser.new_context(), []
    # A type that a browser does not know is not run: so "module" is in an old one.
    context.route(
        "**/*.live.html",
        lambda route: route.fulfill(
            response=(answer := route.fetch()),
            body=answer.text().replace('type="module"', 'type="of-tomorrow"'),
        ),
    )
    page = opened(context, address, seen)
    assert "the browser is too old" in reads_only(page) and seen == []
    context.close()


def test_browser_that_cannot_edit_plain_text_is_told_so(browser, address):
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(HTMLElement.prototype, 'contentEditable',"
        " {set() { throw new DOMException('no', 'SyntaxError'); }})"
    )
    page = context.new_page()
    page.goto(address)
    says(page, "This browser is too old")
    reads_only(page)
    context.close()


def test_kernel_that_cannot_live_is_one_sentence(browser, tmp_path):
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("import os; os._exit(3)")
    with started(tmp_path) as (_, address):
        page = browser.new_page()
        page.goto(address)
        says(page, "Connected")
        write(page, 1, "1")
        said = says(page, re.compile("died|could not|lost"))
        assert said.count(". ") <= 3 and "'" not in code_of(page, 1)
        # What kills it is gone: the next cell gets a kernel that lives.
        (startup / "00.py").unlink()
        for _ in range(20):
            page.get_by_role("button", name="Run cell 1", exact=True).click()
            said = says(page, re.compile("has run|died|could not|lost"))
            if "has run" in said:
                break
        assert said.startswith("Cell 1 has run")
        page.close()


def test_server_started_again_on_its_port_is_found_with_its_new_key(browser, tmp_path):
    port, context = free_port(), browser.new_context()
    homes = [tmp_path / name for name in ("first", "second")]
    for home in homes:
        home.mkdir()
    with started(homes[0], port) as (_, first):
        old = context.new_page()
        old.goto(first)
        write(old, 1, "1")
        says(old, "Cell 1 has run")
    says(old, "connection to the server is lost")
    with started(homes[1], port) as (_, second):
        assert first.split("=")[1] != second.split("=")[1]
        old.get_by_role("button", name="Run cell 1", exact=True).click()
        assert "printed last" in says(old, "does not know this page")
        new = context.new_page()
        new.goto(second)
        says(new, "Connected")
        old.get_by_role("button", name="Run cell 1", exact=True).click()
        says(old, "Cell 1 has run")
        # A second server beside it has an origin of its own, and so a key of its own.
        with started(tmp_path) as (_, beside):
            other = context.new_page()
            other.goto(beside)
            write(other, 1, "2")
            says(other, "Cell 1 has run")
            old.reload()
            says(old, "Connected")
    context.close()


def test_address_is_printed_once_the_server_listens(tmp_path):
    with started(tmp_path, program=("-c", SLOW)) as (_, address):
        port = int(re.search(r":(\d+)/", address)[1])
        socket.create_connection(("127.0.0.1", port)).close()


def test_second_server_on_a_port_says_which_to_take(address):
    port = re.search(r":(\d+)/", address)[1]
    command = [sys.executable, "-m", "tools.live", "--port", port]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == (
        f"error: port {port} is taken; choose another one, as in: make live"
        f" PORT={int(port) + 1}\n"
    )


def test_read_only_folder_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / BOOK).mkdir()
    # The tests may run as root, who is refused nothing: this answer stands for it.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PipelineError, match=f"^the site is not built, and {tmp_path}"):
        serve.build(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / BOOK]


def test_server_leaves_nothing_behind(browser, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        with started(tmp_path) as (server, address):
            page = browser.new_page()
            page.goto(address)
            write(page, 1, "open('mine.txt', 'w').close()")
            says(page, "Cell 1 has run")
            assert [p.name for p in temporary.rglob("mine.txt")] == ["mine.txt"]
            page.close()
            server.send_signal(signal.SIGINT)
            server.wait(LIMIT)
    assert list(temporary.iterdir()) == []
    # Nor did it write into the home that Jupyter takes for such files.
    assert not (tmp_path / "runtime").exists()
