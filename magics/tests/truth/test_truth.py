"""Ordinary cells in real kernels, and as scripts, against the clock they keep of their own lines.

Each runs once here, on one of the six environments in turn, as a cell and as a script; with OMNI_PERF_TRUTH=everywhere
cells on each of them, and thirty times by ``make truth``. tools/kernels makes the environments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from requirement import missing

from truth import cases, invented, running
from truth.cases import Case
from truth.running import Notebook, Results

pytestmark = pytest.mark.timed

ENVIRONMENTS = ["3.11", "3.12", "3.13", "3.14", "3.15", "oldest"]

CASES = [*cases.load(), *(invented.case(seed) for seed in range(3))]

SCRIPTS = [case for case in CASES if case.script() is not None]


def need(environment: str, case: Case) -> None:
    for module in case.needs:
        if not running.has(environment, module):
            pytest.skip(f"{environment} has no {module}")


def environment_of(name: str) -> str:
    if not (running.ENVIRONMENTS / name / ".complete").exists():
        missing(f"kernels-{name}", f"no environment {name} in .cache/kernels: tools/kernels makes it")
    return name


def by_environment(name: str, *values: object, called: str) -> ParameterSet:
    """Return parameters of tests that run one after the other, where several run side by side."""
    return pytest.param(*values, marks=pytest.mark.xdist_group(name), id=called)


@pytest.fixture(scope="module")
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


def on_one() -> list[ParameterSet]:
    """Return each case with one of the environments, or with all, those of one environment together."""
    everywhere = os.environ.get("OMNI_PERF_TRUTH") == "everywhere"
    return [
        by_environment(name, name, case, called=f"{name}-{case.name}")
        for at, name in enumerate(ENVIRONMENTS)
        for turn, case in enumerate(CASES)
        if everywhere or turn % len(ENVIRONMENTS) == at
    ]


@pytest.mark.parametrize(("environment", "case"), on_one(), indirect=["environment"])
def test_a_cell(environment: str, notebook: Notebook, case: Case) -> None:
    need(environment, case)
    results: Results = {}
    running.run_cells(results, notebook, case)
    judge(results)


def in_turn() -> list[ParameterSet]:
    """Return each script with one of the five versions."""
    turns = ((ENVIRONMENTS[turn % 5], case) for turn, case in enumerate(SCRIPTS))
    return [by_environment(name, name, case, called=case.name) for name, case in turns]


@pytest.mark.parametrize(("name", "case"), in_turn())
def test_a_script(name: str, case: Case, tmp_path: Path) -> None:
    environment = environment_of(name)
    need(environment, case)
    results: Results = {}
    assert running.run_script(results, environment, case, tmp_path)
    judge(results)
