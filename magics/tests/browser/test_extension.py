"""The JupyterLab extension: charts of a notebook that was saved, whoever opens it."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from .conftest import PICTURES, ROOT
from .test_notebook import settle, watch

if TYPE_CHECKING:
    from .conftest import Lab, Server

MARK = "application/vnd.omni-perf.chart.v1+json"
RELEASED = sorted((ROOT / "sidecar" / "show" / "viewer" / "testdata").glob("output-*.json"))
"""Outputs as released versions of the payload wrote them, without their scripts."""


def shown(data: dict[str, Any], **metadata: Any) -> Any:
    """A cell whose output is shown."""
    output = nbformat.v4.new_output("display_data", data)
    return nbformat.v4.new_code_cell("%%omni_perf\n1", outputs=[output], execution_count=1, metadata=metadata)


def trust(server: Server, name: str) -> None:
    notary = NotebookNotary(data_dir=server.env["JUPYTER_DATA_DIR"])
    notary.sign(nbformat.read(server.notebooks / name, as_version=4))
    notary.store.close()


def is_trusted(lab: Lab) -> bool:
    return lab.page.evaluate(
        "() => [...window.jupyterapp.shell.currentWidget.content.model.cells].every((c) => c.type !== 'code' || c.trusted)"
    )


def zoom(page: Any, box: Any) -> None:
    box.scroll_into_view_if_needed()
    box.focus()
    page.keyboard.press("w")
    settle(page)
    assert box.locator(".o-lanes canvas").is_visible()


def drawn(box: Any) -> str:
    """The lanes' pixels."""
    return box.locator(".o-lanes canvas").evaluate("e => e.width + 'x' + e.height + ' ' + e.toDataURL()")


def test_a_notebook_that_is_not_trusted_can_be_explored(lab: Lab, bundles: dict[str, dict[str, Any]]) -> None:
    watch(lab)
    cell, folded = bundles["cell"], bundles["folded"]
    lab.open("stranger.ipynb", [shown(cell), shown(folded), shown(cell), nbformat.v4.new_markdown_cell("after")])
    page = lab.page
    boxes = page.locator(".jp-Cell .opv")
    boxes.nth(1).wait_for(timeout=60_000)
    assert not is_trusted(lab)
    assert boxes.count() == 2
    assert boxes.first.locator("svg title").count() > 3, "the picture is inline, with tooltips"
    assert lab.outputs(":is(style, script:not([type]):not([src]))").count() == 0, (
        "nothing of the notebook's runs or styles"
    )
    settle(page)
    held: int = page.evaluate("() => window.held")
    first = boxes.first
    lab.picture("extension-light")

    # Zoom, select, search, and back.
    zoom(page, first)
    assert first.locator(".o-says").inner_text().startswith("Shown ")
    page.keyboard.press("0")
    settle(page)
    picture = first.locator('svg[role="img"]')
    assert picture.is_visible(), "leaving returns to the picture"
    at: Any = picture.bounding_box()
    page.mouse.move(at["x"] + at["width"] * 0.3, at["y"] + at["height"] * 0.4)
    page.mouse.down()
    for i in range(1, 6):
        page.mouse.move(at["x"] + at["width"] * (0.3 + 0.05 * i), at["y"] + at["height"] * 0.4)
    page.mouse.up()
    settle(page)
    assert first.locator(".o-says").inner_text().startswith("Selected ")
    first.screenshot(path=str(PICTURES / "extension-selected.png"))
    page.keyboard.press("/")
    page.keyboard.type("e")
    settle(page)
    assert "“e”" in first.locator(".o-says").inner_text()

    # A folded one, which has a little of the data and no script.
    details = lab.outputs("details").first
    assert "Cell" in details.locator("summary").inner_text() and details.locator("svg").count() == 0
    details.locator("summary").click()
    boxes.nth(2).wait_for()
    zoom(page, details.locator(".opv"))
    details.screenshot(path=str(PICTURES / "extension-folded.png"))

    # Moved, hidden and shown, shown twice.
    page.locator(".jp-Cell .jp-InputPrompt").first.click()
    lab.command("notebook:move-cell-down")
    page.locator(".jp-Cell").nth(1).locator(".opv").wait_for()
    settle(page)
    assert boxes.count() == 3
    zoom(page, page.locator(".jp-Cell").nth(1).locator(".opv"))
    lab.command("notebook:hide-all-cell-outputs")
    settle(page)
    lab.command("notebook:show-all-cell-outputs")
    settle(page)
    zoom(page, boxes.nth(2))
    lab.command("notebook:create-output-view")
    copy = page.locator(".jp-LinkedOutputView .opv")
    copy.wait_for()
    zoom(page, copy)
    assert page.evaluate("() => window.held") > held, "an open viewer watches the page: the count counts"

    lab.command("notebook:clear-all-cell-outputs")
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 0")
    settle(page)
    assert page.evaluate("() => window.held") <= held, "a cleared output leaves nothing behind"
    assert lab.errors == []


def test_it_draws_what_the_inline_script_draws(lab: Lab, bundles: dict[str, dict[str, Any]]) -> None:
    """Trusted and dark, with the extension and without."""
    watch(lab)
    page = lab.page
    lanes: list[str] = []
    texts: list[str] = []
    for extension in (True, False):
        name = f"trusted-{extension}.ipynb"
        lab.open(name, [shown(bundles["cell"])])
        trust(lab.server, name)
        lab.open(name, dark=True, extension=extension)
        box = lab.outputs(".opv").first
        box.wait_for(timeout=60_000)
        assert is_trusted(lab)
        assert page.locator("link[href*='omni-perf/static']").count() == (2 if extension else 0)
        settle(page)
        ink = box.locator("svg text").first.evaluate("e => getComputedStyle(e).fill")
        assert min(int(v) for v in re.findall(r"\d+", ink)[:3]) > 100, f"text is {ink} on a dark page"
        lab.picture(f"extension-{'trusted' if extension else 'without'}-dark")
        zoom(page, box)
        lanes.append(drawn(box))
        texts.append(box.inner_text())
    assert lanes[0] == lanes[1]
    assert texts[0] == texts[1]
    assert lab.errors == []


def test_versions_it_knows_and_others(lab: Lab) -> None:
    """What released versions wrote is drawn; of others, of damaged and of hostile outputs there is the picture."""
    requests: list[str] = []
    watch(lab)
    lab.page.on("request", lambda r: requests.append(r.url))
    released = [json.loads(path.read_text()) for path in RELEASED]
    assert released
    latest = released[-1]
    page_of: str = latest["text/html"]

    def changed(old: str, new: str) -> dict[str, Any]:
        assert old in page_of
        return {**latest, "text/html": page_of.replace(old, new)}

    picture = re.search(r"base64,([^\"]+)", page_of)
    assert picture
    hostile = base64.b64decode(picture[1]).decode()
    hostile = hostile.replace(
        "<desc>",
        "<style>body{display:none}@import url(https://evil.invalid/a.css);</style><script>window.pwned=1</script>"
        '<image href="https://evil.invalid/b.png"/><foreignObject><div xmlns="http://www.w3.org/1999/xhtml" class="jp-Dialog">x</div></foreignObject>'
        '<rect width="9" height="9" onclick="window.pwned=2" style="position:fixed" fill="url(https://evil.invalid/c.svg#x)"/>'
        '<a href="javascript:window.pwned=3"><text x="9" y="9">click</text></a><desc>',
        1,
    ).replace('<svg width="1120.0"', '<svg width="1120.0;position:fixed;inset:0" onload="window.pwned=4"', 1)
    assert "position:fixed;inset" in hostile
    evil = page_of.replace(picture[1], base64.b64encode(hostile.encode()).decode())
    evil = evil.replace(
        "<div data-lm",
        "<style>body{display:none}</style><script>window.pwned=5</script><img src=https://evil.invalid/d.png onerror='window.pwned=6'>"
        "<iframe src=https://evil.invalid/e.html></iframe><div data-lm",
        1,
    )
    cases = [
        *released,
        changed("omni_perf 2 ", "omni_perf 3 "),
        changed("omni_perf 2 ", 'omni_perf 2 timeline:x" onclick '),
        {**latest, MARK: {"kind": "constructor"}},
        {**latest, "text/html": evil},
        {**latest, "text/html": "<b>nothing of ours</b>"},
    ]
    lab.open("versions.ipynb", [shown(c) for c in cases])
    page = lab.page
    cells = page.locator(".jp-Cell")
    n = len(released)
    for i in range(n):
        cells.nth(i).locator(".opv").wait_for(timeout=60_000)
        zoom(page, cells.nth(i).locator(".opv"))

    def noted(i: int) -> str:
        cell = cells.nth(i)
        cell.scroll_into_view_if_needed()
        cell.locator("svg").first.wait_for()
        assert cell.locator(".opv").count() == 0
        return cell.locator('[role="note"]').inner_text()

    assert noted(n) == (
        "To look at this chart closer, this JupyterLab needs another omni_perf: "
        "the chart's data is of version 3, this one reads version 2."
    )
    lab.picture("extension-version")
    assert "damaged" in noted(n + 1)
    assert "another omni_perf" in noted(n + 2)
    attacked = cells.nth(n + 3)
    attacked.scroll_into_view_if_needed()
    attacked.locator(".opv").wait_for()
    zoom(page, attacked.locator(".opv"))
    assert (
        attacked.locator(
            "style, image, foreignObject, a, .jp-Dialog, [onclick], [onload], [style*=fixed], [fill*=evil]"
        ).count()
        == 0
    )
    cells.nth(n + 4).scroll_into_view_if_needed()
    assert "Cell" in cells.nth(n + 4).locator("pre").last.inner_text(), "where there is no picture of ours, the text"
    assert page.evaluate("() => window.pwned") is None
    assert page.evaluate("() => getComputedStyle(document.body).display") != "none"
    lab.errors = [e for e in lab.errors if "ERR_NAME_NOT_RESOLVED" not in e]
    # JupyterLab itself loads d.png: an img of an output in a notebook that is not trusted is allowed to it.
    assert {url for url in requests if "evil" in url} <= {"https://evil.invalid/d.png"}
    assert lab.errors == []


def test_jupyterlab_finds_what_is_built() -> None:
    config = pytest.importorskip(
        "jupyterlab_server.config", reason="JupyterLab is not installed (make build installs it)"
    )
    folder = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    found = config.get_federated_extensions([str(folder)])["omni-perf"]
    assert found["jupyterlab"]["_build"] == {"load": "static/remoteEntry.js", "mimeExtension": "./mimeExtension"}
    assert found["install"]["packageName"] == "omni_perf"
    assets = ROOT / "sidecar" / "show" / "viewer" / "assets"
    for file in (folder / "omni-perf" / "static").iterdir():
        source = "labextension.js" if file.name == "remoteEntry.js" else file.name
        assert file.read_bytes() == (assets / source).read_bytes(), f"{file.name} is not up to date: make build"
