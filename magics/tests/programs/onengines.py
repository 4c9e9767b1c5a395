"""Runs tasks that keep their own clocks on the workers of Dask, Ray or ipyparallel, and prints what was recorded.

onengines.py dask|killed|machines|ray|ipyparallel FOLDER
"""

# pyright: basic, reportMissingImports=false

import json
import os
import signal
import subprocess
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
            big = client.map(ontasks.big, range(3))
            joined = [client.submit(ontasks.join, a, b) for a in big for b in big]
            client.gather(joined)
            time.sleep(0.4)
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
            "spent": recorded.spent,
            "beside": recorded.beside(),
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


APART_S = {"11111111-0000-4000-8000-000000000001": 5000, "22222222-0000-4000-8000-000000000002": 90000}
"""Of two machines, what they are called until their next start, and how far their clocks are ahead."""

MACHINE = """
mount -t tmpfs tmpfs /tmp && echo $0 > /tmp/boot_id && mount --bind /tmp/boot_id /proc/sys/kernel/random/boot_id
exec "$@"
"""


def machine(boot, command):
    """Start a command on what its processes cannot tell from another machine: its clock, its files, its boot id."""
    clock = ["--time", "--monotonic", str(APART_S[boot]), "--boottime", str(APART_S[boot])]
    return subprocess.Popen(
        ["unshare", *clock, "--mount", "--fork", "--kill-child", "sh", "-c", MACHINE, boot, *command]
    )


def machines():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", local.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--name"]
        others = [machine(boot, [*worker, *options, str(n + 1)]) for n, boot in enumerate(APART_S)]
        try:
            client.wait_for_workers(3)
            with omni_perf.cluster(client) as recorded:
                every = list(client.scheduler_info()["workers"])
                client.gather([client.submit(ontasks.rest, n, workers=[w], pure=False) for w in every for n in (0, 1)])
        finally:
            for other in others:
                other.terminate()
    return recorded, {"apart_s": APART_S}


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


def onray():
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"worker_process_setup_hook": omni_perf.ray_worker},
    )
    compute, rest = ray.remote(ontasks.compute), ray.remote(ontasks.rest)
    with omni_perf.cluster(ray) as recorded:
        sent = [*map(compute.remote, range(6)), *map(rest.options(name="a rest").remote, range(3))]
        own = {"py_executable": f"{sys.executable} -m omni_perf ray-worker"}  # of a task, in a job without the hook
        results = ray.get([*sent, compute.options(name="in its own", runtime_env=own).remote(0)])
        actor = ray.remote(ontasks.Trainer).remote()
        stepped = ray.get([actor.step.remote() for _ in range(3)])
        slept = ray.get([actor.sleep.remote() for _ in range(2)])
        iterated = sum(1 for _ in actor.batches.options(num_returns="streaming").remote())
        try:
            ray.get(actor.fails.remote())
        except ZeroDivisionError as error:
            failed = str(error)
        ray.kill(actor)
    names = [(pid, {"rest": "a rest"}.get(name, name), seconds) for pid, name, seconds in results[:-1] + stepped]
    names.append((results[-1][0], "in its own", results[-1][2]))
    after = ray.get(compute.remote(0))
    left = ray.get([ray.remote(ontasks.recorded).remote() for _ in range(4)])
    ray.shutdown()
    return recorded, {
        "clocks": clocks(names),
        "actor": stepped[0][0],
        "slept": slept,
        "iterated": iterated,
        "failed": failed,
        "after": after[1],
        "left": left,
    }


if __name__ == "__main__":
    recorded, result = {"ipyparallel": ipyparallel, "machines": machines, "ray": onray}.get(sys.argv[1], dask)()
    result["problems"] = recorded.problems
    if recorded.report is not None:
        recorded.save(os.path.join(sys.argv[2], "all"), "svg", "json")
        result |= {"headline": recorded.report.headline}
        result |= {name: list(recorded.report.tables[name]) for name in ("regions", "processes", "functions")}
    print(json.dumps(result))
