"""Python in the browser: what is fetched is checked, and a kernel starts from one host.

The build itself needs the npm registry and the package index, so it is slow: it is
run by `pytest -m slow`, and weekly. NumPy, SciPy and Matplotlib for browsers are on
neither.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from bs4 import BeautifulSoup
from test_live import PAGE, says
from test_site import SITE

from tools import environment, lite
from tools.command import ROOT, PipelineError
from tools.serve import served
from tools.site import live_page


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def release(tmp_path):
    """What stands for the address of a release of Pyodide, and its folder."""
    folder = tmp_path / "release"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    handler.log_message = lambda *_: None
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", folder
    server.shutdown()
    server.server_close()


def test_compiled_packages_are_those_that_the_lock_of_pyodide_names(release, tmp_path):
    address, folder = release
    packages = {}
    for name in lite.COMPILED:
        (folder / f"{name}.whl").write_bytes(name.encode())
        packages[name] = {"file_name": f"{name}.whl", "sha256": sha256(name.encode())}
    got = tmp_path / "got"
    got.mkdir()
    (got / lite.LOCK).write_text(json.dumps({"packages": packages}))
    lite.fetch_compiled(got, address)
    assert {p.stem for p in got.glob("*.whl")} == set(lite.COMPILED)
    (got / "scipy.whl").unlink()
    (folder / "scipy.whl").write_bytes(b"another")
    with pytest.raises(PipelineError, match="scipy.whl is not the one that the lock"):
        lite.fetch_compiled(got, address)
    assert not (got / "scipy.whl").exists()
    (folder / "scipy.whl").unlink()
    with pytest.raises(PipelineError, match="scipy.whl cannot be fetched: .*404"):
        lite.fetch_compiled(got, address)


def test_another_pyodide_is_refused_before_it_is_unpacked(tmp_path):
    archive, folder = tmp_path / "pyodide.tgz", tmp_path / "got"
    folder.mkdir()
    with tarfile.open(archive, "w:gz") as packed:
        for name in (*lite.RUNTIME, lite.LOCK):
            (tmp_path / name).write_text(name)
            packed.add(tmp_path / name, f"package/{name}")
    with pytest.raises(PipelineError, match="pyodide.tgz is not Pyodide 3"):
        lite.unpack_core(archive, folder)
    assert list(folder.iterdir()) == []
    digest = hashlib.sha512(archive.read_bytes()).digest()
    lite.unpack_core(archive, folder, base64.b64encode(digest).decode())
    assert {p.name for p in folder.iterdir()} == {*lite.RUNTIME, lite.LOCK}


def wheel(folder, name, *needs):
    path = folder / f"{name}-1.0-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    lines += [f"Requires-Dist: {need}" for need in needs]
    with zipfile.ZipFile(path, "w") as files:
        files.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines))
        files.writestr(f"{name}/__init__.py", "")
    return path


def test_lock_names_what_is_there_with_its_digest_and_needs(tmp_path):
    one = wheel(
        tmp_path, "one", "two>=1", "numpy", "far", "win; sys_platform == 'win32'"
    )
    wheel(tmp_path, "two", "tests; extra == 'dev'")
    (tmp_path / "numpy.whl").touch()
    known = {"depends": ["libfar"], "file_name": "numpy.whl", "sha256": "0"}
    absent = {"depends": [], "file_name": "absent.whl", "sha256": "0"}
    lock = {"info": 1, "packages": {"numpy": known, "absent": absent}}
    made = lite.with_packages(lock, tmp_path)
    assert made["info"] == 1 and set(made["packages"]) == {"one", "two", "numpy"}
    entry = made["packages"]["one"]
    assert entry["depends"] == ["numpy", "two"] and entry["imports"] == ["one"]
    assert entry["sha256"] == sha256(one.read_bytes())
    assert made["packages"]["numpy"]["depends"] == []
    assert made["packages"]["two"]["depends"] == []
    assert sorted(lite.loaded(made, ("one",))) == ["numpy", "one", "two"]


def test_pages_offer_it_with_its_size(tmp_path, monkeypatch):
    for suffix in (".html", live_page.SUFFIX):
        for text in lite.texts():
            name = text.relative_to(ROOT).with_suffix(suffix)
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SITE / name, tmp_path / name)
    lite.offer(tmp_path, 42)
    monkeypatch.setattr(lite, "texts", lambda: [ROOT / f"{PAGE}.md"])
    lite.offer(tmp_path, 42)  # twice is once
    twin = (tmp_path / f"{PAGE}{live_page.SUFFIX}").read_text("utf-8")
    (bar,) = BeautifulSoup(twin, "html.parser").find_all(attrs={"data-lite": True})
    start = f"../../lite/notebooks/index.html?path={PAGE}.ipynb"
    assert (bar["class"], bar["data-lite"]) == (["live"], start)
    assert bar["data-size"] == "42" and twin.count("data-lite") == 1
    page = (tmp_path / f"{PAGE}.html").read_text("utf-8")
    plain = (SITE / f"{PAGE}.html").read_text("utf-8")
    assert page == live_page.offered(plain)


@pytest.fixture(scope="module")
def with_lite(tmp_path_factory):
    """A copy of the site with Python in the browser, without the compiled packages."""
    top = tmp_path_factory.mktemp("lite")
    shutil.copytree(SITE, top / "html", ignore=shutil.ignore_patterns(lite.LITE))
    pyodide = top / "pyodide"
    pyodide.mkdir()
    environment.main(lite.ENVIRONMENT, lite.BUILDER)
    tools = ROOT / lite.ENVIRONMENT / "bin"
    lite.fetch_core(pyodide)
    lite.fetch_pure(pyodide, tools / "python")
    lite.book_wheel(pyodide)
    size = lite.add_lite(top / "html", pyodide, tools / "jupyter-lite")
    with served(top / "html") as address:
        yield address, size


@pytest.mark.slow
def test_kernel_in_the_browser_runs_the_package_and_asks_no_other_host(
    with_lite, browser
):
    address, size = with_lite
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    foreign, bytes_of = [], {}

    def note(request):
        if not request.url.startswith((address, "data:", "blob:")):
            foreign.append(request.url)

    def count(response):
        length = response.headers.get("content-length", "0")
        bytes_of[response.url.partition("?")[0]] = int(length)

    context.on("request", note)
    page = context.new_page()
    page.goto(f"{address}{PAGE}.html")
    context.on("response", count)
    with context.expect_page() as opened:
        page.get_by_role("link", name="Live code").click()
    twin = opened.value
    assert "No server answers" in says(twin, "No server answers")
    assert not any("/lite/" in each for each in bytes_of)  # nothing before the click
    twin.get_by_role("button", name=f"Python in the browser ({size} MB)").click()
    twin.wait_for_url("**/lite/**")
    code = twin.locator(".jp-CodeCell").first
    code.locator(".cm-content").click()
    twin.keyboard.press("Control+a")
    twin.keyboard.type("import sys, lib; print(6 * 7, sys.platform, lib.__name__)")
    twin.keyboard.press("Shift+Enter")
    code.get_by_text("42 emscripten lib").wait_for()
    # A package that is not there is refused here, and asked for nowhere else.
    code.locator(".cm-content").click()
    twin.keyboard.press("Control+a")
    twin.keyboard.type("%pip install numpy")
    twin.keyboard.press("Shift+Enter")
    code.get_by_text("Can't find a pure Python 3 wheel").or_(
        code.get_by_text("ValueError")
    ).first.wait_for()
    assert foreign == []
    loaded = sum(n for url, n in bytes_of.items() if "/lite/" in url) / 1e6
    assert 0.7 * size < loaded < 1.3 * size, (loaded, size)
    context.close()


def test_policy_of_a_page_of_jupyterlite_names_this_host_alone():
    html = "<html><head></head><script>a()</script></html>"
    policy = lite.with_its_policy(html).split('content="')[1].split('"')[0]
    parts = dict(part.split(None, 1) for part in policy.split("; "))
    assert parts["script-src"].startswith("'self' 'unsafe-eval'")
    assert "sha256-" in parts["script-src"] and "http" not in policy
    assert parts["connect-src"] == "'self' data: blob:"
    assert parts["default-src"] == "'self'"


def test_versions_of_pyodide_and_of_its_kernel_belong_together():
    """What the kernel in .venv-lite says, where that environment has been made."""
    python = ROOT / lite.ENVIRONMENT / "bin" / "python"
    if not python.exists():
        pytest.skip("made by python -m tools.lite")
    ask = "from jupyterlite_pyodide_kernel.constants import PYODIDE_VERSION as v"
    result = subprocess.run(
        [python, "-c", f"{ask}; print(v)"], capture_output=True, text=True
    )
    assert result.stdout.strip() == lite.VERSION
