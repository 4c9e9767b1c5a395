"""The viewer in a notebook's output: in JupyterLab with a real kernel, and by other front ends' rules."""

from __future__ import annotations

import html
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from requirement import missing

from .conftest import PICTURES, ROOT
from .test_viewer import WATCH

if TYPE_CHECKING:
    from .conftest import Lab

WORK = """%%omni_perf
import time, math, json
def compute(n):
    return sum(math.sqrt(i) for i in range(n))
def load():
    time.sleep(0.03)
    return json.dumps(list(range(40_000)))
for step in range(8):
    load()
    compute(150_000)
"""
ONE = 'svg[role="img"]'


def settle(page: Any) -> None:
    page.wait_for_timeout(400)
    page.evaluate("() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")


def watch(lab: Lab) -> None:
    """Has errors on the console fail the test, too, and counts what outlives an output."""
    lab.page.on("console", lambda m: lab.errors.append(m.text) if m.type == "error" else None)
    lab.page.on("response", lambda r: lab.errors.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    own = "new Error().stack.includes(location.href)"
    ours = "/omni-perf[/]static[/]/.test(new Error().stack) || !new Error().stack.includes('/static/')"
    assert own in WATCH
    lab.page.add_init_script(WATCH.replace(own, ours))  # JupyterLab's own scripts are in /static


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_looking_closer_where_the_chart_stands(lab: Lab, dark: bool) -> None:
    """In the light theme by the extension, in the dark one by the output's own script."""
    theme = "dark" if dark else "light"
    watch(lab)
    lab.open(f"closer-{theme}.ipynb", ["%load_ext omni_perf", WORK], dark=dark, extension=not dark)
    lab.run_all()
    page = lab.page
    box = page.locator(".opv").first
    box.wait_for(timeout=60_000)
    picture = box.locator(ONE)
    picture.scroll_into_view_if_needed()
    settle(page)

    def shot(name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        box.screenshot(path=str(PICTURES / f"notebook-{theme}-{name}.png"))

    def press(key: str) -> None:
        page.keyboard.press(key)
        settle(page)

    shot("static")
    lab.picture(f"notebook-{theme}")
    head, at = box.locator(".o-head").bounding_box(), picture.bounding_box()
    assert head["y"] + head["height"] <= at["y"] + 1, "the views do not lie over the picture's title"
    cells = page.locator(".jp-Cell").count()

    # Ctrl and the wheel.
    page.mouse.move(at["x"] + at["width"] * 0.4, at["y"] + at["height"] * 0.4)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -240)
    page.keyboard.up("Control")
    settle(page)
    assert picture.is_hidden()
    assert box.locator(".o-says").inner_text().startswith("Shown ")
    shot("zoomed")
    box.focus()
    press("Escape")
    assert picture.is_visible(), "leaving returns to the picture"

    # A drag selects; w, a, d and the arrows are the chart's, not the notebook's.
    at = picture.bounding_box()
    y = at["y"] + at["height"] * 0.4
    page.mouse.move(at["x"] + at["width"] * 0.3, y)
    page.mouse.down()
    for i in range(1, 6):
        page.mouse.move(at["x"] + at["width"] * (0.3 + 0.05 * i), y)
    page.mouse.up()
    settle(page)
    assert box.locator(".o-says").inner_text().startswith("Selected ")
    shot("selected")
    box.focus()
    for key in ("w", "d", "a", "ArrowDown", "ArrowRight", "Enter"):
        press(key)
    page.mouse.move(at["x"] + at["width"] * 0.5, y)
    settle(page)
    shot("pointed")
    press("0")

    # Search, and every view.
    press("/")
    page.keyboard.type("compute")
    settle(page)
    assert "compute" in box.locator(".o-says").inner_text()
    shot("search")
    press("Escape")
    for tab in box.locator(".o-head button[aria-pressed]").all()[1:]:
        tab.click()
        settle(page)
        shot("view-" + tab.inner_text().lower().replace(" ", "-"))
        assert box.locator(".o-below, .o-graph").first.is_visible()
    box.locator(".o-head button").first.click()
    settle(page)
    assert picture.is_visible()
    assert page.locator(".jp-Cell").count() == cells
    assert lab.errors == []


def test_cleared_and_run_again_nothing_is_left(lab: Lab) -> None:
    watch(lab)
    lab.open("again.ipynb", ["%load_ext omni_perf", WORK, WORK, WORK])
    lab.run_all()
    page = lab.page
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 3", timeout=60_000)
    held: int = page.evaluate("() => window.held")
    for box in page.locator(".opv").all():
        box.scroll_into_view_if_needed()
        box.focus()
        page.keyboard.press("w")
        settle(page)
        assert box.locator(".o-lanes canvas").is_visible()
    assert page.evaluate("() => window.held") > held, "an open viewer watches the page: the count counts"
    lab.command("notebook:clear-all-cell-outputs")
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 0")
    settle(page)
    assert page.evaluate("() => window.held") <= held, "a cleared output leaves nothing behind"
    lab.run_all()
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 3", timeout=60_000)
    assert lab.errors == []


# The rules of other front ends, on what a sidecar makes of a recorded cell.


@pytest.fixture(scope="session")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The HTML of a cell's output."""
    path = tmp_path_factory.mktemp("output") / "cell.html"
    program = ROOT / "sidecar" / "testkit" / "harness"
    report = ROOT / "sidecar" / "understand" / "report" / "testdata" / "cell.json"
    made = subprocess.run(
        ["go", "run", str(program), "-report", str(report), "-o", str(path.parent)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        missing("go", f"Go is not here; it makes the output: {made.stderr[-200:]}")
    return path.read_text()


class Page:
    """A page around an output."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.page = browser.new_page(viewport={"width": 1100, "height": 900})
        self.folder = folder
        self.errors: list[str] = []
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))

    def show(self, html: str) -> None:
        path = self.folder / "page.html"
        path.write_text(f'<!doctype html><meta charset="utf-8">{html}')
        self.page.goto(path.as_uri())
        settle(self.page)

    def zooms(self) -> bool:
        self.page.locator(".opv").first.focus()
        self.page.keyboard.press("w")
        settle(self.page)
        return bool(self.page.locator(".o-lanes canvas").first.is_visible())


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    p = Page(browser, tmp_path)
    yield p
    p.page.close()
    assert p.errors == []


def test_by_the_rules_of_vs_code(page: Page, output: str) -> None:
    """Scripts are made anew with type, src, nonce, noModule and async only, appended, and removed at once."""
    page.show("<body class='vscode-dark'><div id=container></div>")
    page.page.evaluate(
        """(html) => {
            const container = document.getElementById('container');
            container.innerHTML = html;
            for (const old of [...container.getElementsByTagName('script')]) {
                const script = document.createElement('script');
                script.text = old.innerText;
                for (const name of ['type', 'src', 'nonce', 'noModule', 'async'])
                    if (old[name] || old.getAttribute(name)) script.setAttribute(name, old[name] || old.getAttribute(name));
                container.appendChild(script).parentNode.removeChild(script);
            }
        }""",
        output,
    )
    assert page.zooms()


def test_in_a_frame_of_its_own(page: Page, output: str) -> None:
    """As Colab and marimo show each output: sandboxed, of no origin."""
    page.show(
        f"<iframe sandbox='allow-scripts' style='width:100%;height:800px' srcdoc=\"{html.escape(output)}\"></iframe>"
    )
    frame = page.page.frames[-1]
    frame.locator(".opv").focus()
    page.page.keyboard.press("w")
    settle(page.page)
    assert frame.locator(".o-lanes canvas").is_visible()


@pytest.mark.parametrize("policy", ["default-src 'none'; img-src data:", "default-src 'self' data:; script-src 'self'"])
def test_a_strict_policy_leaves_the_picture(browser: Any, tmp_path: Path, output: str, policy: str) -> None:
    p = Page(browser, tmp_path)
    p.show(f'<meta http-equiv="Content-Security-Policy" content="{policy}">{output}')
    assert p.page.locator(".opv").count() == 0
    image = p.page.locator("img").first
    assert image.evaluate("e => e.complete && e.naturalWidth > 0")
    p.page.close()


def test_hidden_first(page: Page, output: str) -> None:
    page.show(f"<div id=away style='display:none'>{output}</div>")
    page.page.evaluate("() => { document.querySelector('.o-head button:nth-child(2)').click(); }")
    settle(page.page)
    page.page.evaluate("() => { document.getElementById('away').style.display = ''; }")
    settle(page.page)
    assert page.page.locator(".o-graph canvas").first.is_visible()


def test_nbconvert_writes_a_page_that_can_be_explored(page: Page, output: str) -> None:
    nbformat = pytest.importorskip("nbformat")
    shown = nbformat.v4.new_output("display_data", {"text/html": output, "text/plain": "a chart"})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%%omni_perf\n1", outputs=[shown])])
    path = page.folder / "converted.ipynb"
    nbformat.write(notebook, str(path))
    made = subprocess.run(
        [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "--template", "basic", str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"nbconvert is not here: {made.stderr[-200:]}")
    page.show(path.with_suffix(".html").read_text())
    assert page.zooms()
