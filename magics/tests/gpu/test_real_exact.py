"""`omni-perf run --exact` on a real GPU, beside the events of the libraries that drive it: `make test-gpu`."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
from pathlib import Path

import pytest

from .judged import pairs, problems
from .runs import PROGRAMS, call

pytestmark = pytest.mark.gpu

LAUNCHES = """
import time, torch
x = torch.zeros(1, device="cuda")
def launch(count):
    began = time.perf_counter()
    for _ in range(count):
        x.add_(1)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count * 1e6
launch(20000)
print("microseconds", *(round(launch(20000), 3) for _ in range(9)))
"""


USES = {
    "torch": "import torch",
    "graphs": "import torch",
    "cupy": "import cupy",
    "jax": "import jax",
    "numba": "from numba import cuda; cuda.jit(lambda: None)[1, 1]()",  # which some versions of NumPy break
}


def lacks(python: Path, library: str) -> str:
    """Why an environment cannot use a library; empty if it can."""
    tried = subprocess.run([python, "-c", USES[library]], capture_output=True, text=True, check=False)
    return "".join(tried.stderr.strip().splitlines()[-1:]) if tried.returncode else ""


@pytest.mark.parametrize("library", USES)
def test_the_work_of_a_program_is_exact(library: str, program: Path, cuda_python: Path, folder: Path) -> None:
    """Busy time is that of the library's events, and idle time is at the lines that made the device wait."""
    if why := lacks(cuda_python, library):
        pytest.skip(f"{library}: {why}")
    facts, output = folder / "facts.json", folder / "exact"
    command: list[Path | str] = [program, "run", "--exact", "--format", "json,svg", "-o", str(output)]
    call([*command, "--interpreter", cuda_python, PROGRAMS / "gpuwork.py"], library, "--facts", facts)
    document, known = json.loads(output.with_suffix(".json").read_text()), json.loads(facts.read_text())
    print(library, document["headline"]["text"], *map(str, pairs(document, known)), sep="\n  ")
    print("  idle:", document["idle"]["text"], *(note["text"] for note in document["notes"]), sep="\n  ")
    assert problems(document, known, 0.15 if library == "jax" else 0.04) == []


def test_what_exact_costs_a_launch(program: Path, cuda_python: Path, folder: Path) -> None:
    """Printed, not judged: the time of a launch without omni_perf, with it, and with --exact, by turns."""
    script = folder / "launches.py"
    script.write_text(LAUNCHES)
    run: list[Path | str] = [program, "run", "--format", "json", "-o", str(folder / "launches")]
    commands: dict[str, list[Path | str]] = {
        "bare": [cuda_python],
        "run": [*run, "--interpreter", cuda_python],
        "run --exact": [*run, "--exact", "--interpreter", cuda_python],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(2):
        for name, command in commands.items():
            done = subprocess.run([*command, script], capture_output=True, text=True, timeout=120, check=True)
            found = re.findall(r"microseconds (.*)", done.stdout)
            times[name] += map(float, found[-1].split())
    for name, found in times.items():
        print(f"{name}: a launch takes {statistics.median(found):.2f} µs ({min(found):.2f} to {max(found):.2f})")
    document = json.loads((folder / "launches.json").read_text())
    print(document["idle"]["text"], *(note["text"] for note in document["notes"]), sep="\n")
    assert any("exact from" in note["text"] for note in document["notes"])
