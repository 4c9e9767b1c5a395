"""``omni-perf attach`` of kernels: which run, the cell that runs already, the page of cells, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel
from reading import reading

BINARY = Path(sys.executable).parent / "omni-perf"
PATIENCE_S = 60.0

SPIN = """import time
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))
"""


class Attach:
    """A running ``omni-perf attach``, of which what it says is read."""

    def __init__(self, *args: str | Path, folder: Path) -> None:
        self.said: list[str] = []
        self.process = subprocess.Popen([BINARY, "attach", *args], stderr=subprocess.PIPE, text=True, cwd=folder)
        self._limit = threading.Timer(3 * PATIENCE_S, self.process.kill)  # so that no read waits for ever
        self._limit.start()

    def until(self, text: str) -> str:
        """Read until a line has the text; return it."""
        assert self.process.stderr is not None
        while not self.said or text not in self.said[-1]:
            self.said.append(self.process.stderr.readline())
            assert self.said[-1], "".join(self.said)  # else it has ended
        return self.said[-1]

    def close(self) -> None:
        self._limit.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def interrupt(self) -> str:
        """End it as Ctrl-C does; return all that it said."""
        self.process.send_signal(signal.SIGINT)
        rest = self.process.communicate(timeout=PATIENCE_S)[1]
        assert self.process.returncode == 0, rest
        return "".join(self.said) + rest


@contextmanager
def attaching(*args: str | Path, folder: Path) -> Generator[Attach]:
    attach = Attach(*args, folder=folder)
    try:
        yield attach
    finally:
        attach.close()


def refused(*args: str | Path, folder: Path) -> str:
    """Run an attach that ends at once with a sentence, which is returned."""
    run = subprocess.run([BINARY, "attach", *args], capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S)
    assert run.returncode == 1, run.stderr
    assert run.stderr.count("\n") == 1, run.stderr
    return run.stderr


def report(path: Path) -> Any:
    return reading(json.loads(path.read_text()))


def eventually(path: Path, *texts: str) -> str:
    """Wait until a page has the texts, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        page = path.read_text() if path.exists() else ""
        if page and all(text in page for text in texts):
            return page
        assert time.monotonic() < deadline, f"{texts} in {page}"
        time.sleep(0.1)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with nothing of ours in it, as a Jupyter server starts it for a notebook."""
    with Kernel({"JPY_SESSION_NAME": str(tmp_path / "my <b>notebook.ipynb")}, load=False) as kernel:
        yield kernel


def test_running_kernels_are_listed_with_their_notebooks(kernel: Kernel, tmp_path: Path) -> None:
    def row() -> str:
        ran = subprocess.run([BINARY, "attach"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        assert "omni-perf attach KERNEL" in ran.stderr
        rows = [line for line in ran.stdout.splitlines() if line.startswith(f"{kernel.pid} ")]
        assert len(rows) == 1, ran.stdout
        return rows[0]

    assert "idle or awaiting" in row()
    assert row().endswith("my <b>notebook.ipynb")
    assert Path(kernel.connection_file).stem.removeprefix("kernel-") in row()
    kernel.start(SPIN + "print('ready', flush=True)\nspin(600)")
    kernel.wait_for_output("ready")
    time.sleep(0.5)
    assert "busy: line " in row()
    assert ", spin " in row()


def test_a_kernel_has_many_names(kernel: Kernel, tmp_path: Path) -> None:
    notebook = tmp_path / "my <b>notebook.ipynb"
    notebook.write_text("{}")  # which is no connection file
    stem = Path(kernel.connection_file).stem.removeprefix("kernel-")
    for name in ("my <b>notebook", notebook.name, str(notebook), stem, stem[:-1], str(kernel.pid)):
        with attaching(name, "-o", "out.json", folder=tmp_path) as attach:
            assert str(kernel.pid) in attach.until("following")
            attach.interrupt()


def test_the_cells_of_a_kernels_process_are_followed_for_a_duration(kernel: Kernel, tmp_path: Path) -> None:
    with attaching(str(kernel.pid), "--format", "json", "--duration", "6", folder=tmp_path) as attach:
        attach.until("following")
        kernel.start(SPIN + "spin(0.5)")
        attach.until("cell-1.json")
        assert attach.process.wait(PATIENCE_S) == 0
    assert report(tmp_path / "perf_output" / "cell-1.json")["target"]["cell"]["outcome"] == "ok"


def test_the_cell_that_runs_already_is_shown_from_then_on(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.run("before = 1").error is None
    running = SPIN + "print('ready', flush=True)\nspin(600)  # <script>alert(1)</script>"
    kernel.start(running)
    kernel.wait_for_output("ready")
    with attaching("my <b>notebook", "--format", "json,html", folder=tmp_path) as attach:
        assert "in line " in attach.until("a cell runs already")
        attach.until("following")
        index = tmp_path / "perf_output" / "index.html"
        page = eventually(index, "running", "cell-2.html", "In line ")
        assert 'http-equiv="refresh"' in page
        said = attach.interrupt()
    seen = report(tmp_path / "perf_output" / "cell-2.json")
    assert seen["target"]["cell"]["execution_count"] == 2
    assert seen["target"]["cell"]["outcome"] == "still-running"
    hottest = max(seen["lines"], key=lambda line: line["self_s"])
    assert hottest["file"] == "Cell [2]"
    assert hottest["line"] in (4, 5)
    assert hottest["text"].strip() in running
    assert any("ran already" in note["text"] for note in seen["notes"])
    assert "the cell still runs; it was in line " in said
    page = index.read_text()
    assert 'http-equiv="refresh"' not in page
    assert "still running" in page
    assert "my &lt;b&gt;notebook" in page
    assert "<script" not in page
    assert "<b>" not in page
    assert (tmp_path / "perf_output").stat().st_mode & 0o777 == 0o700


def test_a_cell_that_was_met_running_ends_with_its_outcome(kernel: Kernel, tmp_path: Path) -> None:
    kernel.start(SPIN + "print('ready', flush=True)\nspin(6)\n1 / 0")
    kernel.wait_for_output("ready")
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("a cell runs already")
        attach.until("out/cell-1.json")
        kernel.start(SPIN + "spin(0.5)")
        attach.until("out/cell-2.json")
        attach.interrupt()
    cell = report(tmp_path / "out" / "cell-1.json")["target"]["cell"]
    assert (cell["outcome"], cell["exception"]) == ("error", "ZeroDivisionError")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "error: ZeroDivisionError" in page
    assert "[2]" in page
    assert "before " in page


def test_a_cell_that_awaits_is_met_when_it_runs_again(kernel: Kernel, tmp_path: Path) -> None:
    kernel.start(SPIN + "import asyncio\nprint('ready', flush=True)\nawait asyncio.sleep(6)\nspin(8)")
    kernel.wait_for_output("ready")
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("following")
        attach.until("a cell runs already")
        attach.until("out/cell-1.json")
        attach.interrupt()
    seen = report(tmp_path / "out" / "cell-1.json")
    assert seen["target"]["cell"]["outcome"] == "ok"
    assert max(seen["lines"], key=lambda line: line["self_s"])["line"] in (4, 5)


def test_a_cell_that_keeps_the_interpreter_to_itself_is_recorded(kernel: Kernel, tmp_path: Path) -> None:
    """The notebook that hangs so that not even the kernel's own threads run."""
    kernel.start(
        "import re, time\ndef look(text):\n    return re.match('(a+)+$', text)\n"
        "print('ready', flush=True)\ntime.sleep(1)\nlook('a' * 60 + 'b')"
    )
    kernel.wait_for_output("ready")
    time.sleep(2)
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("a cell runs already")
        attach.until("a cell holds the GIL")
        said = attach.interrupt()
    assert "the cell still runs; it was in line 3, look" in said
    seen = report(tmp_path / "out" / "cell-1.json")
    assert seen["target"]["cell"]["outcome"] == "still-running"
    assert max(seen["lines"], key=lambda line: line["self_s"])["line"] == 3
    assert "cell-1.json" in (tmp_path / "out" / "index.html").read_text()


def test_a_watched_cell_that_keeps_the_interpreter_to_itself_is_one_result(kernel: Kernel, tmp_path: Path) -> None:
    """Its messages come when it is over: by then it was met on the stack."""
    kernel.run("before = 1")
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("following")
        began = time.monotonic()
        kernel.run("sum(range(500_000_000))")
        took = time.monotonic() - began
        kernel.run("after = 1")
        attach.until("out/cell-3.json")
        said = attach.interrupt()
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == ["cell-2.json", "cell-3.json"], said
    seen = report(tmp_path / "out" / "cell-2.json")
    assert seen["target"]["cell"]["execution_count"] == 2
    assert seen["duration_s"] > took - 3  # a look each second, and two of them agree
    assert (tmp_path / "out" / "index.html").read_text().count("sum(range(500_000_000))") == 1


def test_children_of_a_watched_cell_have_lanes(kernel: Kernel, tmp_path: Path) -> None:
    cell = (
        SPIN
        + "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool: pool.map(spin, [3, 3], chunksize=1)"
    )
    with attaching(kernel.connection_file, "-o", "stacks/", "--format", "json", folder=tmp_path) as attach:
        attach.until("following")
        with attaching(
            kernel.connection_file, "-o", "none/", "--format", "json", "--children", "none", folder=tmp_path
        ) as other:
            other.until("following")
            assert kernel.run(cell, PATIENCE_S).error is None
            attach.until("cell-1.json")
            other.until("cell-1.json")
            attach.interrupt()
            other.interrupt()
    seen = json.loads((tmp_path / "stacks" / "cell-1.json").read_text())
    workers = {process["text"] for process in seen["processes"]} & {"pool worker 1", "pool worker 2"}
    assert len(workers) == 2, seen["processes"]
    lanes = {thread["process"] for thread in seen["threads"]}
    assert len(lanes) >= 3
    assert len(json.loads((tmp_path / "none" / "cell-1.json").read_text())["processes"]) == 1


def test_two_watchers_see_the_same_cell_and_share_no_folder(kernel: Kernel, tmp_path: Path) -> None:
    with (
        attaching(kernel.connection_file, "--format", "json", folder=tmp_path) as one,
        attaching(kernel.connection_file, "--format", "json", "-o", "two/", folder=tmp_path) as two,
    ):
        one.until("following")
        two.until("following")
        assert "another omni-perf writes its results there" in refused(kernel.connection_file, folder=tmp_path)
        assert kernel.run(SPIN + "spin(1)", PATIENCE_S).error is None
        one.until("cell-1.json")
        two.until("cell-1.json")
        one.interrupt()
        two.interrupt()
    for folder in ("perf_output", "two"):
        seen = report(tmp_path / folder / "cell-1.json")
        assert sum(line["self_s"] for line in seen["lines"] if line["line"] in (4, 5)) > 0.5


def test_a_flood_of_output_loses_no_cell(kernel: Kernel, tmp_path: Path) -> None:
    flood = "import sys\nfor i in range(40_000):\n    print(i, flush=True)"
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("following")
        kernel.start(flood)
        attach.until("cell-1.json")
        kernel.start(SPIN + "spin(1)")
        attach.until("cell-2.json")
        attach.interrupt()
    output = report(tmp_path / "out" / "cell-1.json")["target"]["output"]
    assert output["messages"] >= 1000
    assert output["at_least"]
    assert report(tmp_path / "out" / "cell-2.json")["target"]["cell"]["outcome"] == "ok"


def test_a_restart_goes_on_in_the_same_folder(kernel: Kernel, tmp_path: Path) -> None:
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("following")
        assert kernel.run("x = 1").error is None
        attach.until("cell-1.json")
        kernel.restart()
        attach.until("restarted")
        attach.until("following")
        kernel.start(SPIN + "spin(0.5)")
        attach.until("cell.2-1.json")
        attach.interrupt()
    page = (tmp_path / "out" / "index.html").read_text()
    assert "[1] of process 2" in page
    assert page.index("cell-1.json") < page.index("cell.2-1.json")


def test_a_cell_that_ends_its_process_died_whoever_restarts_the_kernel_then(kernel: Kernel, tmp_path: Path) -> None:
    with attaching(kernel.connection_file, "-o", "out/", "--format", "json", folder=tmp_path) as attach:
        attach.until("following")
        kernel.start(SPIN + "spin(0.5)\nimport os; os._exit(4)")
        attach.until("the kernel's process has ended")
        kernel.restart()
        attach.until("restarted")
        said = attach.interrupt()
    assert "The kernel died with exit code 4, " in said
    assert " into cell [1]" in said
    assert report(tmp_path / "out" / "cell-1.json")["target"]["cell"]["outcome"] == "kernel-died"


def changed(kernel: Kernel, **entries: object) -> None:
    """Write other entries into the connection file, in place: it stays the kernel's own."""
    path = Path(kernel.connection_file)
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def test_a_wrong_key_is_said(kernel: Kernel, tmp_path: Path) -> None:
    changed(kernel, key="another-key")
    said = refused(kernel.connection_file, folder=tmp_path)
    assert "key" in said
    assert str(kernel.pid) in said
    assert not (tmp_path / "perf_output").exists()


def test_encrypted_kernels_are_said(kernel: Kernel, tmp_path: Path) -> None:
    changed(kernel, curve_publickey="x" * 40, curve_secretkey="y" * 40)
    assert "CurveZMQ" in refused(kernel.connection_file, folder=tmp_path)
    listed = subprocess.run([BINARY, "attach"], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    assert any("CurveZMQ" in line for line in listed.splitlines() if line.startswith(f"{kernel.pid} "))


def test_a_kernel_of_another_machine_is_said(tmp_path: Path) -> None:
    file = tmp_path / "kernel-remote.json"
    ports = {f"{name}_port": 50000 + i for i, name in enumerate(("shell", "iopub", "stdin", "control", "hb"))}
    file.write_text(json.dumps({"ip": "192.0.2.7", "transport": "tcp", "key": "k", **ports}))
    said = refused(file, folder=tmp_path)
    assert "192.0.2.7, which is not this machine" in said


def test_a_stopped_kernel_is_said(kernel: Kernel, tmp_path: Path) -> None:
    os.kill(kernel.pid, signal.SIGSTOP)
    try:
        assert f"kill -CONT {kernel.pid}" in refused(kernel.connection_file, folder=tmp_path)
    finally:
        os.kill(kernel.pid, signal.SIGCONT)
