"""%%omni_perf --torch with real PyTorch on the CPU, in a real kernel."""

from __future__ import annotations

import ast
import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran
from requirement import missing
from torches import PYTHON, has, named_behind, need_torch

ROOT = Path(__file__).resolve().parents[2]

SET_UP = """\
import json, os, time, omni_perf, torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def train(steps, pause=0):
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(32, 64)).sum().backward()
        optimizer.step()
        time.sleep(pause)
def names(path):
    with open(path) as file:
        return [e['name'] for e in json.load(file)['traceEvents'] if 'name' in e]
def steps_of(path):
    return sorted({int(n.partition('#')[2]) for n in names(path) if n.startswith('ProfilerStep#')})
seen = []
"""

CLEAN = (
    "import torch.autograd.profiler as p; "
    "(torch.autograd._profiler_enabled(), type(p._enable_profiler).__name__, 'KINETO_LOG_LEVEL' in os.environ)"
)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    need_torch()
    environment = {"PYTHONPATH": str(ROOT / "magics"), "OMNI_PERF_BINARY": str(ROOT / ".venv" / "bin" / "omni-perf")}
    # What is written to memory that was freed, as torch's profiler can, is not to go unseen.
    environment |= {"OMP_NUM_THREADS": "1", "MALLOC_PERTURB_": "165"}
    with Kernel(environment, python=PYTHON) as kernel:
        ran = run(kernel, SET_UP)
        assert ran.error is None, ran.outputs
        yield kernel
        assert value(kernel, CLEAN)[0] is False


def run(kernel: Kernel, cell: str) -> Ran:
    return kernel.finish(kernel.start(cell), patience_s=60)


def value(kernel: Kernel, expression: str) -> Any:
    ran = run(kernel, expression)
    assert ran.error is None and ran.result is not None, ran.outputs
    return ast.literal_eval(ran.result)


def rows(kernel: Kernel, table: str) -> list[dict[str, Any]]:
    return value(kernel, f"[dict(row) for row in omni_perf.last().tables[{table!r}]]")


def is_clean(kernel: Kernel) -> bool:
    """No profiler runs, and torch's functions are its own again."""
    enabled, kind, quiet = value(kernel, CLEAN)
    return not enabled and kind != "function" and not quiet


def test_a_cell_is_recorded_as_a_whole(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --torch\ntrain(20)\n'the value'")
    assert ran.result == "'the value'" and ran.error is None
    assert ran.text("stdout") == "" and ran.text("stderr") == "", ran.outputs  # nor does Kineto write anything
    assert "Operators of torch" in ran.plain
    operators = {row["name"]: row for row in rows(kernel, "operators")}
    assert operators["aten::addmm"]["calls"] == 40 and operators["Optimizer.step#SGD.step"]["calls"] == 20
    assert 0 < operators["aten::addmm"]["self_cpu_s"] <= operators["aten::linear"]["total_cpu_s"]
    assert operators["aten::addmm"]["self_device_s"] is None and operators["aten::addmm"]["input_shapes"] is None
    [trace] = rows(kernel, "traces")
    assert trace["steps"] == 0 and 0 <= trace["start_s"] < trace["end_s"] and not trace["damaged"]
    assert len(rows(kernel, "steps")) == 20
    assert is_clean(kernel)


def test_windows_are_those_of_torchs_own_schedule(kernel: Kernel) -> None:
    """What is recorded, and which number a step has, is as with torch.profiler by hand."""
    run(
        kernel,
        "seen.clear(); omni_perf.schedule(1, 1, 2, 2, 1, on_trace=lambda path: seen.append((path, steps_of(path))))",
    )
    ran = run(kernel, "%%omni_perf --torch --shapes --flops\ntrain(12)")
    assert ran.error is None and ran.text("stderr") == "", ran.outputs
    by_hand = """\
hand = []
def keep(p):
    p.export_chrome_trace('hand.json')
    hand.append(steps_of('hand.json'))
    os.remove('hand.json')
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1), on_trace_ready=keep) as p:
    for _ in range(12):
        train(1)
        p.step()
"""
    assert run(kernel, by_hand).error is None
    ours, theirs = value(kernel, "[steps for _, steps in seen], hand")
    assert ours == [[3, 4], [7, 8]] == [[number + named_behind() for number in steps] for steps in theirs]
    assert value(kernel, "[os.path.exists(path) for path, _ in seen]") == [True, True]
    operators = {(row["name"], row["input_shapes"]): row for row in rows(kernel, "operators")}
    assert operators["aten::addmm", "[[64], [32, 64], [64, 64], [], []]"]["calls"] == 4
    assert operators["aten::addmm", "[[64], [32, 64], [64, 64], [], []]"]["flops"] == 4 * 2 * 32 * 64 * 64
    assert [row["steps"] for row in rows(kernel, "traces")] == [2, 2]
    run(kernel, "omni_perf.schedule.clear()")
    assert is_clean(kernel)


def test_a_schedule_is_the_same_as_torchs_for_all_steps(kernel: Kernel) -> None:
    code = """\
from itertools import product
from omni_perf.schedule import Schedule
def same(w, u, a, r, s):
    torchs = torch.profiler.schedule(wait=w, warmup=u, active=a, repeat=r, skip_first=s)
    names = {'NONE': 'none', 'WARMUP': 'warmup', 'RECORD': 'record', 'RECORD_AND_SAVE': 'save'}
    return all(Schedule(w, u, a, r, s).action(n).value == names[torchs(n).name] for n in range(40))
"""
    run(kernel, code)
    assert (
        value(kernel, "all(same(*v) for v in product((0, 1, 3), (0, 1, 2), (1, 2, 4), (0, 1, 2), (0, 1, 5)))") is True
    )


def test_steps_are_counted_anew_in_each_epoch(kernel: Kernel) -> None:
    run(
        kernel,
        "seen.clear(); omni_perf.schedule(wait=1, warmup=1, active=2, by_epoch=True, on_trace=lambda path: seen.append(steps_of(path)))",
    )
    ran = run(
        kernel,
        "%%omni_perf --torch\nfor epoch in range(3):\n    for _ in range(6):\n        train(1)\n        omni_perf.step(epoch=epoch)",
    )
    run(kernel, "omni_perf.schedule.clear()")
    assert ran.error is None and ran.text("stderr") == "", ran.outputs
    assert value(kernel, "seen") == [[2, 3], [8, 9], [14, 15]]


def test_a_schedule_set_in_the_cell_holds_from_there(kernel: Kernel) -> None:
    cell = "%%omni_perf --torch\ntrain(3)\nomni_perf.schedule(wait=0, warmup=1, active=1, on_trace=lambda path: seen.append(steps_of(path)));\ntrain(4)"
    run(kernel, "seen.clear()")
    ran = run(kernel, cell)
    run(kernel, "omni_perf.schedule.clear()")
    assert ran.error is None and ran.text("stderr") == "", ran.outputs
    assert value(kernel, "seen") == [[1]]


def test_a_schedule_that_never_records_says_so(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --torch wait=5 active=2\ntrain(4)")
    assert "begins to record at step 7, and the cell had fewer (4 in all)" in ran.text("stderr")
    ran = run(kernel, "%%omni_perf --torch wait=5 active=2\nx = 1")
    assert "its schedule counts steps, and the cell had none" in ran.text("stderr")
    assert rows(kernel, "operators") == [] and is_clean(kernel)


OWN_PROFILER = """\
%%omni_perf --torch
train(3)
with torch.profiler.profile() as own:
    train(5)
own.export_chrome_trace('own.json')
train(3)
"""


def test_the_users_own_profiler_is_not_disturbed(kernel: Kernel) -> None:
    ran = run(kernel, OWN_PROFILER)
    assert ran.error is None, ran.outputs
    assert ran.text("stderr").count("\n") == 1 and "--torch ended there, so that yours is not disturbed" in ran.text(
        "stderr"
    )
    assert value(kernel, "names('own.json').count('Optimizer.step#SGD.step')") == 5
    calls = {row["name"]: row["calls"] for row in rows(kernel, "operators")}
    assert calls["Optimizer.step#SGD.step"] == 3 + 5  # ours, and the trace that it wrote in the cell
    merged = value(kernel, "[dict(row) for row in omni_perf.last().merge_trace('own.json').tables['operators']]")
    assert {row["name"]: row["calls"] for row in merged}["Optimizer.step#SGD.step"] == 5
    run(kernel, "os.remove('own.json')")
    assert is_clean(kernel)


def test_a_profiler_that_runs_already_is_left_alone(kernel: Kernel) -> None:
    run(kernel, "own = torch.profiler.profile(); own.start()")
    ran = run(kernel, "%%omni_perf --torch\ntrain(4)")
    assert "torch.profiler already runs, started by your own code" in ran.text("stderr") and len(ran.charts()) == 1
    windows = run(kernel, "%%omni_perf --torch warmup=0 active=1\ntrain(4)")
    assert "torch.profiler already runs" in windows.text("stderr")
    run(kernel, "own.stop(); own.export_chrome_trace('own.json')")
    assert value(kernel, "names('own.json').count('Optimizer.step#SGD.step')") == 8
    run(kernel, "os.remove('own.json')")
    assert is_clean(kernel)


def test_the_users_own_profiler_between_windows_takes_precedence(kernel: Kernel) -> None:
    cell = "%%omni_perf --torch wait=1 warmup=0 active=1 repeat=0\nwith torch.profiler.profile() as own:\n    train(4)\nown.export_chrome_trace('own.json')\ntrain(3)"
    ran = run(kernel, cell)
    assert ran.error is None and "ran where --torch would have recorded a window" in ran.text("stderr"), ran.outputs
    assert value(kernel, "names('own.json').count('Optimizer.step#SGD.step')") == 4
    assert [row["steps"] for row in rows(kernel, "traces")] and is_clean(kernel)
    run(kernel, "os.remove('own.json')")


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("train(3)\n1 / 0", "ZeroDivisionError"),
        ("train(3)\nraise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import sys\ntrain(3)\nsys.exit(3)", "SystemExit"),
        ("import asyncio\nawait asyncio.sleep(0)\ntrain(3)\nawait asyncio.sleep(0.01)\nundefined", "NameError"),
        ("train(3)\n'''still'''", None),
        ("import asyncio\nawait asyncio.sleep(0.01)\ntrain(2)\nnet[0].weight.grad is not None", None),
    ],
)
def test_a_cell_does_the_same(kernel: Kernel, cell: str, error: str | None) -> None:
    """Value, exception, traceback with its lines, and no profiler runs afterwards."""
    bare = run(kernel, "#\n" + cell)
    for option in ("--torch", "--torch wait=0 warmup=0 active=2 repeat=0", "--torch wait=1 warmup=5 active=1"):
        ran = run(kernel, f"%%omni_perf {option}\n{cell}")
        assert ran.error == bare.error == error and ran.result == bare.result
        frames = [
            [line for out in r.outputs if out["type"] == "error" for line in out["traceback"][1:]] for r in (bare, ran)
        ]
        assert [strip(line) for line in frames[0]] == [strip(line) for line in frames[1]]
        assert is_clean(kernel)


def strip(line: str) -> str:
    """A traceback's part without the number of its cell and the line above it, which is the magic."""
    import re

    line = re.sub(r"\x1b\[[\d;]*m", "", line)
    line = re.sub(r"In\[\d+\]|Cell In ?\[\d+\]|ipykernel_\d+/\d+", "Cell", line)
    return "\n".join(part for part in line.splitlines() if not re.match(r"\s*1 ", part))


def test_an_interrupt_leaves_no_profiler_running(kernel: Kernel) -> None:
    request = kernel.start("%%omni_perf --torch\ntrain(2)\nopen('begun', 'w').close()\ntime.sleep(60)")
    import time

    deadline = time.monotonic() + 120
    while not os.path.exists(f"/proc/{kernel.pid}/cwd/begun") and time.monotonic() < deadline:
        time.sleep(0.05)
    kernel.interrupt()
    ran = kernel.finish(request, patience_s=120)
    run(kernel, "os.remove('begun')")
    assert ran.error == "KeyboardInterrupt" and is_clean(kernel)
    assert {row["name"] for row in rows(kernel, "operators")} >= {"aten::addmm"}


def test_writing_the_trace_is_nobodys_line(kernel: Kernel) -> None:
    """An export that takes long is shown as what it is, and is in no line and no step."""
    slow = """\
export = torch.profiler.profile.export_chrome_trace
def slowly(profile, path):
    time.sleep(1)
    export(profile, path)
torch.profiler.profile.export_chrome_trace = slowly
"""
    run(kernel, f"exec(compile({slow!r}, torch.profiler.profiler.__file__, 'exec'))")  # as if it were torch's
    ran = run(kernel, "%%omni_perf --torch wait=0 warmup=0 active=4\ntrain(8)")
    run(kernel, "torch.profiler.profile.export_chrome_trace = export")
    assert ran.error is None, ran.outputs
    phases = value(kernel, "[(p['id'], p['self_ns'] / 1e9) for p in omni_perf.last().to_dict()['phases']]")
    [trace] = rows(kernel, "traces")
    assert trace["steps"] == 4
    own = {row["text"]: row["self_s"] for row in rows(kernel, "lines") if row["text"] == "optimizer.step()"}
    assert dict(phases)["torch-trace"] > 0.9 and sum(own.values()) < dict(phases)["torch-trace"], (phases, own)
    steps = rows(kernel, "steps")
    assert len(steps) == 8 and steps[4]["start_s"] - steps[3]["end_s"] >= 1, (steps, ran.plain)


def test_no_window_begins_in_what_another_saw_begin(kernel: Kernel) -> None:
    """Torch crashes where a region that began under one profiler ends under the next: the optimizer's step is one."""
    for _ in range(3):
        ran = run(kernel, "%%omni_perf --torch wait=0 warmup=0 active=2 repeat=0\ntrain(12)\n[0] * 10_000;")
        assert ran.error is None and "record_function" not in ran.text("stderr"), ran.outputs
        assert [row["steps"] for row in rows(kernel, "traces")][:4] == [2, 2, 2, 2]
    cell = """%%omni_perf --torch wait=0 warmup=0 active=1 repeat=2
with torch.profiler.record_function("warm"):
    pass
train(1)
with torch.profiler.record_function("epoch"):
    train(2)
train(3)"""
    ran = run(kernel, cell)
    assert ran.error is None and len(rows(kernel, "traces")) == 2, ran.outputs
    spanning = cell.replace("train(1)\nwith", "with").replace("train(2)", "train(4)")
    ran = run(kernel, spanning)
    assert ran.error is None and "A record_function of yours was open" in ran.text("stderr"), ran.outputs
    assert len(rows(kernel, "traces")) == 2 and is_clean(kernel)


def test_what_on_trace_raises_is_said(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --torch\nomni_perf.schedule(0, 0, 1, on_trace=lambda path: 1 / 0);\ntrain(2)")
    run(kernel, "omni_perf.schedule.clear()")
    assert ran.error is None and "on_trace failed" in ran.text("stderr") and "division by zero" in ran.text("stderr")
    assert [row["steps"] for row in rows(kernel, "traces")] == [1]


def test_a_full_disk_is_said(kernel: Kernel) -> None:
    """Below a limit of the file size the export fails as on a full disk."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, ({}, -1))"
    run(kernel, limit.format(20_000))
    ran = run(kernel, "%%omni_perf --torch\ntrain(20)\n'the value'")
    run(kernel, limit.format(-1))
    assert ran.result == "'the value'" and "trace could not be written" in ran.text("stderr"), ran.outputs
    assert is_clean(kernel)


def test_bad_options_are_sentences(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --torch active=0\ntrain(1)")
    assert "active takes at least one step" in ran.text("stderr") and rows(kernel, "operators")
    ran = run(kernel, "%%omni_perf --torch wait=x\ntrain(1)")
    assert "wait takes a whole number, such as wait=2, not 'x'" in ran.text("stderr")
    ran = run(kernel, "%%omni_perf --shapes\ntrain(1)")
    assert "--shapes belongs to --torch" in ran.text("stderr")
    assert run(kernel, "omni_perf.schedule(active=0)").error == "ValueError"
    assert run(kernel, "omni_perf.schedule(on_trace=3)").error == "TypeError"


TENSORBOARD = """\
import sys
from torch_tb_profiler import io, plugin
from torch_tb_profiler.profiler.loader import RunLoader
if __name__ == "__main__":
    run = RunLoader("run", sys.argv[1], io.Cache()).load()
    names = {row["name"] for profile in run.profiles.values() for row in profile.operation_table_by_name["data"]}
    print(sorted(run.profiles), "aten::addmm" in names)
"""


def test_the_files_of_a_folder(kernel: Kernel, tmp_path: Path) -> None:
    """Composer's names, one trace of all, the summary and tables; handlers are called in this order."""
    folder = tmp_path / "not" / "yet"
    run(
        kernel,
        "seen.clear(); omni_perf.schedule(wait=1, warmup=1, active=2, repeat=2, on_trace=lambda path: seen.append(os.path.basename(path)), "
        "on_cycle=lambda n: seen.append(f'cycle {n}'), on_epoch=lambda n: seen.append(f'epoch {n}'), on_end=lambda files: seen.append(files))",
    )
    cell = f"%%omni_perf --torch --prof_dir {folder}\nfor epoch in range(2):\n    for _ in range(5):\n        train(1, 0.02)\n        omni_perf.step(epoch=epoch)"
    ran = run(kernel, cell)
    run(kernel, "omni_perf.schedule.clear()")
    assert ran.error is None and ran.text("stderr") == "", ran.outputs
    *called, files = value(kernel, "seen")
    traces = ["rank0.4.pt.trace.json.gz", "rank0.8.pt.trace.json.gz"]
    assert called == [traces[0], "cycle 0", "epoch 0", traces[1], "cycle 1", "epoch 1"]
    made = [*traces, "ep0-ba4-rank0.json", "ep1-ba8-rank0.json", "node0.json.gz", "profiler_list.dat", "csv"]
    assert files == [str(folder / name) for name in made] and sorted(os.listdir(folder)) == sorted(made)
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    assert [row["file"] for row in rows(kernel, "traces")] == traces

    cycle = json.loads((folder / "ep1-ba8-rank0.json").read_text())
    events = cycle["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X" and e["cat"] == "step"] == ["step 6", "step 7"]
    assert {"cpu", "rss"} <= {e["name"] for e in events if e["ph"] == "C"}
    with gzip.open(folder / traces[1]) as file:
        trace = json.load(file)
    [began] = [
        e["ts"] for e in trace["traceEvents"] if e.get("name") == "ProfilerStep#6" and e.get("cat") == "user_annotation"
    ]
    wall = [t.get("baseTimeNanoseconds", 0) / 1e3 for t in (cycle, trace)]  # torch 2.1 has the wall clock's times
    steps = [e["ts"] for e in events if e["name"] == "step 6"]
    assert abs(wall[0] + steps[0] - wall[1] - began) < 5000  # µs: one clock
    with gzip.open(folder / "node0.json.gz") as file:
        merged = {event.get("name") for event in json.load(file)["traceEvents"]}
    assert {f"ProfilerStep#{n}" for n in (2, 3, 6, 7)} <= merged
    assert "aten::addmm" in (folder / "profiler_list.dat").read_text()
    assert "aten::addmm" in (folder / "csv" / "operators.csv").read_text()

    analysed = subprocess.run(
        [ROOT / ".venv" / "bin" / "omni-perf", "analyze", folder, "--json", "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [os.path.basename(row["file"]) for row in json.loads(analysed.stdout)["recordings"]] == traces


DEEPSPEED = """\
import sys, types
class FlopsProfiler:
    def print_model_profile(self, profile_step=1, module_depth=-1, top_modules=1, detailed=True, output_file=None):
        text = f'step {profile_step}, depth {module_depth}: 5 MACs'
        if output_file is None:
            print(text)
        else:
            with open(output_file, 'w') as file:
                file.write(text)
profiler = types.ModuleType('deepspeed.profiling.flops_profiler.profiler')
profiler.FlopsProfiler = FlopsProfiler
"""


@pytest.mark.parametrize("imported", ["before", "in the cell"])
def test_what_deepspeed_reports_is_kept(kernel: Kernel, tmp_path: Path, imported: str) -> None:
    """It goes where it went without us, too; the class is as it was after the cell."""
    register = "sys.modules[profiler.__name__] = profiler"
    run(kernel, DEEPSPEED + (register if imported == "before" else "pass"))
    body = f"{register}\ntrain(1)\nFlopsProfiler().print_model_profile(1, top_modules=2, module_depth=3)\ntrain(1)"
    body += (
        f"\nFlopsProfiler().print_model_profile(profile_step=2, output_file={str(tmp_path / 'own.txt')!r})\ntrain(1)"
    )
    folder = tmp_path / "runs"
    ran = run(kernel, f"%%omni_perf --torch --prof_dir {folder}\n{body}")
    assert ran.error is None and ran.text("stderr") == "" and ran.text("stdout").count("MACs") == 1, ran.outputs
    kept = {path.name: path.read_text() for path in folder.glob("*.flops.txt")}
    assert kept == {
        "ep0-ba1-rank0.flops.txt": "step 1, depth 3: 5 MACs",
        "ep0-ba2-rank0.flops.txt": "step 2, depth -1: 5 MACs",
    }
    assert (tmp_path / "own.txt").read_text() == "step 2, depth -1: 5 MACs"
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("*.flops.txt"))
    assert value(kernel, "FlopsProfiler.print_model_profile.__code__.co_argcount") == 6
    run(kernel, "del sys.modules[profiler.__name__]")


MEMORY = """\
import logging, sys, types
log = logging.getLogger('DeepSpeed')
log.propagate = False
log.setLevel(logging.INFO)
def see_memory_usage(message):
    log.info(message)
    log.info('MA 1.5 GB         Max_MA 2.0 GB         CA 2.0 GB         Max_CA 2 GB ')
    log.info('CPU Virtual Memory:  used = 7.1 GB, percent = 22.7%')
sys.modules['deepspeed'] = types.ModuleType('deepspeed')
"""


def test_what_deepspeed_logs_of_memory_is_kept(kernel: Kernel, tmp_path: Path) -> None:
    """By step; other lines of its log are not, and the logger is as it was after the cell."""
    run(kernel, MEMORY)
    body = "train(1)\nsee_memory_usage('after the first step')\nlog.info('loss 0.3')\ntrain(1)"
    body += "\nlog.info('time (ms) | fwd: 1.20 | mem_allocated: 1.5 GB')\nlog.info('%d of %s', 1)"
    folder = tmp_path / "runs"
    ran = run(kernel, f"%%omni_perf --torch --prof_dir {folder}\n{body}")
    assert ran.error is None, ran.outputs
    kept = {path.name: path.read_text().splitlines() for path in folder.glob("*.memory.txt")}
    assert kept == {
        "ep0-ba1-rank0.memory.txt": [
            "after the first step",
            "MA 1.5 GB         Max_MA 2.0 GB         CA 2.0 GB         Max_CA 2 GB ",
            "CPU Virtual Memory:  used = 7.1 GB, percent = 22.7%",
        ],
        "ep0-ba2-rank0.memory.txt": ["time (ms) | fwd: 1.20 | mem_allocated: 1.5 GB"],
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("*.memory.txt"))
    assert value(kernel, "len(log.filters)") == 0
    run(kernel, "del sys.modules['deepspeed']")


def test_tensorboard_reads_the_folder(kernel: Kernel, tmp_path: Path) -> None:
    if not has("torch_tb_profiler.plugin"):
        missing("torch", "there is no torch-tb-profiler in .cache/torch: tools/torch installs it")
    folder, script = tmp_path / "runs", tmp_path / "read.py"
    assert run(kernel, f"%%omni_perf --torch active=2 repeat=2 --prof_dir {folder}\ntrain(7)").error is None
    script.write_text(TENSORBOARD)
    read = subprocess.run([PYTHON, script, folder], capture_output=True, text=True, timeout=120, check=False)
    assert read.stdout.strip() == "[('rank0', '1'), ('rank0', '2')] True", read.stderr


def test_a_folder_that_cannot_be_made_is_said(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run(kernel, f"%%omni_perf --torch --prof-dir {tmp_path / 'file' / 'inside'}\ntrain(2)")
    assert ran.error is None and "could not be made: Not a directory" in ran.text("stderr"), ran.outputs
    assert len(rows(kernel, "traces")) == 1
    ran = run(kernel, "%%omni_perf --prof_dir x\ntrain(1)")
    assert "--prof_dir belongs to --exact or --torch" in ran.text("stderr")
