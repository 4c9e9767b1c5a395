"""Runs tasks that keep their own clocks on Dask's workers or ipyparallel's engines, and prints what was recorded.

onengines.py dask|killed|ipyparallel FOLDER
"""

# pyright: basic, reportMissingImports=false

import json
import os
import signal
import sys
import time

import omni_perf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ontasks


def clocks(results):
    """Sum up what the tasks measured, by process and name."""
    sums = {}
    for pid, name, seconds in results:
        sums[f"{pid} {name}"] = sums.get(f"{pid} {name}", 0.0) + seconds
    return sums


def dask():
    from dask.utils import key_split
    from distributed import Client, LocalCluster, get_task_stream

    with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
        if sys.argv[1] == "killed":
            return killed(client)
        with omni_perf.cluster(client) as recorded, get_task_stream(client) as stream:
            results = client.gather([*client.map(ontasks.compute, range(6)), *client.map(ontasks.rest, range(6))])
        pids = client.run(os.getpid)
        engine = clocks(
            (pids[task["worker"]], key_split(task["key"]), times["stop"] - times["start"])
            for task in stream.data
            for times in task["startstops"]
            if times["action"] == "compute"
        )
        left = client.run(lambda dask_worker: [name for name in dask_worker.plugins if "omni" in name])
        return recorded, {
            "clocks": clocks(results),
            "engine": engine,
            "left": [name for names in left.values() for name in names],
        }


def killed(client):
    pids = client.run(os.getpid)
    address, pid = next(iter(pids.items()))
    with omni_perf.cluster(client) as recorded:
        held = client.submit(ontasks.hold, 2.0, workers=[address], allow_other_workers=True)
        done = client.submit(ontasks.hold, 0.1, workers=[address], allow_other_workers=True, pure=False)
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
        client.gather([held, done])
    return recorded, {"killed": pid}


def ipyparallel():
    import ipyparallel as ipp

    with ipp.Cluster(n=2, log_level=40) as client:
        view = client[:]
        with omni_perf.cluster(client) as recorded:
            sent = [view.apply_async(ontasks.compute, 1), view.map_async(ontasks.rest, range(2))]
            results = [done for request in sent for done in request.get()]
            view.execute("import time; time.sleep(0.2)", block=True)
        pids = view.apply_sync(os.getpid)
        engine = clocks(
            (pids[of["engine_id"]], name, (of["completed"] - of["started"]).total_seconds())
            for request, name in zip(sent, ("compute", "rest"), strict=True)
            for of in request.metadata
        )
        return recorded, {"clocks": clocks(results), "engine": engine, "left": view.apply_sync(ontasks.patched)}


if __name__ == "__main__":
    recorded, result = ipyparallel() if sys.argv[1] == "ipyparallel" else dask()
    result["problems"] = recorded.problems
    if recorded.report is not None:
        recorded.save(os.path.join(sys.argv[2], "all"), "svg", "json")
        result |= {"headline": recorded.report.headline}
        result |= {name: list(recorded.report.tables[name]) for name in ("regions", "processes", "functions")}
    print(json.dumps(result))
