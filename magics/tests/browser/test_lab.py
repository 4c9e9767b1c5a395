"""What a person sees in JupyterLab."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .conftest import PICTURES

if TYPE_CHECKING:
    from .conftest import Lab

WORK = """%%omni_perf
import time, math
def compute(n):
    return sum(math.sqrt(i) for i in range(n))
for step in range(8):
    time.sleep(0.05)
    compute(200_000)
"""
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CHART = 'svg[role="img"]'


def test_the_chart_is_inline_and_has_tooltips(lab: Lab) -> None:
    lab.open("inline.ipynb", ["%load_ext omni_perf", WORK])
    lab.run_all()
    chart = lab.outputs(CHART).first
    chart.wait_for(timeout=60_000)
    lab.picture("inline-light")
    box: Any = chart.bounding_box()
    assert box["width"] > 600 and box["height"] > 150, box
    titles = chart.locator("title").all_text_contents()
    assert any("compute" in t for t in titles), titles[:20]
    text = chart.text_content()
    assert "Cell [2]" in text and "CPU" in text
    assert lab.errors == []


def test_the_training_example_shows_gpu_lanes_and_what_the_gpu_waited_for(lab: Lab) -> None:
    for name in ("training.ipynb", "simulated_gpu.py"):
        shutil.copy(EXAMPLES / name, lab.server.notebooks / name)
    lab.open("training.ipynb")
    lab.run_all()
    chart = lab.outputs(CHART).first
    chart.wait_for(timeout=60_000)
    text = chart.text_content() or ""
    assert "GPU 0" in text and "simulated GPU" in text
    assert "Where the GPU waited" in text
    chart.scroll_into_view_if_needed()
    lab.picture("training")
    PICTURES.mkdir(parents=True, exist_ok=True)
    chart.screenshot(path=str(PICTURES / "training-chart.png"))
    assert lab.errors == []


def test_it_is_readable_in_the_dark_theme(lab: Lab) -> None:
    lab.open("dark.ipynb", ["%load_ext omni_perf", WORK], dark=True)
    lab.run_all()
    chart = lab.outputs(CHART).first
    chart.wait_for(timeout=60_000)
    lab.picture("inline-dark")
    # A text of the chart must stand out from what is behind it.
    ink = chart.locator("text").first.evaluate("e => getComputedStyle(e).fill")
    assert luminance(ink) > 0.4, f"text is {ink} on a dark page"


def luminance(css: str) -> float:
    red, green, blue = (float(v) for v in css[css.index("(") + 1 : css.index(")")].split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_a_stranger_without_the_extension_sees_the_picture(lab: Lab) -> None:
    lab.open("saved.ipynb", ["%load_ext omni_perf", WORK])
    lab.run_all()
    lab.outputs(CHART).first.wait_for(timeout=60_000)
    saved = lab.save("saved.ipynb")
    bundle = saved["cells"][1]["outputs"][0]["data"]
    assert "text/html" in bundle and "text/plain" in bundle
    assert len(json.dumps(bundle)) <= 160_000
    # Another name: nobody has ever trusted this file.
    shutil.copy(lab.server.notebooks / "saved.ipynb", lab.server.notebooks / "stranger.ipynb")
    notebook = json.loads((lab.server.notebooks / "stranger.ipynb").read_text())
    notebook["cells"].insert(0, {"cell_type": "markdown", "metadata": {}, "source": "a copy", "id": "copy"})
    (lab.server.notebooks / "stranger.ipynb").write_text(json.dumps(notebook))
    lab.open("stranger.ipynb", extension=False)
    image = lab.outputs('img[src^="data:image/svg+xml"]').first
    image.wait_for(timeout=60_000)
    lab.picture("untrusted")
    assert image.evaluate("e => e.complete && e.naturalWidth > 0 && e.alt.length > 0")
    assert lab.outputs(CHART).count() == 0, "scripts of an untrusted notebook must not have run"


def test_every_cell_folded_under_on(lab: Lab) -> None:
    slow = "import time\nfor i in range(12): time.sleep(0.1)"
    lab.open("on.ipynb", ["%load_ext omni_perf\n%omni_perf on", "1 + 1", slow])
    lab.run_all()
    folded = lab.outputs("details").first
    folded.wait_for(timeout=60_000)
    assert lab.outputs("details").count() == 1, "only the cell above the threshold has a chart"
    assert not folded.evaluate("e => e.open")
    assert "s" in folded.locator("summary").inner_text()
    folded.locator("summary").click()
    folded.locator(f'{CHART}, img[src^="data:image/svg+xml"]').first.wait_for(timeout=60_000)
    lab.picture("on-open")
    saved = lab.save("on.ipynb")
    outputs = saved["cells"][2]["outputs"]
    assert sum(len(json.dumps(o)) for o in outputs) <= 60_000
    assert saved["cells"][1]["outputs"][0]["data"] == {"text/plain": ["2"]}


def test_two_charts_do_not_disturb_each_other(lab: Lab) -> None:
    lab.open("two.ipynb", ["%load_ext omni_perf", WORK, WORK.replace("compute", "other")])
    lab.run_all()
    lab.outputs(CHART).nth(1).wait_for(timeout=60_000)
    ids: list[str] = lab.page.evaluate(
        "() => [...document.querySelectorAll('.jp-OutputArea-output [id]')].map(e => e.id)"
    )
    assert len(ids) == len(set(ids)), "ids of the two charts collide"
    assert lab.errors == []
