"""Real PyTorch (CPU) in a real kernel, a simulated GPU beside it: needs the torch of tools/torch."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernels
import pytest
from jupyter_client.manager import KernelManager
from reading import reading

from .compare import compare
from .runs import recorded

TORCH = """
import time, torch
from torch.utils.data import DataLoader, Dataset
"""
ROWS = """
class Rows(Dataset):
    def __init__(self, count):
        self.count = count
    def __len__(self):
        return self.count
    def __getitem__(self, number):
        time.sleep(0.025)
        return torch.full((4,), number / self.count), torch.ones(1)
"""
NETWORK = """
from simulated_gpu import SimulatedGPU
gpu = SimulatedGPU()
gpu.busy(0.1)
gpu.synchronize()
network = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
"""
STEPS, BATCH, ROW_S, BUSY_S = 12, 8, 0.025, 0.1
TRAIN = f"""
for features, wanted in DataLoader(Rows({STEPS * BATCH}), batch_size={BATCH}, num_workers=0):
    loss = torch.nn.functional.mse_loss(network(features), wanted)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    gpu.busy({BUSY_S})
    gpu.synchronize()
"""

# All that the modules of loaders and optimizers hold, and their classes; the handles of hooks count themselves.
ATTRIBUTES = """
import sys
def attributes():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(("torch.utils.data", "torch.optim")):
            for key, value in vars(module).items():
                found[name, key] = value
                if isinstance(value, type):
                    found.update({(name, key, inner): held for inner, held in vars(value).items()})
    return found
hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
"""


@pytest.fixture
def kernel(
    torch_python: Path,
    program: Path,
    simulated_gpu: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[kernels.Kernel]:
    """A kernel of the environment with torch, which nobody has imported yet."""
    spec = tmp_path / "kernels" / "torch"
    spec.mkdir(parents=True)
    argv = [str(torch_python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "torch", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setattr(kernels, "KernelManager", functools.partial(KernelManager, kernel_name="torch"))
    with kernels.Kernel({**simulated_gpu, "OMNI_PERF_BINARY": str(program)}) as running:
        yield running


def run(kernel: kernels.Kernel, cell: str) -> kernels.Ran:
    ran = kernel.run(cell, patience_s=120)
    assert ran.error is None, ran.outputs
    return ran


def last(kernel: kernels.Kernel, folder: Path) -> dict[str, Any]:
    path = folder / "report.json"
    run(kernel, f"import json, omni_perf; open({str(path)!r}, 'w').write(json.dumps(omni_perf.last().to_dict()))")
    return reading(json.loads(path.read_text()))


def test_a_starved_training(kernel: kernels.Kernel, tmp_path: Path) -> None:
    for cell in (TORCH, ROWS, NETWORK):
        run(kernel, cell)
    assert run(kernel, "%%omni_perf" + TRAIN).charts()
    report = last(kernel, tmp_path)

    steps = report["steps"]
    assert len(steps) == STEPS
    for step in steps:
        length = step["end_s"] - step["start_s"]
        assert 0.9 * BATCH * ROW_S < step["data_wait_s"] < length
    # The hook ends a step before the device has done its work: the first one has none.
    assert all(step["busy_s"] > 0.5 * BUSY_S for step in steps[1:])

    top = report["idle"][0]
    assert top["cause"] == "data-loading-here"
    assert top["text"] == "time.sleep(0.025)"
    assert "num_workers=" in top["hint"]
    waited = sum(step["data_wait_s"] for step in steps)
    assert top["seconds"] == pytest.approx(waited, rel=0.1)
    (finding,) = (found for found in report["findings"] if found["id"] == "dataloader-bound")
    assert "num_workers=" in finding["hint"]
    assert report["findings"][0] == finding
    assert report["headline"] == finding["text"]


def test_steps_are_found_where_the_cell_itself_imports_torch(kernel: kernels.Kernel, tmp_path: Path) -> None:
    run(kernel, "%%omni_perf\n" + TORCH + ROWS + NETWORK + TRAIN)
    assert len(last(kernel, tmp_path)["steps"]) == STEPS


def test_torch_is_not_imported_by_us(kernel: kernels.Kernel) -> None:
    run(kernel, "%%omni_perf\nimport time; time.sleep(0.3)")
    loaded = run(kernel, "import sys\n[name for name in sys.modules if name.partition('.')[0] == 'torch']")
    assert loaded.result == "[]"
    assert run(kernel, "import importlib.util; importlib.util.find_spec('torch') is not None").result == "True"


def test_nothing_of_torch_is_patched(kernel: kernels.Kernel) -> None:
    for cell in (TORCH, ROWS, NETWORK, TRAIN, ATTRIBUTES):  # torch wraps an optimizer's step when it is first used
        run(kernel, cell)
    run(kernel, "before, count = attributes(), len(hooks)")
    run(kernel, "%%omni_perf" + TRAIN)
    assert run(kernel, "len(before) > 1000, count, len(hooks)").result == "(True, 0, 1)"
    changed = "after = attributes()\n[key for key in before | after if before.get(key) is not after.get(key)]"
    assert run(kernel, changed).result == "[('torch.optim.optimizer', 'RemovableHandle', 'next_id')]"
    run(kernel, "%unload_ext omni_perf")
    assert run(kernel, "len(hooks)").result == "0"


@pytest.mark.parametrize("variant", ["starved", "fixed", "item"])
def test_the_program_for_real_gpus_runs(variant: str, torch_python: Path, program: Path, tmp_path: Path) -> None:
    """On the CPU: its trace has no kernels, but loader, facts and report are what a comparison reads."""
    report, analysis, facts = recorded(
        program, tmp_path, "train.py", variant, "--device", "cpu", "--steps", "4", python=torch_python
    )
    (row,) = analysis["dataloader"]
    assert row["fetches"] in (4, 5)  # the one that ends the loop may count
    storage_s = 4 * 32 * 0.004
    if variant == "starved":
        assert facts["ended"] - facts["began"] > row["dataloader_us"] / 1e6 > storage_s
    first, last_ = facts["lines"]
    lines = {line["text"]: line for line in report["lines"] if line["file"].endswith("programs/train.py")}
    wanted = {"starved": "time.sleep(STORAGE_S)", "item": "right += hits[number].item()"}
    if variant in wanted:
        assert first <= lines[wanted[variant]]["line"] <= last_
    with pytest.raises(AssertionError, match="no GPU was used"):
        compare(report, analysis, facts)
