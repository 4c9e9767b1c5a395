"""A notebook at a glance: ``%omni_perf report`` in a real kernel, ``omni-perf run NOTEBOOK.ipynb``."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from conftest import wait_until
from kernels import Kernel, program
from omni_perf.launcher import find_binary

COMPUTES = "total = 0\nfor i in range(3_000_000):\n    total += i\ntotal"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    with Kernel(folder=tmp_path, environment={"JPY_SESSION_NAME": str(tmp_path / "train.ipynb")}) as kernel:
        yield kernel


def test_the_report_shows_all_cells_and_leads_to_their_charts(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.run("%omni_perf report").text("stdout").startswith("No cell was profiled yet")
    kernel.run("%omni_perf on -t 0.05")
    chart = kernel.run("%%omni_perf --name counting\n" + COMPUTES).charts()[0]["text/html"]
    kernel.run("x = 1")
    shown = kernel.run("%omni_perf report")
    table = next(out["data"]["text/html"] for out in shown.outputs if out["type"] == "display_data")
    (link,) = re.findall(r'href="#(omni-perf-[0-9a-f]{16})"', table)
    assert f'id="{link}"' in chart
    assert "counting" in table and "<code>x = 1</code>" in table
    assert "2 cells" in shown.plain and "peak memory" in shown.plain
    assert kernel.run("%omni_perf report 'all cells'").text("stdout") == "Wrote all cells.html.\n"
    page = (tmp_path / "all cells.html").read_text()
    assert '<h1 id="cells">train.ipynb</h1>' in page
    assert page.count("<svg") == 1 and "below the threshold" in page and "<script" not in page
    assert "Cannot write" in kernel.run("%omni_perf report /nowhere/all.html").text("stderr")


KEEPS_THE_GIL = "sum(range(40_000_000))"
"""One call to its end: no other thread of the kernel runs meanwhile, not even the one that calls the sidecar."""


def test_a_cell_that_keeps_the_gil_is_recorded_under_on(kernel: Kernel) -> None:
    kernel.run("%omni_perf on -t 0.2")
    for _ in range(3):
        kernel.run("x = 1")
        chart = kernel.run(KEEPS_THE_GIL)
        shown = chart.text("stdout") + chart.plain
        assert "not recorded" not in shown and KEEPS_THE_GIL in shown
        title = re.search(r"Cell \[\d+\] +([\d.]+) s", shown)
        assert title and float(title[1]) > 0.2
    rows = re.findall(r"^ *\[\d+\] +([\d.]+ m?µ?s)", kernel.run("%omni_perf report").plain, re.MULTILINE)
    assert len(rows) == 6  # each cell once


def write(path: Path, *cells: str, kernel: str = "python3") -> Path:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {"name": kernel, "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)
    return path


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [find_binary(), "run", "--interpreter", sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def outputs(notebook: Any) -> list[Any]:
    """What the cells have put out, without what differs between two executions: names of temporary files."""
    return [json.loads(re.sub(r"ipykernel_\d+/\d+", "", json.dumps(cell.outputs))) for cell in notebook.cells]


def test_a_notebook_is_executed_as_nbclient_does(tmp_path: Path) -> None:
    cells = (COMPUTES, "import os\nos.path.basename(os.getcwd())", "print('a'); 1/0", "total + 1", "")
    notebook = write(tmp_path / "n.ipynb", *cells)
    plain = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(plain, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}).execute()
    page = tmp_path / "page"
    done = run(notebook, "--allow-errors", "--executed", tmp_path / "done.ipynb", "-o", page, "--format", "html,json")
    assert done.returncode == 0, done.stderr
    assert outputs(nbformat.read(tmp_path / "done.ipynb", as_version=4)) == outputs(plain)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<section") == 4 and "error: ZeroDivisionError" in page
    assert "4 cells in" in done.stderr
    assert "Spent" in page or "Computing took" in page  # of two lines of a loop one leads, or none
    figures = json.loads((tmp_path / "page.json").read_text())
    assert [cell["number"] for cell in figures["cells"]] == [1, 2, 3, 4] and figures["cells"][0]["duration_ns"] > 5e7


def test_a_cells_time_is_the_kernels_own(tmp_path: Path) -> None:
    """Short cells follow each other faster than omni_perf may read their messages: the messages have the times."""
    cells = ["sum(range(1_000_000))" if number % 3 else f"x{number} = 1" for number in range(24)]
    notebook = write(tmp_path / "n.ipynb", *cells)
    command = [find_binary(), "run", notebook, "--executed", tmp_path / "done.ipynb", "-o", tmp_path / "page.json"]
    command += ["--interpreter", sys.executable]  # which counts behind the notebook's name, too
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "VIRTUAL_ENV": ""})
    assert done.returncode == 0, done.stderr
    for row, cell in zip(
        json.loads((tmp_path / "page.json").read_text())["cells"],
        nbformat.read(tmp_path / "done.ipynb", as_version=4).cells,
        strict=True,
    ):
        timing = cell.metadata.execution
        begin, end = (datetime.fromisoformat(timing[key]) for key in ("iopub.execute_input", "iopub.status.idle"))
        assert row["duration_ns"] / 1e9 == pytest.approx((end - begin).total_seconds(), abs=1e-4)


def test_cells_that_are_over_at_once_are_all_there(tmp_path: Path) -> None:
    """As many as are executed before the first is put away, and the last one with its own time."""
    notebook = write(tmp_path / "n.ipynb", *[f"x{i} = {i}" for i in range(80)], "import time\ntime.sleep(0.2)", "1 / 0")
    run(notebook, "-o", tmp_path / "page.json")
    cells = json.loads((tmp_path / "page.json").read_text())["cells"]
    assert [cell["number"] for cell in cells] == list(range(1, 83))
    assert 0.2e9 <= cells[80]["duration_ns"] < 1e9, cells[80]
    assert cells[80]["headline"].startswith("Slept"), cells[80]
    assert cells[81]["outcome"].startswith("error"), cells[81]


def test_a_cell_that_keeps_the_gil_is_one_row(tmp_path: Path) -> None:
    """The kernel's messages of such a cell come when it is over."""
    notebook = write(tmp_path / "n.ipynb", "x = 1", KEEPS_THE_GIL.replace("40", "120"), KEEPS_THE_GIL, "x = 2")
    done = run(notebook, "-o", tmp_path / "page", "--format", "html,json")
    assert done.returncode == 0, done.stderr
    assert "runs already" not in done.stderr
    cells = json.loads((tmp_path / "page.json").read_text())["cells"]
    assert [cell["number"] for cell in cells] == [1, 2, 3, 4]
    for cell in cells[1:3]:
        assert cell["cpu_ns"] > 0.3 * cell["duration_ns"] > 5e7  # others may want the CPUs, too


def test_a_cell_that_fails_ends_the_notebook(tmp_path: Path) -> None:
    notebook = write(tmp_path / "n.ipynb", "x = 1", "raise KeyError('gone')", "x + 1")
    done = run(notebook, "--executed", tmp_path / "done.ipynb", "-o", tmp_path / "page")
    assert done.returncode == 1
    assert "KeyError" in done.stderr
    assert (tmp_path / "page.html").read_text().count("<section") == 2
    assert [cell.execution_count for cell in nbformat.read(tmp_path / "done.ipynb", as_version=4).cells] == [1, 2, None]


def test_a_kernel_that_dies_leaves_its_cells(tmp_path: Path) -> None:
    kill = "import os, signal, time\ntime.sleep(0.5)\nos.kill(os.getpid(), signal.SIGKILL)"
    notebook = write(tmp_path / "n.ipynb", "x = 1", kill, "x + 1")
    done = run(notebook, "-o", tmp_path / "page")
    assert done.returncode == 1
    died = r"The kernel died by SIGKILL, .* into cell \[2\], last seen .* before in line [23]: "
    assert re.search(r"omni-perf: " + died, done.stderr)
    page = (tmp_path / "page.html").read_text()
    assert "kernel died" in page
    assert re.search(died, page)


def test_a_cell_that_takes_too_long_timed_out(tmp_path: Path) -> None:
    notebook = write(tmp_path / "n.ipynb", "x = 1", "import time; time.sleep(60)", "x + 1")
    done = run(notebook, "--timeout", "2", "-o", tmp_path / "page", "--format", "html,json")
    assert done.returncode == 1
    cells = json.loads((tmp_path / "page.json").read_text())["cells"]
    assert [cell["outcome"] for cell in cells] == ["ok", "timed out"]
    assert "kernel died" not in done.stderr


def test_an_interrupt_leaves_what_was_executed(tmp_path: Path) -> None:
    waits = f"import pathlib, time\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\ntime.sleep(60)"
    notebook = write(tmp_path / "n.ipynb", "1", waits, "2")
    command = [find_binary(), "run", "--interpreter", sys.executable, notebook, "-o", tmp_path / "page"]
    with subprocess.Popen([*command], stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        wait_until((tmp_path / "begun").exists, "the cell that waits")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        said = running.communicate(timeout=60)[1]
    assert running.returncode == 1
    page = (tmp_path / "page.html").read_text()
    assert page.count("<section") == 2
    assert "interrupted" in page and "kernel died" not in page
    assert 'File "<string>"' not in said  # no traceback of what executes it


def test_what_is_missing_is_named_with_what_installs_it(tmp_path: Path) -> None:
    notebook = write(tmp_path / "n.ipynb", "1")
    (tmp_path / "nbclient.py").write_text("raise ImportError('none', name='nbclient')")
    done = run(notebook, "-o", tmp_path / "page", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert f"{sys.executable} -m pip install nbclient ipykernel" in done.stderr


@pytest.mark.parametrize("lacks", ["nbclient", "kernel 'mine'", ""])
def test_the_python_beside_omni_perf_executes_what_the_users_cannot(tmp_path: Path, lacks: str) -> None:
    environment = program(
        tmp_path / "active/bin/python", sys.executable + (" -S" if lacks == "nbclient" else "")
    ).parents[1]
    beside = program(tmp_path / "installed/bin/python", f"env JUPYTER_PATH={tmp_path} {sys.executable}")
    (tmp_path / "kernels/mine").mkdir(parents=True)
    spec = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "mine"}
    (tmp_path / "kernels/mine/kernel.json").write_text(json.dumps(spec))
    notebook = write(tmp_path / "n.ipynb", "1", kernel="mine" if lacks.startswith("kernel") else "python3")
    command = [shutil.copy2(find_binary(), beside.with_name("omni-perf")), "run", notebook, "-o", tmp_path / "page"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "VIRTUAL_ENV": str(environment)}
    )
    assert done.returncode == 0, done.stderr
    said = f"{environment}/bin/python has no {lacks}; {beside}, beside omni-perf, executes the notebook"
    assert (said in done.stderr) if lacks else (", beside omni-perf" not in done.stderr)
    assert "1 cell in" in done.stderr


def test_a_kernel_that_nobody_has_is_a_sentence(tmp_path: Path) -> None:
    done = run(write(tmp_path / "n.ipynb", "1", kernel="nobodys"), "-o", tmp_path / "page")
    assert done.returncode == 2
    assert "no kernel 'nobodys'; jupyter kernelspec list shows those there are, and --kernel-name" in done.stderr


def test_a_python_without_ipykernel_is_named(tmp_path: Path) -> None:
    """The kernel python3 is that of the Python which executes the notebook, unless its spec names another."""
    (tmp_path / "kernels/python3").mkdir(parents=True)
    spec = {"argv": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "bare"}
    (tmp_path / "kernels/python3/kernel.json").write_text(json.dumps(spec))
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda n, *a: None if n == 'ipykernel' else find(n, *a)\n"
    )
    done = run(
        write(tmp_path / "n.ipynb", "1"), "-o", tmp_path / "page", PYTHONPATH=str(tmp_path), JUPYTER_PATH=str(tmp_path)
    )
    assert done.returncode == 2
    assert f"{sys.executable} has no ipykernel" in done.stderr
    assert f"{sys.executable} -m pip install nbclient ipykernel" in done.stderr


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    notebook = write(tmp_path / "n.ipynb", "1")
    (tmp_path / "broken.ipynb").write_text("{")
    for arguments, said in {
        (tmp_path / "none.ipynb",): "cannot be opened",
        (tmp_path / "broken.ipynb",): "cannot be read",
        (notebook, "--kernel-name", "none", "--executed", tmp_path / "x.ipynb"): "there is no kernel 'none'",
        (notebook, "argument"): "a notebook takes none",
        (notebook, "-o", "done.ipynb"): "--executed done.ipynb",
        (notebook, "--format", "svg"): "--format html",
        ("--allow-errors", "-c", "1"): "--allow-errors is for notebooks",
    }.items():
        done = run(*arguments)
        assert done.returncode == 2, done.stderr
        assert said.lower() in done.stderr.lower()
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.ipynb").exists()


RESIDENT = """def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20"""


def test_what_short_cells_have_kept(tmp_path: Path) -> None:
    grow = ('x = bytearray(b"x") * (50 << 20)', 'z = bytearray(b"z") * (200 << 20)', "del z", "del x")
    measured = [f"before = resident(); {line}; print(resident() - before)" for line in grow]
    notebook = write(tmp_path / "keeps.ipynb", RESIDENT, *measured, "pass")
    known = 0
    for _ in range(3):
        done = run(notebook, "--executed", tmp_path / "done.ipynb", "-o", tmp_path / "kept", "--format", "json")
        assert done.returncode == 0, done.stderr
        executed = {cell.execution_count: cell for cell in nbformat.read(tmp_path / "done.ipynb", 4).cells}
        for row in json.loads((tmp_path / "kept.json").read_text())["cells"]:
            printed = executed[row["number"]].outputs
            if printed and row["kept_bytes"] is not None:
                known += 1
                assert abs(row["kept_bytes"] / 2**20 - float(printed[0].text)) < 2, (printed, row)
    assert known >= 4, "of twelve cells"


@pytest.mark.parametrize("threshold", [0, 60])
def test_what_short_cells_have_kept_in_the_notebook(kernel: Kernel, threshold: int) -> None:
    """Those of which nothing is recorded, too: without them the sum of all cells has what one made and not that another removed it."""
    kernel.run(f"%omni_perf on -t {threshold}")
    kernel.run('x = bytearray(b"x") * (50 << 20)')
    kernel.run('z = bytearray(b"z") * (200 << 20)')
    kernel.run("del z")
    shown = kernel.run("%omni_perf report").plain
    kept = re.findall(r"([+−]\d+)(?:\.0)? MiB +(?:\w = bytearray|del)", shown)
    assert kept == ["+50", "+200", "−200"], shown
