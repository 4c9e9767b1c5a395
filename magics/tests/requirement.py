"""What a test needs from the machine: a test that lacks it is skipped, and what is missing is written down.

tools/suite.py knows each requirement and how to look for it, and fails where it is there after all. Go tests
have sidecar/testkit/requirement for this.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from omni_perf.launcher import LaunchError, find_binary


def missing(requirement: str, reason: str) -> NoReturn:
    """Skip the test that runs, for want of a requirement."""
    if path := os.environ.get("OMNI_PERF_SKIPPED_TESTS"):
        test = os.environ.get("PYTEST_CURRENT_TEST", "a module").removesuffix(" (setup)").removesuffix(" (call)")
        with open(path, "a") as file:
            file.write(f"{requirement}\t{test}\t{reason!r}\n")
    pytest.skip(f"{requirement}: {reason}")


def program() -> str:
    """Return the omni-perf of this checkout."""
    try:
        return find_binary()
    except LaunchError as error:
        missing("program", f"the program is not built: {error}")


def python_with_trio() -> Path:
    """Return an interpreter of this version whose environment has ipykernel and trio."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = Path(__file__).parents[2] / ".cache" / "kernels" / minor / "bin" / "python"
    if (
        not python.exists()
        or subprocess.run([python, "-c", "import trio"], capture_output=True, check=False).returncode
    ):
        missing(f"trio-{minor}", f"the environment of {minor} has no trio: tools/kernels")
    return python
