"""``%omni_perf compare A B`` in a real kernel."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel
from omni_perf import comparing

CELL = """%%omni_perf --quiet{name}
import time
def load():
    time.sleep({load})
def transform():
    time.sleep(0.004)
for step in range(60):
    load()
    transform(){more}
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """A kernel that recorded a cell, the cell after a change and that once more; numbers 2, 3, 4.

    Another one where the cells slept longer than they should: on a busy machine what did not
    change is no longer within the noise of a quiet one.
    """
    for calm_enough in (1.2, 1.4, 100):
        with Kernel() as kernel:
            assert kernel.run(CELL.format(name=" --name slow", load=0.012, more="")).error is None
            for name in (" --name fast", ""):
                assert kernel.run(CELL.format(name=name, load=0.004, more="\n    # one more line")).error is None
            took = re.findall(r"^\[\d\] +([\d.]+) s", kernel.run("%omni_perf list").plain, re.MULTILINE)
            assert len(took) == 3, took
            if all(
                float(seconds) < calm_enough * wanted for seconds, wanted in zip(took, (0.96, 0.48, 0.48), strict=True)
            ):
                yield kernel
                return


def shown(kernel: Kernel, line: str) -> dict[str, Any]:
    ran = kernel.run(line)
    displays = [out["data"] for out in ran.outputs if out["type"] == "display_data"]
    assert len(displays) == 1, ran.outputs
    return displays[0]


def test_what_became_faster_is_named(kernel: Kernel) -> None:
    data = shown(kernel, "%omni_perf compare 2 3")
    text = data["text/plain"]
    assert text.startswith("slow → fast"), text
    line = next(line for line in text.splitlines() if "time.sleep(0.004)" in line and "edited" in line)
    assert re.search(r"line 4 · edited +0\.\d+ s +0\.\d+ s +−0\.\d+ s", line), text
    assert re.search(r"^  line 6 .*within noise", text, re.MULTILINE), text
    html = data["text/html"]
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert picture
    assert "Flame graph, after" in base64.b64decode(picture[1]).decode()
    assert "omni_perf 2 flame:Look_closer" in html, "the viewer has no data"
    assert len(html) < 160_000


def test_a_recording_beside_itself_is_no_difference(kernel: Kernel) -> None:
    assert "No difference beyond noise: " in shown(kernel, "%omni_perf compare 3 3")["text/plain"]


def test_names_files_and_variables_are_recordings(kernel: Kernel, tmp_path: Path) -> None:
    assert "Wrote" in kernel.run(f"%omni_perf save {tmp_path}/base.json 2").text("stdout")
    want = shown(kernel, "%omni_perf compare 2 3")["text/plain"]
    for line in (
        "compare slow fast",
        f"compare {tmp_path}/base.json 3",
        f"compare {tmp_path}/base fast",
        "compare 2 -- 3",
    ):
        assert shown(kernel, "%omni_perf " + line)["text/plain"] == want, line
    kernel.run("a, b = 2, 3")
    assert shown(kernel, "%omni_perf compare $a {b}")["text/plain"] == want


def test_several_recordings_of_a_side(kernel: Kernel) -> None:
    text = shown(kernel, "%omni_perf compare 2 -- 3 4")["text/plain"]
    assert "slow → fast (2 runs)" in text
    assert "One run of one side, 2 of the other" in text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("compare 2", "Two recordings are needed; use %omni_perf compare A B"),
        ("compare 2 3 4", "3 recordings are named: put -- between the two sides"),
        ("compare 2 99", "No cell [99] was profiled; %omni_perf list shows which were."),
        ("compare 2 nothing", "There is no recording 'nothing': name a cell by its number"),
    ],
)
def test_what_is_not_there_is_a_sentence(kernel: Kernel, line: str, sentence: str) -> None:
    ran = kernel.run("%omni_perf " + line)
    assert ran.error is None
    assert ran.text("stderr").startswith("omni_perf: " + sentence), ran.text("stderr")


def test_files_that_are_no_reports_are_sentences(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"schema_version": 1}')
    (tmp_path / "else.json").write_text("[]")
    (tmp_path / "picture.svg").write_text("<svg/>")
    for name, sentence in {
        "old": "was recorded by an older version of omni_perf",
        "else": "it is no report of omni_perf",
        "picture": "holds no report to compare: save one as JSON, by %omni_perf save picture.json [N].",
    }.items():
        said = kernel.run(f"%omni_perf compare 2 {tmp_path}/{name}").text("stderr")
        assert sentence in said, said


def test_compare_is_a_subcommand_only_with_names(kernel: Kernel) -> None:
    assert "%omni_perf compare A B" in kernel.run("%omni_perf compare").text("stderr")
    kernel.run("%omni_perf compare = 5")
    assert kernel.run("compare").result == "5"


def test_sides() -> None:
    assert comparing.sides("1 2") == (["1"], ["2"], "")
    assert comparing.sides("'a b' c") == (["a b"], ["c"], "")
    assert comparing.sides("1 2 -- 3") == (["1", "2"], ["3"], "")
    for wrong in ("", "1", "-- 1", "1 --", "1 2 3"):
        assert comparing.sides(wrong)[2], wrong
