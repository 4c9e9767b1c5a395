"""Cells on a real GPU, beside the program's own clocks, events and allocator: `make test-gpu`.

What each cell showed stays in build/gpu for a person to look at.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran

from .judged import Document, pairs, problems
from .runs import PROGRAMS

pytestmark = pytest.mark.gpu

SET_UP = f"""\
import glob, json, os, pickle, sys, tempfile, time
import omni_perf
sys.path.insert(0, {str(PROGRAMS)!r})
import gpuwork
os.chdir(tempfile.mkdtemp())
"""

TRAINING = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(8)], nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 32 * 40
    def __getitem__(self, number):
        time.sleep(0.0005)
        return torch.randn(1024), number % 10
def train(loader):
    for features, labels in loader:
        loss = nn.functional.cross_entropy(net(features.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.item()
    return total
train(torch.utils.data.DataLoader(Rows(), batch_size=32))
"""

Folder = Path


@pytest.fixture(scope="module")
def torch_kernel(cuda_python: Path) -> Iterator[Kernel]:
    with Kernel(python=cuda_python) as kernel:
        run(kernel, SET_UP + "gpu = gpuwork.Torch()")
        yield kernel


def run(kernel: Kernel, cell: str) -> Ran:
    ran = kernel.run(cell, patience_s=120)
    assert ran.error is None, ran.outputs
    return ran


def value(kernel: Kernel, expression: str) -> Any:
    ran = run(kernel, expression)
    assert ran.result is not None, ran.outputs
    return ast.literal_eval(ran.result)


def shown(kernel: Kernel, ran: Ran, folder: Folder, name: str) -> Document:
    """Keep what the last cell showed, and return its report."""
    for number, data in enumerate(ran.charts()):
        for kind, suffix in {"image/svg+xml": "svg", "text/html": "html", "text/plain": "txt"}.items():
            if kind in data:
                (folder / f"{name}{number or ''}.{suffix}").write_text(data[kind])
    path = folder / f"{name}.json"
    run(kernel, f"open({str(path)!r}, 'w').write(json.dumps(omni_perf.last().to_dict()))")
    document: Document = json.loads(path.read_text())
    print(name, document["headline"]["text"], (document["idle"] or {"text": "no idle time"})["text"], sep="\n  ")
    print(*(note["text"] for note in document["notes"]), ran.text("stderr"), sep="\n  ")
    return document


def judged(kernel: Kernel, folder: Folder, name: str, ran: Ran, tolerance: float) -> list[str]:
    """What the report of a cell that made `facts` says otherwise than these."""
    document, facts = shown(kernel, ran, folder, name), value(kernel, "facts")
    print(*map(str, pairs(document, facts)), sep="\n  ")
    return problems(document, facts, tolerance)


ROUNDS = "facts = gpuwork.rounds(gpu, 150, 0.005, 0.004, 0.003)"


@pytest.mark.parametrize("option", ["--exact", "--torch"])
def test_idle_time_is_exact(option: str, torch_kernel: Kernel, folder: Folder) -> None:
    run(torch_kernel, "gpu.events.clear()")
    ran = run(torch_kernel, f"%%omni_perf {option}\n{ROUNDS}")
    assert judged(torch_kernel, folder, "rounds", ran, 0.04) == []


def test_windows_divide_long_steps(torch_kernel: Kernel, folder: Folder) -> None:
    """Without an option: steps of a second, which the driver's windows can tell apart."""
    run(torch_kernel, "gpu.events.clear()")
    ran = run(torch_kernel, "%%omni_perf\nfacts = gpuwork.rounds(gpu, 10, 0.4, 0.4, 0.3)")
    document, facts = shown(torch_kernel, ran, folder, "windows"), value(torch_kernel, "facts")
    found = pairs(document, facts)
    print(*map(str, found), document["devices"], sep="\n  ")
    assert [str(pair) for pair in found if abs(pair.report_s - pair.truth_s) > 0.1 * pair.truth_s + 0.4] == []


def test_a_starved_training(torch_kernel: Kernel, folder: Folder) -> None:
    """Waiting for data is named, with operators and kernels as torch.profiler has them."""
    run(torch_kernel, TRAINING)
    for name, option in {"plain": "", "exact": " --exact", "torch": " --torch"}.items():
        ran = run(torch_kernel, f"%%omni_perf{option}\ntrain(torch.utils.data.DataLoader(Rows(), batch_size=32))")
        document = shown(torch_kernel, ran, folder, name)
        print(json.dumps(document["training_phases"])[:600])
        assert len(document["steps"]) == 40
        assert document["idle"]["causes"][0]["id"].startswith("data-loading"), document["idle"]
        if name == "torch":
            assert {"aten::linear", "aten::addmm"} <= {row["name"] for row in document["operators"]}
            kernels = sum(row["total_ns"] for row in document["kernel_times"]) / 1e9
            assert kernels == pytest.approx(document["devices"][0]["busy_ns"] / 1e9, rel=0.1, abs=0.005)


def test_what_torch_allocates(torch_kernel: Kernel, folder: Folder) -> None:
    run(torch_kernel, TRAINING + "torch.cuda.reset_peak_memory_stats()")
    ran = run(
        torch_kernel,
        "%%omni_perf --memory device\nkept = [torch.ones(1 << 22, device='cuda') for _ in range(20)]\n"
        "train(torch.utils.data.DataLoader(Rows(), batch_size=32))\nbig = torch.ones(1 << 28, device='cuda')\ndel big\ntime.sleep(0.5)",
    )
    peak, in_use = value(torch_kernel, "torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()")
    document = shown(torch_kernel, ran, folder, "allocations")
    [row] = document["torch_memory"]
    print(row, peak, in_use, value(torch_kernel, "glob.glob('*.pickle')"))
    print(ran.plain)
    assert row["allocated_bytes"] == in_use and row["peak_bytes"] == peak
    assert "big = torch.ones" in ran.plain
    run(torch_kernel, "del kept")


def test_out_of_memory(torch_kernel: Kernel, folder: Folder) -> None:
    """What had the memory is said, by names and sizes."""
    cell = """%%omni_perf
def hog():
    activations = [torch.ones(1 << 28, device="cuda") for _ in range(8)]
    return torch.ones(1 << 36, device="cuda") + activations[0]
hog()
"""
    ran = torch_kernel.run(cell, patience_s=60)
    assert ran.error == "OutOfMemoryError", ran.outputs
    document = shown(torch_kernel, ran, folder, "memory")
    [failure] = document["out_of_memory"]
    print(ran.plain)
    assert failure["requested_bytes"] == 4 << 36
    held = {row["name"]: row["bytes"] for row in failure["variables"]}
    assert held["activations"] == 8 << 30
    assert held["net"] == value(torch_kernel, "sum(p.untyped_storage().nbytes() for p in net.parameters())")
    assert {"optimizer", "gpu"} & set(held) == {"optimizer"}


def test_cupy_without_torch(cuda_python: Path, folder: Folder) -> None:
    """By the library of docs/exact.md, in a kernel that has never seen torch; two cells."""
    with Kernel(python=cuda_python) as kernel:
        if kernel.run("import cupy").error:
            pytest.skip("no CuPy beside this torch")
        run(kernel, SET_UP + "gpu = gpuwork.CuPy()")
        for name in ("first", "second"):
            run(kernel, "gpu.events.clear()")
            ran = run(kernel, f"%%omni_perf --exact\ntime.sleep(0.5)\n{ROUNDS}")
            assert judged(kernel, folder, name, ran, 0.04) == []
        assert value(kernel, "'torch' in sys.modules") is False


def test_a_profiler_of_the_programs_own(torch_kernel: Kernel, folder: Folder) -> None:
    """It gets its GPU events while --exact is asked for, and its trace is in the chart."""
    run(torch_kernel, TRAINING)
    ran = run(
        torch_kernel,
        "%%omni_perf --exact\nwith torch.profiler.profile() as own:\n    train(torch.utils.data.DataLoader(Rows(), batch_size=32))\n"
        "own.export_chrome_trace('own.json')",
    )
    document = shown(torch_kernel, ran, folder, "own")
    kernels = value(torch_kernel, "sum('\"cat\": \"kernel\"' in line for line in open('own.json'))")
    print("kernels in the program's own trace", kernels, [trace["events"] for trace in document["traces"]])
    assert kernels > 1000 and any("exact from" in note["text"] for note in document["notes"])
