"""omni_perf.cluster() with real workers of Dask and ipyparallel: one report, with tasks by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel
from requirement import missing

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache" / "engines" / "bin" / "python"
PROGRAM = Path(__file__).parent / "programs" / "onengines.py"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT / 'magics'}:{PROGRAM.parent}",
    "OMNI_PERF_BINARY": str(ROOT / ".venv" / "bin" / "omni-perf"),
}

NEAR = 0.03
"""How near a task's time is to the engine's own clock of it. Its function's clock is within that, by what a busy machine makes of it."""


@pytest.fixture(autouse=True, scope="module")
def engines() -> None:
    if not PYTHON.exists():
        missing("engines", "there is no Dask in .cache/engines: tools/engines installs it (120 MB)")


def recorded(what: str, folder: Path) -> dict[str, Any]:
    """Run a program on an engine's workers and return what it printed."""
    before = set(Path("/tmp").glob("omni-perf-*-*"))
    done = subprocess.run(
        [PYTHON, PROGRAM, what, folder], env=ENVIRONMENT, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(Path("/tmp").glob("omni-perf-*-*")) <= before, "a folder of reports is left"
    return json.loads(done.stdout.splitlines()[-1])


def tasks(result: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of tasks by process and name."""
    return {f"{row['process'].split()[-1]} {row['name']}": row["total_s"] for row in result["regions"]}


def test_dasks_workers_are_one_chart_with_tasks_by_key(tmp_path: Path) -> None:
    result = recorded("dask", tmp_path)
    assert result["problems"] == []
    assert tasks(result) == pytest.approx(result["engine"], rel=NEAR)
    assert all(seconds >= result["clocks"][task] for task, seconds in tasks(result).items())
    assert [row["role"] for row in result["processes"]].count("dask-worker") == 3
    assert result["headline"].startswith("Tasks took ") and " of 3 Dask workers: rest " in result["headline"]
    shown = (tmp_path / "all.svg").read_text()
    assert all(text in shown for text in ("Dask worker 0", "Dask worker 2", "task rest", "no task"))
    assert "SpawnProcess" not in shown and result["left"] == []
    by_name: dict[str, float] = {}
    for row in result["functions"]:
        by_name[row["function"]] = by_name.get(row["function"], 0.0) + row["total_s"]
    # On the lanes, above its code: what a busy machine did not let be read has the task's name alone.
    assert 0 < by_name["compute"] <= 1.1 * by_name["task compute"]


def test_a_worker_that_is_killed_ends_there_and_its_retried_task_is_shown(tmp_path: Path) -> None:
    result = recorded("killed", tmp_path)
    ended = {row["pid"]: row["end_s"] for row in result["processes"] if row["role"] == "dask-worker"}
    assert ended[result["killed"]] is not None
    assert sum(end is None for end in ended.values()) >= 2
    assert any(row["name"] == "hold" and row["total_s"] > 1.9 for row in result["regions"])


def test_ipyparallels_engines_are_one_chart_with_requests_by_function(tmp_path: Path) -> None:
    result = recorded("ipyparallel", tmp_path)
    assert result["problems"] == []
    found = tasks(result)
    silent = [found.pop(name) for name in list(found) if name.endswith(" execute")]
    assert found.keys() == result["clocks"].keys()
    assert all(result["clocks"][task] <= found[task] <= (1 + NEAR) * result["engine"][task] for task in found)
    assert len(silent) == 2 and min(silent) >= 0.2
    assert [row["role"] for row in result["processes"]].count("ipyparallel-engine") == 2
    assert " of 2 ipyparallel engines: " in result["headline"]
    assert result["left"] == [[], []]


IN_A_NOTEBOOK = """
async with Client(n_workers=1, threads_per_worker=1, dashboard_address=None, asynchronous=True) as client:
    async with omni_perf.cluster(client) as recorded:
        await client.gather(client.map(work, range(2)))
[(row["file"], row["text"]) for row in recorded.report.tables["lines"]]
"""


def test_a_cell_shows_its_functions_on_an_asynchronous_clients_workers() -> None:
    environment = {name: ENVIRONMENT[name] for name in ("PYTHONPATH", "OMNI_PERF_BINARY")}
    with Kernel(environment, python=PYTHON) as kernel:
        kernel.finish(kernel.start("import omni_perf, time\nfrom distributed import Client"), patience_s=60)
        kernel.finish(kernel.start("def work(i):\n    time.sleep(0.2 + i)"), patience_s=60)
        ran = kernel.finish(kernel.start(IN_A_NOTEBOOK), patience_s=60)
    assert (ran.error, ran.text("stderr")) == (None, "")
    assert "time.sleep(0.2 + i)" in (ran.result or "") and "Cell [" in (ran.result or "")
    assert len(ran.charts()) == 1 and "Tasks took" in ran.charts()[0]["text/plain"]


def test_a_worker_without_omni_perf_goes_on_and_is_named() -> None:
    carried = subprocess.run(
        [PYTHON, "-c", "import sys, pickle; from omni_perf.engines.dask import _Carried; sys.stdout.buffer.write(pickle.dumps(_Carried('n', 'r', [])))"],
        env=ENVIRONMENT, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    bare = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    there = "import sys, pickle; p = pickle.loads(sys.stdin.buffer.read()); p.setup(None); p.transition('k', 'ready', 'executing'); p.teardown(None); print(p.name, 'omni_perf' in sys.modules)"
    ran = subprocess.run(
        [PYTHON, "-I", "-c", there], env=bare, input=carried.stdout, capture_output=True, timeout=60, check=False
    )
    assert ran.stdout.split() == [b"n", b"False"], ran.stderr


def test_nothing_of_an_engine_is_imported_unasked() -> None:
    code = "import sys, omni_perf; print([m for m in sys.modules if m.startswith(('omni_perf.engines', 'distributed', 'ipyparallel', 'fsspec'))])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout == "[]\n", ran.stderr


def test_what_is_not_a_client_is_refused_in_a_sentence() -> None:
    import omni_perf

    with pytest.raises(Exception, match="takes a Client of Dask or ipyparallel, not 'int'"):
        omni_perf.cluster(3)
