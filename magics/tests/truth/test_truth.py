"""Ordinary cells in real kernels, and as scripts, against the clock they keep of their own lines.

Each runs once here, on every version of CPython (as a script on one of them, in turn); thirty times by
``make truth``. tools/kernels makes the environments.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from truth import cases, running
from truth.cases import Case
from truth.running import Notebook, Results

ENVIRONMENTS = ["3.11", "3.12", "3.13", "3.14", "3.15", "oldest"]

CASES = cases.load()

SCRIPTS = [case for case in CASES if case.script() is not None]

KNOWN = {("3.12", "wait_for and timeouts"), ("3.13", "wait_for and timeouts")}
"""What is still wrong: time.sleep in the handler of a wait_for that timed out is at no line there."""


def need(environment: str, case: Case) -> None:
    for module in case.needs:
        if not running.has(environment, module):
            pytest.skip(f"{environment} has no {module}")


def environment_of(name: str) -> str:
    if not (running.ENVIRONMENTS / name / ".complete").exists():
        pytest.skip(f"no environment {name} in .cache/kernels: tools/kernels makes it")
    return name


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return environment_of(request.param)


@pytest.fixture(scope="module")
def notebook(environment: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One kernel for all cases of a version, as in a long session."""
    folder = tmp_path_factory.mktemp("notebook")
    with running.kernel(environment, folder) as kernel:
        yield Notebook(kernel, folder)


def judge(results: Results) -> None:
    (comparison,) = results.values()
    print(comparison)
    assert comparison.right, f"{comparison}\n{comparison.table()}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_cell(environment: str, notebook: Notebook, case: Case) -> None:
    need(environment, case)
    results: Results = {}
    running.run_cells(results, notebook, case)
    (comparison,) = results.values()
    if (environment, case.name) in KNOWN and not comparison.right:
        pytest.xfail(f"known to be wrong: {comparison}")
    judge(results)


@pytest.mark.parametrize(("turn", "case"), list(enumerate(SCRIPTS)), ids=[case.name for case in SCRIPTS])
def test_a_script(turn: int, case: Case, tmp_path: Path) -> None:
    environment = environment_of(ENVIRONMENTS[turn % 5])
    need(environment, case)
    results: Results = {}
    assert running.run_script(results, environment, case, tmp_path)
    judge(results)
