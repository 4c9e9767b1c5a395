"""What the viewer costs in a page, beside an empty canvas of the same run.

    open       from the first zoom to lanes on the screen: unpacking, reading, first painting
    script     our own time per frame while panning and zooming: choose, lay out, paint
    interval   between frames meanwhile, beside the interval of a canvas that is only cleared

A million spans of five threads, stacks 30 calls deep, each unlike the one before: the worst case; 1,100
pixels, headless Chromium, painting in software. --spans and --rounds change that. `make bench-viewer`
builds what it needs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

from frames import EMPTY, PROBE, chromium

ROOT = Path(__file__).parents[2]

OPEN = """async () => {
    const box = document.querySelector('.opv'), svg = box.querySelector('svg').getBoundingClientRect();
    const began = performance.now();
    box.querySelector('svg').dispatchEvent(new WheelEvent('wheel', {
        bubbles: true, cancelable: true, ctrlKey: true, deltaY: -300,
        clientX: svg.left + 500, clientY: svg.top + 200}));
    while (!box.querySelector('.o-lanes canvas')?.width || !box.querySelector('.o-says').textContent)
        await new Promise((r) => setTimeout(r, 1));
    await new Promise((r) => setTimeout(r, 400));  // tables
    return performance.now() - began - 400;
}"""

# Zooming at a point that moves, and panning: every frame shows another window.
LANES = """async (frames) => {
    const stage = document.querySelector('.o-lanes'), box = stage.getBoundingClientRect();
    window.probe.spent = [];
    window.probe.on = true;
    const intervals = await window.frames_of(frames, (i) => stage.dispatchEvent(new WheelEvent('wheel', {
        bubbles: true, cancelable: true, ctrlKey: true, deltaY: i % 2 ? -60 : 60,
        clientX: box.left + 200 + (i * 37) % 700, clientY: box.top + 100})));
    window.probe.on = false;
    return {intervals, spent: window.probe.spent};
}"""


def main() -> None:
    """Measure, and print a line for each figure."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--spans", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=6, help="alternating blocks of ours and the empty canvas")
    arguments.add_argument("--frames", type=int, default=120, help="per block")
    arguments.add_argument("--json", type=Path, help="write the figures to a file, too")
    given = arguments.parse_args()
    folder = ROOT / "build" / "viewer"
    subprocess.run(
        ["go", "run", "./sidecar/testkit/harness", "-o", str(folder), "-spans", str(given.spans)],
        check=True, cwd=ROOT,
    )  # fmt: skip
    figures = measure(folder / "random.html", given.rounds, given.frames)
    for name, value in figures.items():
        print(f"{name:34} {value:8.1f}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


def measure(page: Path, rounds: int, frames: int) -> dict[str, float]:
    """Open the page in Chromium and time blocks of frames, ours and the baseline's in turn."""
    from playwright.sync_api import sync_playwright

    ours: dict[str, list[float]] = {"intervals": [], "spent": []}
    empty: list[float] = []
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        tab: Any = browser.new_page(viewport={"width": 1160, "height": 1000})
        tab.add_init_script(PROBE)
        tab.goto(page.as_uri())
        opened: float = tab.evaluate(OPEN)
        for _ in range(rounds):
            block: dict[str, list[float]] = tab.evaluate(LANES, frames)
            for key, values in block.items():
                ours[key] += values
            empty += tab.evaluate(EMPTY % "document.querySelector('.o-lanes canvas')", frames)["intervals"]
        browser.close()
    return {
        "open, ms": opened,
        "script per frame, median, ms": statistics.median(ours["spent"]),
        "script per frame, 95 %, ms": sorted(ours["spent"])[int(len(ours["spent"]) * 0.95)],
        "frame interval, median, ms": statistics.median(ours["intervals"]),
        "frame interval, mean, ms": statistics.mean(ours["intervals"]),
        "empty canvas, median, ms": statistics.median(empty),
        "empty canvas, mean, ms": statistics.mean(empty),
        "interval to empty canvas, mean, %": 100 * statistics.mean(ours["intervals"]) / statistics.mean(empty),
    }


if __name__ == "__main__":
    main()
