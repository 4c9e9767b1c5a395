"""What a person does with the page of a torch trace, opened from a file."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from requirement import missing

from .conftest import PICTURES, ROOT


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of twelve ranks that were made up."""
    if shutil.which("go") is None:
        missing("go", "Go is not here; it makes the page")
    folder = tmp_path_factory.mktemp("trace")
    program, traces, page = folder / "omni-perf", folder / "run", folder / "page.html"
    subprocess.run(["go", "build", "-o", str(program), "./cmd/omni-perf"], check=True, cwd=ROOT)
    subprocess.run([str(program), "make-traces", str(traces), "--ranks", "12"], check=True)
    subprocess.run([str(program), "analyze", str(traces), "--quiet", "--html", str(page)], check=True)
    return page


class Sheet:
    """The page; errors of any kind, those of its policy too, fail its test."""

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.goto(file.as_uri())

    def shown(self) -> Any:
        """The step that is chosen."""
        return self.page.locator(".steps > section:visible")

    def settle(self) -> None:
        self.page.wait_for_timeout(300)
        self.page.evaluate("() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def zoom(self) -> None:
        box = self.shown().locator(".opv").bounding_box()
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 160)
        self.page.keyboard.down("Control")
        self.page.mouse.wheel(0, -600)
        self.page.keyboard.up("Control")
        self.settle()


@pytest.fixture
def sheet(browser: Any, traced: Path, request: pytest.FixtureRequest) -> Iterator[Sheet]:
    context = browser.new_context(**({"viewport": {"width": 1180, "height": 1000}} | getattr(request, "param", {})))
    s = Sheet(context.new_page(), traced)
    yield s
    context.close()
    assert s.errors == []


def test_a_step_can_be_zoomed_and_selected(sheet: Sheet) -> None:
    sheet.page.wait_for_selector(".opv svg")
    sheet.zoom()
    assert sheet.shown().locator("canvas").count() > 0
    assert sheet.shown().locator(".o-says").inner_text().startswith("Shown ")
    sheet.shown().locator(".opv").focus()
    sheet.page.keyboard.press("Escape")
    sheet.settle()
    assert sheet.shown().locator(".opv > svg").is_visible()


def test_the_view_of_merged_calls(sheet: Sheet) -> None:
    sheet.shown().get_by_role("button", name="Flame graph").click()
    sheet.settle()
    assert "callees" in sheet.shown().locator(".opv").inner_text()
    assert sheet.shown().locator("canvas").count() > 0
    assert sheet.shown().get_by_role("button", name="GPU idle").count() == 0


def test_another_step_is_chosen_by_mouse_and_keys(sheet: Sheet) -> None:
    first = sheet.shown().locator("svg title, svg desc").first.text_content()
    labels = sheet.page.locator(".steps > label")
    assert labels.count() == 3
    labels.nth(1).click()
    assert sheet.shown().count() == 1
    assert sheet.shown().locator("svg title, svg desc").first.text_content() != first
    sheet.zoom()  # what was hidden at first works, too
    assert sheet.shown().locator("canvas").count() > 0
    sheet.page.locator("#step1").focus()
    sheet.page.keyboard.press("ArrowRight")
    assert sheet.page.locator("#step2").is_checked()


def test_its_own_figures_stand_with_a_step(sheet: Sheet) -> None:
    figures = sheet.shown().locator("dt").all_inner_texts()
    assert {"length", "device busy", "device idle", "launches"} <= set(figures)


@pytest.mark.parametrize("sheet", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_it_is_read_and_steps_are_chosen(sheet: Sheet) -> None:
    assert sheet.page.locator(".answer").is_visible()
    assert sheet.shown().locator("svg").first.is_visible()
    sheet.page.locator(".steps > label").nth(2).click()
    assert "idle least" in sheet.page.locator(".steps > label").nth(2).inner_text()
    assert "idle least" in sheet.shown().locator("svg").first.text_content()


@pytest.mark.parametrize(
    "sheet",
    [
        {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        for width in (560, 1100, 1800)
        for scheme in ("light", "dark")
    ],
    indirect=True,
)
def test_widths_and_themes(sheet: Sheet, request: pytest.FixtureRequest) -> None:
    width = sheet.page.viewport_size["width"]
    assert sheet.page.evaluate("() => document.documentElement.scrollWidth") <= width
    # Small charts stand side by side where there is room.
    lefts = {round(f.bounding_box()["x"]) for f in sheet.page.locator("body > .grid > figure").all()}
    assert len(lefts) == {560: 1, 1100: 2, 1800: 4}[width]
    PICTURES.mkdir(parents=True, exist_ok=True)
    scheme = "dark" if sheet.page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    sheet.page.screenshot(path=str(PICTURES / f"trace-{width}-{scheme}.png"), full_page=True)


def test_print_shows_pictures_and_no_controls(sheet: Sheet) -> None:
    sheet.zoom()
    sheet.page.emulate_media(media="print")
    assert sheet.shown().locator(".opv > svg").is_visible()
    assert not sheet.page.locator(".steps > label").first.is_visible()
    assert not sheet.page.locator("details").last.is_visible()


HOSTILE = "attention</script><img src=x onerror=document.title='run'>"


@pytest.fixture(scope="session")
def remembered(traced: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a memory snapshot: 20 weights of 8 MiB that stay, and in each of 5 steps 10 activations of 16 MiB."""
    folder = tmp_path_factory.mktemp("memory")
    events: list[dict[str, object]] = []

    def event(action: str, address: int, size: int, function: str, line: int) -> None:
        frames = [{"filename": "/home/me/model.py", "line": line, "name": function}]
        when = 1_700_000_000_000_000 + 1000 * len(events)
        events.append({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": when})

    event("segment_alloc", 1 << 40, 1 << 30, "main", 1)
    weights = [(1 << 40) + n * (8 << 20) for n in range(20)]
    for address in weights:
        event("alloc", address, 8 << 20, "__init__", 7)
    for _ in range(5):
        activations = [(1 << 41) + n * (16 << 20) for n in range(10)]
        for address in activations:
            event("alloc", address, 16 << 20, HOSTILE, 30)
        for address in reversed(activations):
            event("free_completed", address, 16 << 20, HOSTILE, 30)
    snapshot, page = folder / "snapshot.pickle", folder / "page.html"
    snapshot.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}, protocol=4))
    program = traced.with_name("omni-perf")
    subprocess.run([program, "analyze", "--memory-snapshot", snapshot, "--quiet", "--html", page], check=True)
    return page


@pytest.fixture
def memory(browser: Any, remembered: Path) -> Iterator[Sheet]:
    context = browser.new_context(viewport={"width": 1180, "height": 1000})
    s = Sheet(context.new_page(), remembered)
    yield s
    assert s.page.title() != "run"
    context.close()
    assert s.errors == []


def text_of(sheet: Sheet, name: str) -> str:
    return str(sheet.page.locator(f".alloc {name}").inner_text())


def test_pointing_at_an_allocation_shows_its_stack_and_a_click_keeps_it(memory: Sheet) -> None:
    canvas = memory.page.locator(".alloc canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    memory.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 40)  # near the bottom: a weight
    assert text_of(memory, ".is").startswith("8.00 MiB ") and "__init__" in text_of(memory, ".is")
    assert "still held at the end" in text_of(memory, ".is") and "20 of this stack, 160 MiB together" in text_of(
        memory, ".is"
    )
    assert " allocated of 1.00 GiB reserved" in text_of(memory, ".now")
    memory.page.mouse.down()
    memory.page.mouse.up()
    memory.page.mouse.move(box["x"] + 300, box["y"] + 150)
    assert "__init__" in text_of(memory, ".is")  # it stays
    canvas.focus()
    memory.page.keyboard.press("Escape")
    memory.page.keyboard.press("ArrowDown")  # the largest one
    assert text_of(memory, ".is").startswith("16.0 MiB ") and HOSTILE in text_of(memory, ".is")


def test_a_stretch_of_the_history_lists_what_was_there(memory: Sheet) -> None:
    canvas = memory.page.locator(".alloc canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert ["800 MiB", "50"] in [row.split("\t")[:2] for row in text_of(memory, ".alive").splitlines()]
    memory.page.mouse.move(box["x"] + 90, box["y"] + 100)
    memory.page.mouse.down()
    memory.page.mouse.move(box["x"] + 170, box["y"] + 120)  # the weights come, and nothing else
    memory.page.mouse.up()
    assert text_of(memory, ".alive").startswith("Between ") and HOSTILE not in text_of(memory, ".alive")
    canvas.dblclick()
    assert text_of(memory, ".alive").startswith("In all") and HOSTILE in text_of(memory, ".alive")
