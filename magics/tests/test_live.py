"""Cells that show themselves while they run, in real kernels."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import alive, wait_until
from kernels import Kernel, Ran
from omni_perf import clearing

pytestmark = pytest.mark.timed

SPIN = """
import time, threading
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        kernel.run(SPIN)
        yield kernel


def displays(ran: Ran) -> list[dict[str, Any]]:
    """The display messages that have an id: those of the view."""
    return [out for out in ran.outputs if out.get("transient", {}).get("display_id", "").startswith("omni_perf-")]


def ids(shown: list[dict[str, Any]]) -> set[str]:
    return {out["transient"]["display_id"] for out in shown}


def is_panel(out: dict[str, Any]) -> bool:
    return "op-live" in out["data"].get("text/html", "")


def is_chart(out: dict[str, Any]) -> bool:
    return "application/vnd.omni-perf+json" in out["data"]


def check_ends_as_chart(ran: Ran, at_least: int = 2) -> list[dict[str, Any]]:
    """A view is one display: made once, updated by looks, last of all by the chart."""
    shown = displays(ran)
    assert len(ids(shown)) == 1, shown
    assert [out["type"] for out in shown] == ["display_data"] + ["update_display_data"] * (len(shown) - 1)
    assert is_chart(shown[-1]), shown[-1]
    panels = [out for out in shown if is_panel(out)]
    assert len(panels) >= at_least, [out["data"].get("text/plain") for out in shown]
    assert sum(map(is_chart, shown)) == 1
    assert not [out for out in ran.outputs if out not in shown and out["type"] == "display_data"], ran.outputs
    return panels


def test_a_cell_shows_itself_in_one_display_that_ends_as_its_chart(kernel: Kernel) -> None:
    ran = kernel.run("%%omni_perf --live\nprint('out')\nspin(3)\n'value'")
    panels = check_ends_as_chart(ran)
    plain = panels[-1]["data"]["text/plain"]
    assert "spin(3)" in plain and "doing" in plain, plain
    assert "<script" not in panels[-1]["data"]["text/html"]
    assert ran.text("stdout") == "out\n"
    assert ran.text("stderr") == ""
    assert ran.result == "'value'"


def test_two_cells_in_a_row_have_displays_of_their_own(kernel: Kernel) -> None:
    first = kernel.run("%%omni_perf --live\nspin(1.6)")
    second = kernel.run("%%omni_perf --live\nspin(1.6)")
    check_ends_as_chart(first, 1)
    check_ends_as_chart(second, 1)
    assert not ids(displays(first)) & ids(displays(second))


def test_an_interrupt_ends_it(kernel: Kernel) -> None:
    request = kernel.start("%%omni_perf --live\nprint('runs', flush=True)\nspin(600)")
    kernel.wait_for_output("runs")
    time.sleep(1.5)
    kernel.interrupt()
    ran = kernel.finish(request)
    assert ran.error == "KeyboardInterrupt"
    shown = displays(ran)
    assert is_chart(shown[-1]) and shown[-1]["type"] == "update_display_data"


def test_an_error_in_the_cell_is_the_cells_own(kernel: Kernel) -> None:
    plain = kernel.run("def fails():\n    raise ValueError('no')\nspin(0.2)\nfails()")
    ran = kernel.run("%%omni_perf --live\ndef fails():\n    raise ValueError('no')\nspin(0.2)\nfails()")
    assert ran.error == plain.error == "ValueError"
    assert is_chart(displays(ran)[-1])


def test_a_cell_that_clears_its_output_does_not_lose_its_chart(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%omni_perf --live\nfrom IPython.display import clear_output\nspin(1.5)\nclear_output()\nspin(1.5)\nprint('there')"
    )
    cleared = next(i for i, out in enumerate(ran.outputs) if out["type"] == "clear_output")
    assert any(is_panel(out) for out in displays(ran))
    after = ran.outputs[cleared + 1 :]
    assert [out["type"] for out in after] == ["stream", "display_data"], after
    assert is_chart(after[-1])


def test_a_cell_within_a_cell_has_a_display_of_its_own(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%omni_perf --live\nspin(1)\nget_ipython().run_cell('%%omni_perf --live\\nspin(1.5)', store_history=False)\nspin(1)"
    )
    shown = displays(ran)
    assert len(ids(shown)) == 2
    for one in ids(shown):
        messages = [out for out in shown if out["transient"]["display_id"] == one]
        assert [out["type"] for out in messages] == ["display_data"] + ["update_display_data"] * (len(messages) - 1)
        assert is_chart(messages[-1])


def test_live_on_shows_ordinary_cells_from_one_second_on(kernel: Kernel) -> None:
    assert "shows itself live" in kernel.run("%omni_perf live on").text("stdout")
    try:
        short = kernel.run("spin(0.1)")
        assert not short.outputs, short.outputs
        check_ends_as_chart(kernel.run("spin(3)"), 1)
        assert "live" in kernel.run("%omni_perf status").text("stdout")
    finally:
        off = kernel.run("%omni_perf live off")
    assert "Only cells with %%omni_perf" in off.text("stdout")
    assert not kernel.run("spin(1.5)").outputs


def test_live_off_leaves_on_as_it_was(kernel: Kernel) -> None:
    kernel.run("%omni_perf on")
    kernel.run("%omni_perf live on")
    kernel.run("%omni_perf live off")
    ran = kernel.run("spin(1.3)")
    kernel.run("%omni_perf off")
    assert [out["type"] for out in ran.outputs] == ["display_data"]
    assert is_chart(ran.outputs[0])


def test_quiet_shows_nothing(kernel: Kernel) -> None:
    ran = kernel.run("%%omni_perf --live --quiet\nspin(1.5)")
    assert not displays(ran)
    assert "--quiet shows nothing" in ran.text("stderr")


def test_a_statement_shows_itself_too(kernel: Kernel) -> None:
    check_ends_as_chart(kernel.run("%omni_perf --live spin(2)"), 1)


def test_steps_are_counted_from_the_cells_start(kernel: Kernel) -> None:
    kernel.run("import omni_perf\nomni_perf.step(); omni_perf.step()")
    ran = kernel.run("%%omni_perf --live\nfor i in range(8):\n    spin(0.3)\n    omni_perf.step(total=8)")
    plain = check_ends_as_chart(ran)[-1]["data"]["text/plain"]
    assert "of 8" in plain and "step" in plain, plain
    ran = kernel.run("%%omni_perf --live\nfor i in range(8):\n    spin(0.3)\n    omni_perf.step()")
    plain = check_ends_as_chart(ran)[-1]["data"]["text/plain"]
    assert "left" not in plain and "steps" in plain, plain


def test_a_long_cell_says_once_how_it_could_be_seen(kernel: Kernel) -> None:
    kernel.silently("import omni_perf.cells; omni_perf.cells.HINT_AFTER_S = 1.0")
    try:
        ran = kernel.run("%%omni_perf\nspin(2.5)")
        shown = displays(ran)
        assert [out["type"] for out in shown] == ["display_data", "update_display_data"], shown
        assert "%%omni_perf --live" in shown[0]["data"]["text/plain"]
        assert is_chart(shown[1])
        assert not displays(kernel.run("%%omni_perf --quiet\nspin(1.5)"))
        short = kernel.run("%%omni_perf\nspin(0.3)")
        assert [out["type"] for out in short.outputs] == ["display_data"]
        cleared = kernel.run("%%omni_perf\nfrom IPython.display import clear_output\nclear_output()\nspin(2)")
        assert [out["type"] for out in cleared.outputs] == ["clear_output", "display_data"]
    finally:
        kernel.silently("omni_perf.cells.HINT_AFTER_S = 60.0")


def test_nothing_goes_on_after_the_cell(kernel: Kernel) -> None:
    kernel.run("%%omni_perf --live\nspin(1.3)")
    threads = "sorted(thread.name for thread in threading.enumerate())"
    before = kernel.run(threads).result
    ran = kernel.run("time.sleep(2.5)")
    assert not ran.outputs, ran.outputs
    assert kernel.run(threads).result == before
    assert kernel.run("'clear_output' in vars(get_ipython().display_pub)").result == "False"


class Display:
    """Counts the clear_outputs that it is notified of."""

    times = 0

    def clear_output_was_called(self) -> None:
        self.times += 1


def test_displays_of_ours_are_marked_as_such(kernel: Kernel) -> None:
    """Who follows the kernel, as ``omni-perf run N.ipynb``, does not count them as what the cell printed."""
    cell = "from IPython.display import display\ndisplay(1)\nspin(2.5)"
    ran = kernel.run("%%omni_perf --live\n" + cell).outputs + kernel.run("%%omni_perf\n" + cell).outputs
    shown = ran + kernel.run("%omni_perf report").outputs
    assert len({out["type"] for out in shown}) == 2  # displays, and updates of them
    for out in shown:
        assert out["mark"] == ("" if out["data"] == {"text/plain": "1"} else "display")
        assert not out["metadata"]  # nor is the mark in the notebook's file


class Publisher:
    def clear_output(self) -> str:
        return "cleared"


def test_displays_of_cells_side_by_side_are_left_in_any_order() -> None:
    publisher, first, second = Publisher(), Display(), Display()
    clearing.watch(publisher, first)
    clearing.watch(publisher, second)
    assert publisher.clear_output() == "cleared"
    clearing.leave(publisher, first)
    publisher.clear_output()
    clearing.leave(publisher, second)
    clearing.leave(publisher, second)
    publisher.clear_output()
    assert (first.times, second.times, vars(publisher)) == (1, 2, {})


def test_a_clear_output_of_the_users_own_comes_back() -> None:
    publisher, display = Publisher(), Display()
    own = {"clear_output": lambda: "the user's own"}
    vars(publisher).update(own)
    clearing.watch(publisher, display)
    assert publisher.clear_output() == "the user's own"
    clearing.leave(publisher, display)
    assert (display.times, vars(publisher)) == (1, own)


def test_a_publisher_that_clears_nothing_is_left_alone() -> None:
    publisher = object()
    clearing.watch(publisher, Display())
    clearing.leave(publisher, Display())


def test_the_publishing_thread_costs_little(kernel: Kernel) -> None:
    """5 ms of CPU time a second are promised; ten times that would be a mistake."""
    clock = "time.clock_gettime(time.pthread_getcpuclockid(omni_thread.ident))"
    kernel.run("omni_thread = next(t for t in threading.enumerate() if t.name == 'omni_perf')")
    ran = kernel.run(f"%%omni_perf --live\nbegan = {clock}\nspin(5)\nspent = {clock} - began")
    check_ends_as_chart(ran, 3)
    spent = float(kernel.run("spent").result or "nan")
    print(f"publishing thread: {spent / 5 * 1000:.2f} ms of CPU time a second")
    assert spent / 5 < 0.050


def test_a_sidecar_that_dies_costs_a_line() -> None:
    with Kernel() as kernel:
        kernel.run(SPIN)
        kernel.run("%%omni_perf\nspin(0.1)")
        sidecar = kernel.sidecar()
        request = kernel.start("%%omni_perf --live\nprint('runs', flush=True)\nspin(4)\n'value'")
        kernel.wait_for_output("runs")
        time.sleep(1.2)
        os.kill(sidecar, signal.SIGKILL)
        wait_until(lambda: not alive(sidecar), "the sidecar's end")
        ran = kernel.finish(request)
        assert ran.result == "'value'"
        last = displays(ran)[-1]
        assert last["type"] == "update_display_data"
        assert "The sidecar was gone" in last["data"]["text/plain"]
        assert ran.text("stderr") == ""
        check_ends_as_chart(kernel.run("%%omni_perf --live\nspin(1.6)"), 1)


def test_a_stopped_sidecar_holds_nothing_up() -> None:
    with Kernel() as kernel:
        kernel.run(SPIN)
        kernel.run("%%omni_perf\nspin(0.1)")
        sidecar = kernel.sidecar()
        request = kernel.start("%%omni_perf --live\nprint('runs', flush=True)\nspin(3)\n'value'")
        kernel.wait_for_output("runs")
        os.kill(sidecar, signal.SIGSTOP)
        try:
            ran = kernel.finish(request)
        finally:
            os.kill(sidecar, signal.SIGCONT)
        assert ran.result == "'value'"
        assert "is stopped" in displays(ran)[-1]["data"]["text/plain"]


def test_a_fork_in_the_cell_publishes_nothing(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%omni_perf --live\nimport os\npid = os.fork()\nif pid == 0:\n    time.sleep(1.5); os._exit(0)\nspin(2)\nos.waitpid(pid, 0)[1]"
    )
    check_ends_as_chart(ran, 1)
    assert ran.result == "0"


def test_a_terminal_is_told_where_to_look() -> None:
    code = "get_ipython().run_line_magic('load_ext', 'omni_perf'); get_ipython().run_cell('%omni_perf live on')"
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "omni-perf top" in ran.stderr


def test_another_notebook_shows_a_kernel(kernel: Kernel) -> None:
    with Kernel(load=False) as other:
        other.run(SPIN)
        request = other.start("print('runs', flush=True)\nspin(6)\n1 / 0")
        other.wait_for_output("runs")
        watching = kernel.start(f"%omni_perf live {other.pid}")
        other.finish(request)
        time.sleep(2)
        kernel.interrupt()
        ran = kernel.finish(watching)
    assert ran.error is None and ran.text("stderr") == "", ran.outputs
    shown = displays(ran)
    assert len(ids(shown)) == 1
    assert any(is_panel(out) for out in shown)
    last = shown[-1]["data"]["text/plain"]
    assert "ZeroDivisionError" in last, last


def test_a_kernel_does_not_watch_itself(kernel: Kernel) -> None:
    """The cell would wait for its own end."""
    identity = Path(kernel.connection_file).stem.removeprefix("kernel-")
    for name in (identity, str(kernel.pid), kernel.connection_file):
        ran = kernel.run(f"%omni_perf live {name}")
        said = ran.text("stderr")
        assert "This is the kernel that the cell runs in; %%omni_perf --live" in said and not displays(ran), ran.outputs


def test_a_kernel_that_is_not_there_is_a_sentence(kernel: Kernel) -> None:
    ran = kernel.run("%omni_perf live 'no such notebook'")
    assert "no such notebook" in ran.text("stderr") and not displays(ran), ran.outputs
