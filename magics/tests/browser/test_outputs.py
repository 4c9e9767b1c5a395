"""What JupyterLab does with outputs while they are looked at: by the extension, and by the outputs' own scripts."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from .test_extension import drawn, shown, trust, zoom
from .test_notebook import WORK, settle, watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Lab

by_whom = pytest.mark.parametrize("extension", [True, False], ids=["extension", "own-script"])
FILLER = [nbformat.v4.new_markdown_cell("# between\n\n" + "text\n\n" * 20) for _ in range(12)]


def show(lab: Lab, name: str, cells: list[Any], extension: bool, *, charts: int) -> None:
    """Opens a notebook of saved outputs: not trusted where the extension shows them, else trusted."""
    watch(lab)
    lab.open(name, cells, extension=extension)
    if not extension:
        trust(lab.server, name)
        lab.open(name)
    lab.outputs(".opv").nth(charts - 1).wait_for(timeout=60_000)
    settle(lab.page)


def held(lab: Lab) -> int:
    """How many listeners, observers, timers and frames are waiting for something."""
    return lab.page.evaluate("() => window.held")


def cell(lab: Lab, number: int) -> Any:
    return lab.page.locator(".jp-Cell").nth(number)


def select(lab: Lab, number: int) -> None:
    cell(lab, number).locator(".jp-InputPrompt").click()
    settle(lab.page)


def is_static(box: Any) -> bool:
    return bool(box.locator('svg[role="img"]').is_visible())


@pytest.fixture
def windowed(lab: Lab) -> Iterator[Lab]:
    """JupyterLab that keeps only the cells in view in the page."""
    settings = lab.server.settings / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True, exist_ok=True)
    file = settings / "tracker.jupyterlab-settings"
    file.write_text('{"windowingMode": "full"}')
    yield lab
    file.unlink()


def scroll(lab: Lab, to: int) -> None:
    """Scrolls the notebook; its height is known only when all of it was seen once."""
    where = "e.scrollHeight" if to < 0 else str(to)
    for _ in range(2):
        lab.page.evaluate(
            f"() => {{ const e = document.querySelector('.jp-WindowedPanel-outer'); e.scrollTop = {where}; }}"
        )
        settle(lab.page)


@by_whom
def test_cells_out_of_view_and_hidden_first(windowed: Lab, bundles: dict[str, dict[str, Any]], extension: bool) -> None:
    lab = windowed
    hidden = shown(bundles["cell"], jupyter={"outputs_hidden": True})
    show(lab, f"windowed-{extension}.ipynb", [shown(bundles["cell"]), *FILLER, hidden], extension, charts=1)
    page = lab.page
    before = held(lab)
    assert page.locator(".opv").count() == 1, "what is hidden or out of view is not drawn"
    zoom(page, page.locator(".opv").first)
    text = page.locator(".o-says").first.inner_text()
    # JupyterLab 4.6 leaves an output of code in the page, without any height; older ones take it out. The active cell stays.
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 12; }")
    scroll(lab, 0)
    scroll(lab, -1)
    assert cell(lab, 0).locator(".opv").count() == 0 or cell(lab, 0).bounding_box()["height"] == 0
    lab.command("notebook:show-all-cell-outputs")
    last = page.locator(".jp-Cell").last
    last.locator(".opv").wait_for()
    zoom(page, last.locator(".opv"))
    scroll(lab, 0)
    first = cell(lab, 0).locator(".opv")
    first.wait_for()
    assert first.locator(".o-says").inner_text() == text, "what comes back is as it was left"
    lanes = drawn(first)
    zoom(page, first)
    assert drawn(first) != lanes
    first.focus()
    page.keyboard.press("Escape")
    settle(page)
    assert is_static(first)
    last.locator(".opv").focus()
    page.keyboard.press("Escape")
    settle(page)
    assert held(lab) <= before
    assert lab.errors == []


@by_whom
def test_moved_by_command_and_by_mouse(lab: Lab, bundles: dict[str, dict[str, Any]], extension: bool) -> None:
    def other() -> Any:
        return shown({"text/plain": "another"})

    page = lab.page
    page.set_viewport_size({"width": 1600, "height": 1600})  # all cells are in view: the mouse goes below the last
    show(lab, f"moved-{extension}.ipynb", [other(), shown(bundles["cell"]), other()], extension, charts=1)
    before = held(lab)
    box = page.locator(".jp-Cell .opv")
    zoom(page, box)
    select(lab, 1)
    lab.command("notebook:move-cell-up")
    settle(page)
    assert cell(lab, 0).locator(".opv").count() == 1
    if is_static(box):
        assert held(lab) <= before, "made anew, and nothing left of the old one"
    zoom(page, box)

    at, to = cell(lab, 0).locator(".jp-InputPrompt").bounding_box(), cell(lab, 2).bounding_box()
    page.mouse.move(at["x"] + 10, at["y"] + 8)
    page.mouse.down()
    for i in range(1, 11):
        page.mouse.move(at["x"] + 10 + i, at["y"] + 8 + (to["y"] + to["height"] - 4 - at["y"] - 8) * i / 10)
    page.mouse.up()
    settle(page)
    assert cell(lab, 0).locator(".opv").count() == 0, "the mouse has moved it"
    assert box.count() == 1
    zoom(page, box)
    box.focus()
    page.keyboard.press("Escape")
    settle(page)
    assert is_static(box)
    assert held(lab) <= before
    assert lab.errors == []


STRIPES = """async (png) => {
    const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + png)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
    return pixels.reduce((n, v, i) => n + (v !== pixels[i - 1]), 0);
}"""


def stripes(box: Any) -> int:
    """How often the colour changes from pixel to pixel where the picture has hatched what waited."""
    lane = box.locator('svg path[stroke^="url(#omni-perf"]').first
    lane.scroll_into_view_if_needed()
    box.page.mouse.move(0, 0)
    settle(box.page)
    at = lane.bounding_box()
    png = box.page.screenshot(clip=at)
    return box.page.evaluate(STRIPES, base64.b64encode(png).decode())


@by_whom
def test_shown_twice(lab: Lab, bundles: dict[str, dict[str, Any]], extension: bool) -> None:
    """A copied cell, and a view of its own: each for itself, hatching included."""
    show(lab, f"twice-{extension}.ipynb", [shown(bundles["cell"])], extension, charts=1)
    page = lab.page
    before = held(lab)
    select(lab, 0)
    lab.command("notebook:copy-cell")
    lab.command("notebook:paste-cell-below")
    boxes = page.locator(".jp-Notebook .opv")
    boxes.nth(1).wait_for()
    select(lab, 0)
    lab.command("notebook:create-output-view")
    view = page.locator(".jp-LinkedOutputView .opv")
    view.wait_for()
    settle(page)
    hatched = "() => [...document.querySelectorAll('.opv > svg')].map((e) => [...e.querySelectorAll('pattern')].map((p) => p.id).join())"
    names: list[str] = page.evaluate(hatched)
    assert len(names) == 3 and all(names) and len(set(names)) == 3, "each refers to its own pattern"

    for box, others in ((boxes.first, [boxes.nth(1), view]), (view, [boxes.nth(1)])):
        looks = [stripes(other) for other in others]
        zoom(page, box)
        for other, look in zip(others, looks, strict=True):
            assert is_static(other)
            assert abs(stripes(other) - look) < 0.1 * look, "what waited is hatched as before"
    zoom(page, boxes.nth(1))
    assert held(lab) > before
    page.evaluate(
        "() => [...window.jupyterapp.shell.widgets('main')].find((w) => w.node.querySelector('.jp-LinkedOutputView')).close()"
    )
    select(lab, 1)
    lab.command("notebook:delete-cell")
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 1")
    boxes.first.focus()
    page.keyboard.press("Escape")
    settle(page)
    assert is_static(boxes.first)
    assert held(lab) <= before, "a view that was closed and a cell that was deleted leave nothing behind"
    zoom(page, boxes.first)
    assert lab.errors == []


@by_whom
def test_behind_another_tab(lab: Lab, bundles: dict[str, dict[str, Any]], extension: bool) -> None:
    """Hidden while it is zoomed, and in a window of another width when it is back; at last closed."""
    show(lab, f"tab-{extension}.ipynb", [shown(bundles["cell"]) for _ in range(3)], extension, charts=3)
    page = lab.page
    before = held(lab)
    for box in page.locator(".opv").all():
        zoom(page, box)
    lab.command("launcher:create")
    page.wait_for_function("() => document.querySelector('.jp-NotebookPanel').classList.contains('lm-mod-hidden')")
    settle(page)
    page.set_viewport_size({"width": 900, "height": 1000})
    settle(page)
    page.evaluate(
        "() => window.jupyterapp.shell.activateById([...window.jupyterapp.shell.widgets('main')].find((w) => w.node.querySelector('.jp-Notebook')).id)"
    )
    page.locator(".opv").first.wait_for()
    settle(page)
    for box in page.locator(".opv").all():
        box.scroll_into_view_if_needed()
        settle(page)
        canvas, room = box.locator(".o-lanes canvas").bounding_box(), box.bounding_box()
        assert abs(canvas["width"] - room["width"]) < 40, "painted for the width that it has now"
        zoom(page, box)
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.dispose(); }")
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 0")
    settle(page)
    assert held(lab) <= before, "a notebook that was closed leaves nothing behind"
    assert lab.errors == []


@by_whom
def test_run_again_while_it_is_looked_at(lab: Lab, extension: bool) -> None:
    watch(lab)
    lab.open(f"again-{extension}.ipynb", ["%load_ext omni_perf", WORK], extension=extension)
    lab.run_all()
    page = lab.page
    box = page.locator(".opv")
    box.wait_for(timeout=60_000)
    settle(page)
    before = held(lab)
    for _ in range(2):
        zoom(page, box)
        page.evaluate("() => { document.querySelector('.opv').old = true; }")
        lab.run_all()
        page.wait_for_function(
            "() => { const e = document.querySelector('.opv'); return e && !e.old; }", timeout=60_000
        )
        settle(page)
        assert box.count() == 1 and is_static(box)
        assert held(lab) <= before, "the output it has replaced left nothing behind"
    zoom(page, box)
    lab.command("notebook:clear-all-cell-outputs")
    page.wait_for_function("() => document.querySelectorAll('.opv').length === 0")
    settle(page)
    assert held(lab) <= before
    assert lab.errors == []
