"""A PyTorch training on a real NVIDIA GPU, by omni_perf and by torch.profiler at once: `make test-gpu`.

Reports and analyses stay in build/gpu for a person to look at.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from .compare import compare
from .runs import plain, recorded

pytestmark = pytest.mark.gpu
ROUNDS = 3


@pytest.mark.parametrize("variant", ["starved", "fixed", "item"])
def test_lanes_and_attribution_agree_with_torch_profiler(
    variant: str, program: Path, cuda_python: Path, folder: Path
) -> None:
    report, analysis, facts = recorded(program, folder, "train.py", variant, python=cuda_python)
    made = compare(report, analysis, facts)
    text = f"{made.gpu}, {facts['software']}\n{made}"
    print(text)
    (folder / "comparison.txt").write_text(text + "\n")
    assert made.problems == []


def test_what_omni_perf_costs(program: Path, cuda_python: Path, folder: Path) -> None:
    """Printed, not judged: machines differ."""
    run: list[Path | str] = [program, "run", "-s", "0.1", "--format", "json", "-o", str(folder / "omni_perf")]
    commands: dict[str, list[Path | str]] = {
        "without": [cuda_python],
        "with": [*run, "--interpreter", cuda_python],
    }
    step_ms: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            facts = plain(folder, "train.py", "fixed", command=command)
            assert facts["device"] != "cpu"
            step_ms[name].append(1000 * (facts["ended"] - facts["began"]) / facts["steps"])
    without, with_ = (statistics.median(step_ms[name]) for name in ("without", "with"))
    print(
        f"a step takes {without:.2f} ms, with omni_perf {with_:.2f} ms ({100 * (with_ / without - 1):+.2f} %); {step_ms}"
    )
    (folder / "cost.json").write_text(json.dumps(step_ms))
