"""The bench of notebooks (bench/headlines): differences and contradictions are found, and nothing else is."""

from __future__ import annotations

import asyncio
import copy
import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contradictions
import nbformat
import notebooks
import pytest
import sameness
from contradictions import Page

ROOT = Path(__file__).parents[2]
BUSY = "import time\nend = time.monotonic() + 0.6\nwhile time.monotonic() < end: sum(range(1000))"


def text(*lines: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": "\n".join(lines)}]


def picture(data: str) -> list[dict[str, Any]]:
    return [{"output_type": "display_data", "data": {"image/png": data, "text/plain": "<Figure>"}, "metadata": {}}]


@pytest.mark.parametrize(
    ("bare", "again", "profiled", "level", "differs"),
    [
        (text("a"), text("a"), text("a"), "exact", False),
        (text("a"), text("a"), text("b"), "exact", True),
        (text("0.8444"), text("0.8444"), text("0.7580"), "exact", True),
        (text("took 3 s"), text("took 41 ms"), text("took 7 s"), "without numbers", False),
        (text("took 3 s"), text("took 4 s"), text("lost 4 s"), "without numbers", True),
        (text("took 3 µs, 1e-05"), text("took 40 ns, 2"), text("took 1 ms, 3"), "without numbers", False),
        (picture("x"), picture("y"), picture("z"), "without pictures", False),
        (picture("x"), picture("x"), picture("y"), "exact", True),
        (text("left"), text("right"), text("up"), "kinds", False),
        (text("left"), text("right"), [], "kinds", True),
        (text("left"), [], text("left"), "", False),
    ],
)
def test_outputs_differ_only_at_a_level_at_which_two_bare_runs_agree(
    bare: Any, again: Any, profiled: Any, level: str, differs: bool
):
    assert sameness.difference(bare, again, profiled) == (level, differs)


def test_how_a_stream_was_cut_into_messages_is_no_difference():
    assert sameness.difference(text("a\nb"), text("a\nb"), text("a\n") + text("b")) == ("exact", False)


def true_page() -> Page:
    """A cell of 2 s: 1 s in line 1, in which the thread computes half a second and wants a CPU for the other; 1 s asleep in line 2."""
    return Page(
        "Cell [3]  2.0 s  computing 25 %  no free CPU 25 %  waiting 50 %\n"
        "Spent 1.0 of 2.0 s in line 1. · work()\n"
        "\n"
        "  line 1  1.0 s  ████ 50 %  work()\n"
        "  line 2  1.0 s  ████ 50 %  time.sleep(1)  waiting\n",
        {
            "duration_ns": 2_000_000_000,
            "headline": {"finding": 0},
            "hosts": [{"cores": 2}],
            "notes": [],
            "targets": [{"process": 0, "thread_ns": 2_000_000_000, "no_line_ns": 0}],
            "threads": [{"process": 0, "runs_cell": True, "internal": False}],
            "tracks": [
                {"id": "cpu", "unit": "cores", "mean": 0.25, "peak": 0.6},
                {"id": "cpu.children", "unit": "cores", "mean": 0.0, "peak": 0.0},
            ],
            "files": [{"code": 0, "lines": ["work()", "time.sleep(1)"]}],
            "enumerations": {"code": ["cell", "user", "other"]},
            "lines": [
                {"file": 0, "line": 1, "process": 0, "self_ns": 1_000_000_000, "total_ns": 1_000_000_000},
                {"file": 0, "line": 2, "process": 0, "self_ns": 1_000_000_000, "total_ns": 1_000_000_000},
            ],
            "findings": [
                {
                    "id": "one-line",
                    "file": 0,
                    "line": 1,
                    "args": {"cause": "python", "time_ns": 10**9, "place_ns": 10**9},
                },
                {"id": "sleeps", "file": 0, "line": 2, "args": {"time_ns": 10**9, "place_ns": 10**9}},
            ],
        },
        {
            "wall_s": 2.01,
            "main_cpu_s": 0.5,
            "main_off_s": 0.5,
            "process_cpu_s": 0.5,
            "children_cpu_s": 0.0,
            "modules": 0,
        },
    )


def test_a_page_that_is_true_has_no_contradiction():
    assert contradictions.contradictions(true_page()) == []


def retitled(old: str, new: str) -> Callable[[Page], None]:
    def change(page: Page) -> None:
        assert old in page.text
        page.text = page.text.replace(old, new)

    return change


def own(clock: str, value: float) -> Callable[[Page], None]:
    return lambda page: page.clocks.update({clock: value})


def lane(index: int, **values: float) -> Callable[[Page], None]:
    return lambda page: page.report["tracks"][index].update(values)


def found(index: int, **values: Any) -> Callable[[Page], None]:
    return lambda page: page.report["findings"][index].update(values)


WRONG: dict[str, list[Callable[[Page], None]]] = {
    "title_has_the_wall_time": [own("wall_s", 2.6), retitled("  2.0 s", "  1.5 s")],
    "shares_add_up": [retitled("waiting 50 %", "waiting 60 %")],
    "title_has_the_cpu_time": [own("main_cpu_s", 0.2), own("main_off_s", 0.9), retitled("no free CPU 25 %  ", "")],
    "title_has_no_other_wait": [own("main_off_s", 0.9)],
    "title_agrees_with_lane": [lane(0, mean=0.1)],
    "lanes_have_the_cpu_time": [lane(1, mean=0.5), own("children_cpu_s", 1.0), own("process_cpu_s", 1.0)],
    "lanes_are_below_the_machine": [lane(0, peak=359.0)],
    "no_figure_above_the_machine": [retitled("work()\n\n", "They kept 3.0 of 2 cores busy.\n\n")],
    "parts_are_of_the_duration": [retitled("1.0 of 2.0 s", "3.0 of 2.0 s"), retitled("1.0 of 2.0 s", "1.0 of 1.2 s")],
    "named_line_has_the_time": [
        found(0, line=7),
        found(0, id="tasks-wait"),  # of no tasks
        lambda page: page.report["lines"][0].update(total_ns=0),
    ],
    "headline_agrees_with_table": [retitled("line 1  1.0 s", "line 1  0.5 s")],
    "lines_add_up": [lambda page: page.report["lines"].pop()],
    "computing_is_bounded": [own("main_off_s", 0.1)],
    "sleeping_is_bounded": [own("main_cpu_s", 1.5)],
    "imports_import": [found(1, id="imports")],
    "children_worked": [found(1, id="waits-for-children", args={"time_ns": 10**9, "cores": 2.0})],
    "nothing_means_nothing": [
        lambda page: (
            page.report.update(headline={"finding": None}) or page.report["lines"][0].update(self_ns=1_400_000_000)
        )
    ],
}


@pytest.mark.parametrize(
    ("check", "change"), [(check, change) for check, changes in WRONG.items() for change in changes]
)
def test_a_contradiction_is_found(check: str, change: Callable[[Page], None]):
    page = true_page()
    page.report = copy.deepcopy(page.report)
    change(page)
    assert check in [found.partition(":")[0] for found in contradictions.contradictions(page)]


def test_every_check_has_a_page_that_it_refuses():
    checks = contradictions.OF_THE_PAGE + contradictions.AGAINST_THE_CLOCKS
    assert set(WRONG) == {check.__name__ for check in checks}


def test_a_traceback_that_is_formatted_after_the_cell_is_no_contradiction():
    page = true_page()
    page.failed = True
    page.clocks |= {"wall_s": 4.0, "main_cpu_s": 2.5, "process_cpu_s": 2.5}
    assert contradictions.contradictions(page) == []


def test_the_time_in_which_the_clocks_were_read_is_in_the_page_alone():
    page = true_page()
    page.clocks |= {"wall_s": 1.8, "main_off_s": 0.42}
    assert contradictions.contradictions(page)
    page.clocks["reading_s"] = 0.2
    assert contradictions.contradictions(page) == []


def test_a_rounded_title_is_the_cells():
    page = true_page()
    page.report["duration_ns"] = 2_040_000_000
    page.clocks["wall_s"] = 2.145  # 5 % more
    assert not any(line.startswith("title_has_the_wall_time") for line in contradictions.contradictions(page))


def test_a_beginning_that_the_page_says_was_not_recorded_is_no_contradiction():
    page = true_page()
    page.report["notes"] = [{"id": "begun-late"}]
    page.clocks |= {"wall_s": 2.4, "main_cpu_s": 0.9, "process_cpu_s": 0.9}
    assert contradictions.contradictions(page) == []


def test_a_cell_that_was_interrupted_is_held_to_its_page_alone():
    page = true_page()
    page.clocks = {}
    page.report["tracks"][0]["peak"] = 359.0
    (found,) = contradictions.contradictions(page)
    assert found.startswith("lanes_are_below_the_machine")


def notebook(folder: Path, *cells: str) -> notebooks.Place:
    """Write a notebook, to be executed by this interpreter."""
    written: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    folder.mkdir()
    nbformat.write(written, folder / "small.ipynb")
    return notebooks.Place(folder / "small.ipynb", Path(sys.executable), folder.parent / "out", 30)


@pytest.mark.timed
def test_a_notebook_has_its_headlines_and_equal_outputs(tmp_path: Path):
    place = notebook(tmp_path / "small", "x = 6", BUSY, "print(x * 7)", "import random; random.random()", "1 / 0")
    result = asyncio.run(notebooks.whole(place))
    assert not result.differences
    assert (result.totals.cells, result.totals.compared) == (5, 5)
    row = next(row for row in result.headlines if row.cell == 2)  # a loaded machine makes short cells long
    assert row.code == BUSY
    assert "line 3" in row.headline
    assert "wall=0.6" in row.clocks
    notebooks.write([result], place.out)
    with (place.out / "headlines.csv").open() as file:
        assert "2" in [written["cell"] for written in csv.DictReader(file)]


def test_a_link_beside_a_notebook_may_lead_nowhere(tmp_path: Path):
    place = notebook(tmp_path / "small", "6 * 7")
    (tmp_path / "small" / "module.py").symlink_to(tmp_path / "elsewhere.py")
    assert asyncio.run(notebooks.headlines_of(place)).totals.cells == 1


@pytest.mark.timed
@pytest.mark.parametrize("name", ["async", "io"])
def test_the_examples_contradict_themselves_nowhere(tmp_path: Path, name: str):
    example: Any = nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)
    sources = [cell.source for cell in example.cells if cell.cell_type == "code"]
    bare = ["\n".join(line for line in source.splitlines() if not line.startswith("%")) for source in sources]
    result = asyncio.run(notebooks.whole(notebook(tmp_path / name, *filter(None, bare))))
    assert not result.differences
    assert result.headlines
    assert [row.contradictions for row in result.headlines if row.contradictions] == []


@pytest.mark.timed
def test_a_cell_that_shows_something_else_when_profiled_is_found(tmp_path: Path):
    place = notebook(
        tmp_path / "seeded", "import random, sys; random.seed(0)", "random.random() + ('omni_perf' in sys.modules)"
    )
    result = asyncio.run(notebooks.whole(place))
    assert result.totals.different == 1
    assert "cell 2 (exact)" in result.differences[0]
