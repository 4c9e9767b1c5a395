"""The environment with torch, the program, and a GPU: a real or a simulated one.

What is missing skips the tests with the reason and the command that brings it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torches
from requirement import missing
from requirement import program as built

ROOT = Path(__file__).resolve().parents[3]
FAKE_NVML = ROOT / "sidecar" / "measure" / "gpu" / "testdata" / "fakenvml"
NVML = "libnvidia-ml.so.1"


@pytest.fixture(scope="session")
def program() -> Path:
    """The omni-perf of this checkout; .cache/torch has one too, as old as that environment."""
    return Path(built())


@pytest.fixture(scope="session")
def torch_python() -> Path:
    """The Python of tools/torch, or of the environment that OMNI_PERF_TORCH names."""
    torches.need_torch()
    return torches.PYTHON


@pytest.fixture(scope="session")
def cuda_python(request: pytest.FixtureRequest) -> Path:
    """The Python of tools/torch where its torch can use an NVIDIA GPU."""
    if reason := no_gpu():
        missing("gpu", f"no NVIDIA GPU here: {reason}")
    python: Path = request.getfixturevalue("torch_python")
    code = "import torch; torch.cuda.init(); print(torch.cuda.get_device_name(0))"
    tried = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if tried.returncode:
        last = tried.stderr.strip().splitlines()[-1:]
        pytest.skip(f"torch in {torches.TORCH.name} cannot use the GPU: {''.join(last)}")
    print(f"GPU: {tried.stdout.strip()}")
    return python


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder in build/gpu, for what a person may look at."""
    made = ROOT / "build" / "gpu" / str(request.node.name)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    return made


def no_gpu() -> str:
    """Return why NVML finds no GPU; empty if it does."""
    try:
        nvml = ctypes.CDLL(NVML)
    except OSError:
        return f"{NVML} was not found"
    count = ctypes.c_uint(0)
    if code := nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return f"NVML did not start (error {code})"
    return "" if count.value else "NVML lists no device"


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = os.environ.get("CC", "cc").split()[0]
    if shutil.which(compiler) is None:
        missing("compiler", "no C compiler to build the fake NVML library with: apt-get install gcc libc6-dev")
    library = tmp_path_factory.mktemp("nvml") / NVML
    subprocess.run([FAKE_NVML / "build.sh", library], check=True)
    return library


@pytest.fixture
def simulated_gpu(fake_driver: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a program that drives examples/simulated_gpu.py, and of its sidecar."""
    feed = tmp_path / "gpu.feed"
    feed.touch()
    return {
        "OMNI_PERF_NVML_LIBRARY": str(fake_driver),
        "OMNI_PERF_FAKE_NVML_FEED": str(feed),
        "PYTHONPATH": str(ROOT / "examples"),
    }
