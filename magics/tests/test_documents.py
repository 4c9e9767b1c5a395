"""What the documents name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_that_hold_a_promise_exist() -> None:
    page = (ROOT / "docs" / "robustness.md").read_text()
    named = set(re.findall(r"\b(?:(?:Test|Fuzz)[A-Z]\w+|test_\w+(?:\.py)?)", page))
    there = {path.name for path in (ROOT / "magics" / "tests").glob("test_*.py")}
    for path in (ROOT / "magics" / "tests").glob("test_*.py"):
        there.update(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    for folder in ("bench", "cmd", "jupyter", "sidecar"):
        for path in (ROOT / folder).rglob("*_test.go"):
            there.update(re.findall(r"^func ((?:Test|Fuzz)\w+)", path.read_text(), re.MULTILINE))
    assert named - there == set()


@pytest.mark.parametrize(
    "file", ["cmd/omni-perf/main.go", "hatch_build.py", "pyproject.toml", "Makefile", "tools/wheels.py"]
)
def test_the_version_is_written_in_one_place(file: str) -> None:
    from omni_perf import __version__

    assert __version__ not in (ROOT / file).read_text()
