"""``omni-perf kernel install``: a kernel in which every cell is profiled with nothing to load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import omni_perf
import pytest
from kernels import program
from omni_perf import lastreport
from omni_perf.launcher import find_binary


def install(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [find_binary(), "kernel", "install", "--interpreter", sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def execute(*cells: str) -> list[list[Any]]:
    """The outputs of cells in the kernel that was installed."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, kernel_name="python3-omni_perf").execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    done = install("--prefix", tmp_path, "-t", "0.3")
    assert done.returncode == 0, done.stderr
    assert 'installed the kernel "Python 3 (omni_perf)"' in done.stdout
    assert "jupyter kernelspec remove python3-omni_perf" in done.stdout
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("JPY_SESSION_NAME", f"{uuid.uuid4()}.ipynb")
    return tmp_path / "share" / "jupyter" / "kernels" / "python3-omni_perf"


def test_every_cell_is_profiled_with_nothing_to_load(installed: Path) -> None:
    spec = json.loads((installed / "kernel.json").read_text())
    assert spec["display_name"] == "Python 3 (omni_perf)"
    assert spec["metadata"] == {"debugger": True, **spec["metadata"]}  # all else is as it was
    assert (installed / "logo-64x64.png").exists()
    for last in (False, False, True):  # where all CPUs are taken, the profiler may come too late for the first cells
        short, long = execute("1 + 1", "import time\ntime.sleep(0.6)")
        assert short[0]["execution_count"] == 1
        if [output["output_type"] for output in (*short, *long)] == ["execute_result", "display_data"]:
            assert "Slept for" in long[0]["data"]["text/plain"]
            return
        assert not last, (short, long)


def test_how_the_last_kernel_died_is_an_output_of_the_first_cell(installed: Path, tmp_path: Path) -> None:
    parent = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = parent / f"omni_perf-last-{os.geteuid()}"
    folder.mkdir(0o700, exist_ok=True)
    left = {"sentence": "The kernel died by SIGKILL.", "text": "", "cell": 1, "headline": "", "report_gzip": ""}
    (folder / f"{lastreport.notebook_key()}.json").write_text(json.dumps(left))
    first, second = execute("1 + 1", "2 + 2")
    assert first[0]["text"] == "The kernel died by SIGKILL. %omni_perf last died shows its last cell.\n"
    assert [output["output_type"] for output in second] == ["execute_result"]


def test_a_kernel_is_wrapped_once(installed: Path, tmp_path: Path) -> None:
    done = install("--prefix", tmp_path, "--kernel", "python3-omni_perf")
    assert done.returncode == 1
    assert "has omni_perf already" in done.stderr


def test_what_cannot_be_wrapped_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = tmp_path / "share" / "jupyter" / "kernels"
    for name, argv in {"other": ["R", "{connection_file}"], "bare": ["/usr/bin/env", "ipykernel"]}.items():
        (kernels / name).mkdir(parents=True)
        spec = {"argv": argv, "display_name": name, "language": name}
        (kernels / name / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    for arguments, said in {
        ("--kernel", "none"): "There is no kernel 'none'",
        ("--kernel", "other"): "is not IPython's",
        ("--kernel", "bare"): "/usr/bin/env -m pip install omni_perf",
        ("--name", "a b"): "no name of a kernel",
        ("--user", "--prefix", "x"): "two places",
    }.items():
        done = install(*arguments)
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_the_python_beside_omni_perf_installs_what_the_users_cannot(tmp_path: Path) -> None:
    environment = program(tmp_path / "active/bin/python", f"{sys.executable} -S").parents[1]
    beside = program(
        tmp_path / "installed/bin/python", f"env PYTHONPATH={Path(omni_perf.__file__).parents[1]} {sys.executable}"
    )
    command = [shutil.copy2(find_binary(), beside.with_name("omni-perf")), "kernel", "install", "--prefix", tmp_path]
    for python, said in (
        (beside, "has no jupyter_client; it is installed by "),
        (environment, "-m pip install jupyter_client"),
    ):
        active = {**os.environ, "VIRTUAL_ENV": str(environment), "PYTHONPATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=active)
        assert said in done.stdout + done.stderr
        assert done.returncode == (0 if python is beside else 1)
        beside.unlink(missing_ok=True)
