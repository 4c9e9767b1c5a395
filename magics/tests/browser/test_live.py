"""A cell that shows itself while it runs, in JupyterLab."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .conftest import PATIENCE_MS

if TYPE_CHECKING:
    from .conftest import Lab

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PANEL = ".op-live"
CHART = 'svg[role="img"]'

SETUP = """\
%load_ext omni_perf
import math, time
import omni_perf, omni_perf.session
omni_perf.session.BEGIN_LIMIT_S = 10  # 250 ms may pass on a busy test machine
omni_perf.session.START_LIMIT_S = 30
from simulated_gpu import SimulatedGPU
gpu = SimulatedGPU()

def load_batch(number):
    time.sleep(0.3)
    return [math.sqrt(i) for i in range(200_000)]

def train_step(batch):
    gpu.busy(0.12)
    gpu.synchronize()
    omni_perf.step(total=4000)
"""
TRAINING = """\
%%omni_perf --live
import pathlib
for number in range(4000):
    batch = load_batch(number)
    train_step(batch)
    if pathlib.Path("seen").exists():
        break
"""
"""It runs until it was looked at: a page on a busy machine may be much behind."""


def start(lab: Lab, name: str, cells: list[str], dark: bool = False) -> None:
    shutil.copy(EXAMPLES / "simulated_gpu.py", lab.server.notebooks / "simulated_gpu.py")
    lab.open(name, cells, dark=dark)
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=PATIENCE_MS,
    )
    lab.begin("notebook:run-all-cells")


def test_a_training_cell_shows_itself_and_becomes_its_chart(lab: Lab) -> None:
    for dark in (False, True):
        look = "dark" if dark else "light"
        start(lab, f"live-{look}.ipynb", [SETUP, TRAINING], dark)
        lab.outputs(PANEL).first.wait_for(timeout=PATIENCE_MS)
        lab.page.locator(PANEL, has_text="step 1").first.wait_for(timeout=PATIENCE_MS)
        lab.page.wait_for_timeout(6000)
        assert lab.outputs(PANEL).count() == 1
        lab.page.evaluate("panel => document.querySelector(panel).scrollIntoView({block: 'center'})", PANEL)
        lab.picture(f"live-{look}-middle")
        text = lab.outputs(PANEL).first.text_content() or ""
        assert "of 4,000" in text and "left" in text and "load_batch(number)" in text, text
        assert "(simulated)" in text and "for data" in text, text
        seen = lab.server.notebooks / "seen"
        seen.touch()
        chart = lab.outputs(CHART).first
        chart.wait_for(timeout=PATIENCE_MS)
        seen.unlink()
        assert lab.outputs(PANEL).count() == 0
        assert lab.page.locator(CHART).count() == 1
        chart.scroll_into_view_if_needed()
        lab.picture(f"live-{look}-end")
    assert lab.errors == []


def test_a_cell_that_clears_its_output_has_its_chart(lab: Lab) -> None:
    cell = """\
%%omni_perf --live
from IPython.display import clear_output
for number in range(30):
    load_batch(number)
    clear_output(wait=True)
    print("at", number)
"""
    start(lab, "live-clear.ipynb", [SETUP, cell])
    lab.outputs(CHART).first.wait_for(timeout=PATIENCE_MS)
    assert lab.outputs(PANEL).count() == 0
    assert lab.page.locator(CHART).count() == 1
    assert "at 29" in (lab.page.locator(".jp-OutputArea-output").all_text_contents()[0])
    assert lab.errors == []
