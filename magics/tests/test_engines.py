"""omni_perf.cluster() with real workers of Dask, Ray and ipyparallel: one report, with tasks by name."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import omni_perf
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


def recorded(what: str, folder: Path, more: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a program on an engine's workers and return what it printed."""
    before = set(Path("/tmp").glob(f"omni-perf-{os.geteuid()}-*"))
    done = subprocess.run(
        [PYTHON, PROGRAM, what, folder],
        env={**ENVIRONMENT, **(more or {})},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(Path("/tmp").glob(f"omni-perf-{os.geteuid()}-*")) <= before, "a folder of reports is left"
    return json.loads(done.stdout.splitlines()[-1])


def tasks(result: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of tasks by process and name."""
    return {f"{row['process'].split()[-1]} {row['name']}": row["total_s"] for row in result["regions"]}


def test_dasks_workers_are_one_chart_with_tasks_by_key(tmp_path: Path) -> None:
    result = recorded("dask", tmp_path)
    assert result["problems"] == []
    moved = [name for name in result["engine"] if name.endswith((" big", " join"))]
    assert tasks(result) == pytest.approx(result["engine"], rel=NEAR, abs=0.001)
    assert moved and all(
        seconds >= result["clocks"][task] for task, seconds in tasks(result).items() if task not in moved
    )
    spent = result["spent"].values()
    assert len(spent) == 3 and sum(one.get("deserialize", 0) for one in spent) > 0.001
    assert sum(one.get("transfer", 0) for one in spent) > 0 and 0.1 < sum(one["queue"] for one in spent) < 60
    assert result["beside"].startswith("Beside the tasks, summed up over workers: tasks waited in the workers' queues ")
    assert [row["role"] for row in result["processes"]].count("dask-worker") == 3
    assert result["headline"].startswith("Tasks took ") and " of 3 Dask workers: rest " in result["headline"]
    shown = (tmp_path / "all.svg").read_text()
    texts = ("Dask worker 0", "Dask worker 2", "task rest", "no task", "What the 3 Dask workers did")
    assert all(text in shown for text in texts) and "python -c" not in shown and "Busiest functions" not in shown
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


def test_workers_of_three_machines_are_one_chart_whatever_their_clocks_show(tmp_path: Path) -> None:
    able = subprocess.run(["unshare", "--time", "--mount", "true"], capture_output=True, check=False)
    if able.returncode != 0:
        missing("namespaces", f"no clock of its own can be given to a process here: {able.stderr.decode().strip()}")
    result = recorded("machines", tmp_path)
    assert result["problems"] == []
    first, *others = json.loads((tmp_path / "all.json").read_text())["hosts"]
    assert {host["boot_id"] for host in others} == result["apart_s"].keys() and "aligned" not in first
    for host in others:
        assert host["aligned"]["method"] == "readings" and 0 < host["aligned"]["bound_ns"] < 50e6
        ahead = host["clock"]["monotonic_ns"] - first["clock"]["monotonic_ns"]
        assert abs(ahead - result["apart_s"][host["boot_id"]] * 1e9) <= host["aligned"]["bound_ns"]
    assert [row["role"] for row in result["processes"]].count("dask-worker") == 3
    assert sum(row["count"] for row in result["regions"] if row["name"] == "rest") == 6
    assert " of 3 Dask workers" in result["headline"]
    shown = (tmp_path / "all.svg").read_text()
    assert all(f"Dask worker {number}" in shown and f"on machine {number + 1}, " in shown for number in range(3))


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


def test_rays_workers_are_one_chart_with_tasks_and_methods_by_name(tmp_path: Path) -> None:
    if not (PYTHON.parent.parent / ".ray").exists():
        missing("engines", "there is no Ray in .cache/engines: tools/engines installs it (230 MB)")
    result = recorded("ray", tmp_path, {"HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled"})
    assert result["problems"] == []
    found = tasks(result)
    assert result["clocks"].keys() <= found.keys()
    ratios = [found[task] / seconds for task, seconds in result["clocks"].items()]
    # From the call to the return; on a busy machine one of them may wait for a CPU between that and its own clock.
    assert min(ratios) >= 1 and statistics.median(ratios) <= 1 + NEAR
    assert all(found[task] <= (1 + NEAR) * seconds + 0.1 for task, seconds in result["clocks"].items())
    actor = {name.partition(" ")[2]: s for name, s in found.items() if name.startswith(f"{result['actor']} ")}
    assert actor["Trainer.sleep"] >= sum(result["slept"])
    assert actor["Trainer.batches"] >= 0.15 and "Trainer.fails" in actor
    assert result["iterated"] == 3 and "division" in result["failed"]
    ended = {row["pid"]: row["end_s"] for row in result["processes"] if row["role"] == "ray-worker"}
    assert 3 <= len(ended) <= 4 and ended[result["actor"]] is not None
    by_name: dict[str, float] = {}
    for task, seconds in found.items():
        name = task.partition(" ")[2]
        by_name[name] = by_name.get(name, 0.0) + seconds
    longest = max(by_name, key=by_name.__getitem__)
    assert f" Ray workers: {longest} {by_name[longest]:.2f} s" in result["headline"]
    shown = (tmp_path / "all.svg").read_text()
    assert all(text in shown for text in ("Ray worker", "task compute", "no task")) and "rayworker.py" not in shown
    assert result["after"] == "compute" and result["left"] == [False] * 4


def test_a_ray_that_is_not_there_is_refused_in_a_sentence() -> None:
    ray: Any = types.ModuleType("ray")
    ray.is_initialized = lambda: False
    with pytest.raises(Exception, match=r"Ray is not running here: call ray\.init\("):
        omni_perf.cluster(ray)


def test_rays_hook_is_sent_by_value_and_does_nothing_without_omni_perf() -> None:
    if not (PYTHON.parent.parent / ".ray").exists():
        missing("engines", "there is no Ray in .cache/engines: tools/engines installs it (230 MB)")
    sent = "import sys, omni_perf, ray.cloudpickle as c; sys.stdout.buffer.write(c.dumps(omni_perf.ray_worker))"
    carried = subprocess.run([PYTHON, "-c", sent], env=ENVIRONMENT, capture_output=True, timeout=60, check=True)
    bare = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    there = "import sys, pickle; f = pickle.loads(sys.stdin.buffer.read()); print(f(), 'omni_perf' in sys.modules)"
    ran = subprocess.run(
        [PYTHON, "-I", "-c", there], env=bare, input=carried.stdout, capture_output=True, timeout=60, check=False
    )
    assert ran.stdout.split() == [b"None", b"False"], ran.stderr


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


WITH_THE_WORKERS = """%%omni_perf --cluster client
def work(i):
    time.sleep(0.2 + i)
results = client.gather(client.map(work, range(3)))
"""


def test_a_cell_that_names_its_client_has_the_workers_in_its_chart() -> None:
    environment = {name: ENVIRONMENT[name] for name in ("PYTHONPATH", "OMNI_PERF_BINARY")}
    setup = "%load_ext omni_perf\nimport omni_perf, time\nfrom distributed import Client\nclient = Client(n_workers=2, threads_per_worker=1, dashboard_address=None)"
    asked = "[(r['process'].split()[0], r['name'], r['count']) for r in omni_perf.last().tables['regions']], [t['kind'] for t in omni_perf.last().to_dict()['targets']], [r['role'] for r in omni_perf.last().tables['processes']], len(client.run(lambda dask_worker: 0)), [n for ns in client.run(lambda dask_worker: list(dask_worker.plugins)).values() for n in ns if 'omni' in n]"
    with Kernel(environment, python=PYTHON) as kernel:
        kernel.finish(kernel.start(setup), patience_s=60)
        ran = kernel.finish(kernel.start(WITH_THE_WORKERS), patience_s=60)
        shown = kernel.finish(kernel.start(asked), patience_s=60)
        none = kernel.finish(kernel.start("%%omni_perf --cluster nobody\n1 + 1"), patience_s=60)
        closed = kernel.finish(kernel.start("%%omni_perf --cluster time\n1 + 1"), patience_s=60)
        kernel.finish(kernel.start("client.shutdown()"), patience_s=60)
    assert (ran.error, ran.text("stderr")) == (None, "")
    assert len(ran.charts()) == 1 and "Tasks took" in ran.charts()[0]["text/plain"]
    assert "Dask worker" in ran.charts()[0]["text/html"]
    regions, targets, roles, workers, left = eval(shown.result or "")
    assert [row[:2] for row in regions] == [("dask-worker", "work")] * 2 and sum(row[2] for row in regions) == 3
    assert targets == ["cell", "process", "process"] and roles.count("dask-worker") == 2 and roles[0] == "kernel"
    assert (workers, left) == (2, [])
    assert none.result == "2" and "there is no 'nobody'" in none.text("stderr")
    assert closed.result == "2" and "takes a Client of Dask" in closed.text("stderr")


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
    code = "import sys, omni_perf; print([m for m in sys.modules if m.startswith(('omni_perf.engines', 'distributed', 'ipyparallel', 'ray', 'fsspec'))])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout == "[]\n", ran.stderr


def test_what_is_not_a_client_is_refused_in_a_sentence() -> None:
    with pytest.raises(Exception, match="takes a Client of Dask or ipyparallel, or the module ray, not 'int'"):
        omni_perf.cluster(3)


ENGINES = """import ipyparallel as ipp
rc = ipp.Cluster(n=2, log_level=40).start_and_connect_sync()
rc[:].activate()
rc[:].execute("import time", block=True)
"""

WITHIN_PX = """%%px
%%omni_perf
def crunch():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        sum(range(1000))
crunch()
"""


@pytest.mark.parametrize("cell", [WITHIN_PX, WITHIN_PX.replace("%%px\n%%omni_perf", "%%omni_perf --cluster rc\n%%px")])
def test_engines_that_run_a_cell_are_one_chart(cell: str) -> None:
    environment = {name: ENVIRONMENT[name] for name in ("PYTHONPATH", "OMNI_PERF_BINARY")}
    with Kernel(environment, python=PYTHON) as kernel:
        kernel.finish(kernel.start("%load_ext omni_perf\nimport omni_perf\n" + ENGINES), patience_s=60)
        ran = kernel.finish(kernel.start(cell), patience_s=60)
        asked = "{(r['process'].split()[0], r['name']) for r in omni_perf.last().tables['regions']}"
        shown = kernel.finish(kernel.start(asked), patience_s=60)
        kernel.finish(kernel.start("rc.shutdown(hub=True)"), patience_s=60)
    assert ran.error is None, ran.outputs
    (chart,) = ran.charts()
    assert "with 2 ipyparallel engines" in chart["text/plain"] and "engines: def crunch(): " in chart["text/plain"]
    assert re.search(r"Cell:\d +\d.*sum\(range\(1000\)\)", chart["text/plain"])  # the engine's cell, with its text
    assert shown.result == "{('ipyparallel-engine', 'def crunch():')}"
