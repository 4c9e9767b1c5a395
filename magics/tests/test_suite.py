"""The suite's runner: what it does with sections that fail, and what is in its table."""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from requirement import missing

ROOT = Path(__file__).parents[2]


def load() -> Any:
    spec = importlib.util.spec_from_file_location("suite", ROOT / "tools" / "suite.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["suite"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "suite", sys)
    module = load()
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(module, "GO", write(tmp_path / "go", GO))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("PACKAGES", raising=False)
    return module


def write(path: Path, script: str) -> str:
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return str(path)


GO = r"""
echo "go $*" >> "$CALLS"
say() { printf '%s\n' "$@"; }
host="github.com/omni-perf/omni-perf/sidecar/measure/host"
case "$*" in
    "test ./flaky"|"test ./broken")
        say "--- FAIL: TestA (0.1s)" "--- FAIL: FuzzB (0.1s)" "    a_test.go:3: no" "FAIL $host 1s" "ok   $host/x 1s" "FAIL"
        exit 1 ;;
    "test -race -run T ./panics") say "--- FAIL: TestA (0.1s)" "panic: no" "FAIL $host 1s"; exit 1 ;;
    "test -count=1 -run ^(TestA|FuzzB)$ ./sidecar/measure/host")
        [ -e "$CALLS.broken" ] && { say "--- FAIL: TestA (0.1s)" "FAIL $host 1s"; exit 1; } ;;
    "test ./compile") say "FAIL $host [build failed]"; exit 1 ;;
    *) say "ok   $host 1s" ;;
esac
exit 0
"""


def run(suite: Any, capsys: pytest.CaptureFixture[str], *sections: Any) -> tuple[int, str]:
    status = suite.sum_up(suite.run_all(list(sections)), 1)
    return status, capsys.readouterr().out


def go_section(suite: Any, name: str, *flags: str, **how: bool) -> Any:
    return suite.Section(name, "of Go", lambda: list(suite.go_test([f"./{name}"], *flags)), **how)


AGAIN = "-count=1 -run ^(TestA|FuzzB)$ ./sidecar/measure/host"


@pytest.mark.parametrize(
    ("name", "flags", "status", "said", "calls"),
    [
        ("good", [], 0, "1 Go package ok\n", ["go test ./good"]),
        ("flaky", [], 0, "passed when run a second time:\n   ./sidecar/measure/host: TestA, FuzzB\n", ["go test ./flaky", f"go test {AGAIN}"]),
        ("broken", [], 1, "FAILED:\n   ./sidecar/measure/host: TestA, FuzzB\n", ["go test ./broken", f"go test {AGAIN}"]),
        # the tests behind a panic did not run
        ("panics", ["-race", "-run", "T"], 0, "second time:\n   ./sidecar/measure/host: the package\n",
         ["go test -race -run T ./panics", "go test -race -count=1 -run T ./sidecar/measure/host"]),
        ("compile", [], 1, "FAILED:\n   ./sidecar/measure/host: the package\n", ["go test ./compile"]),
    ],
)  # fmt: skip
def test_what_fails_runs_once_more(
    suite: Any,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    flags: list[str],
    status: int,
    said: str,
    calls: list[str],
) -> None:
    if name == "broken":
        (tmp_path / "calls.broken").touch()
    got, out = run(suite, capsys, go_section(suite, name, *flags))
    assert (got, (tmp_path / "calls").read_text().splitlines()) == (status, calls)
    assert said in out


TESTS = """
import os, pathlib, pytest
HERE = pathlib.Path(__file__).parent
def test_good(): pass
@pytest.mark.parametrize("what", ["x y"])
def test_flaky(what):
    seen = HERE / "seen"
    known = seen.exists()
    seen.touch()
    assert known
def test_broken(): assert not (HERE / "breaks").exists()
"""


@pytest.mark.parametrize("breaks", [False, True])
def test_python_tests_that_fail_run_once_more(
    suite: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    monkeypatch.setenv("PYTEST", f"-n 0 -q -rf --rootdir {tmp_path}")
    (tmp_path / "test_it.py").write_text(TESTS)
    if breaks:
        (tmp_path / "breaks").touch()
    step = suite.pytest("mine", str(tmp_path / "test_it.py"), venv=Path(sys.prefix))
    step.folder = tmp_path
    status, out = run(suite, capsys, suite.Section("mine", "of Python", lambda: [step]))
    twice, _, failed = out.partition("-- passed when run a second time:")[2].partition("-- FAILED:")
    assert "test_it.py::test_flaky[x y]" in twice
    assert ("test_it.py::test_broken" in failed) == breaks
    assert status == int(breaks)
    assert re.search(r"mine +" + ("FAILED" if breaks else r"1 failed, 2 passed in [\d.]+s"), out)


def test_a_section_that_fails_keeps_no_other_from_running(suite: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Iterator[Any]:
        yield suite.Step(["sh", "-c", "echo no; exit 3"])
        pytest.fail("a step behind one that failed")

    def skips() -> list[Any]:
        raise suite.Skipped("nothing here")

    def missing() -> list[Any]:
        return [suite.Step(["/nonexistent/program"])]

    status, out = run(
        suite,
        capsys,
        suite.Section("lint", "fails", fails),
        suite.Section("node", "skipped", skips),
        suite.Section("gone", "its program is missing", missing),
        go_section(suite, "good"),
    )
    assert status == 1
    ended = out.partition("-- FAILED:")[2]
    assert "\n   lint\n" in ended
    assert re.findall(r"^ +\d+  (\w+) +(.*)$", ended, re.MULTILINE) == [
        ("lint", "FAILED"), ("node", "skipped: nothing here"), ("gone", "FAILED"), ("good", "1 Go package ok"), ("in", "all"),
    ]  # fmt: skip


def test_nothing_runs_without_what_all_need(suite: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    build = suite.Section("build", "fails", lambda: [suite.Step(["false"])], needed=True)
    status, _ = run(suite, capsys, build, go_section(suite, "good"))
    assert status == 1
    assert not (tmp_path / "calls").exists()


def test_sections_that_judge_no_time_run_two_at_once(
    suite: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each of the first two ends only when the other has begun; what they say is not mixed."""
    script = f"echo $0 begins; touch {tmp_path}/$0; while [ ! -e {tmp_path}/$1 ]; do sleep 0.01; done; echo $0 ends"
    sections = [
        suite.Section(
            one, "waits", lambda one=one, other=other: [suite.Step(["sh", "-c", script, one, other])], beside=True
        )
        for one, other in (("a", "b"), ("b", "a"))
    ]
    status, out = run(suite, capsys, *sections, go_section(suite, "good"))
    assert status == 0
    assert "a begins\na ends\n" in out
    assert "b begins\nb ends\n" in out


def test_the_table() -> None:
    suite = load()
    assert doctest.testmod(suite).failed == 0
    names = [section.name for section in suite.SECTIONS]
    assert len(set(names)) == len(names)
    assert [section.name for section in suite.choose(["python"])] == ["python"]
    assert [section.name for section in suite.choose(["go"])] == [name for name in names if name.startswith("go-")]
    with pytest.raises(SystemExit, match="there is no section nonsense; there are interpreters, build"):
        suite.choose(["nonsense"])
    for package in suite.WITHOUT_RACE:
        assert (ROOT / package).is_dir(), f"{package} is named in the table and does not exist"


def test_each_go_package_is_of_one_section() -> None:
    suite = load()
    chosen = [package for live in (False, True) for race in (False, True) for package in suite.go_packages(live, race)]
    listed = subprocess.run(
        [suite.GO, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./..."],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert sorted(chosen) == sorted(listed)


def test_a_test_skipped_for_want_of_what_is_here_fails_the_run(
    suite: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(suite.REQUIREMENTS, "gpu", lambda: False)
    monkeypatch.setitem(suite.REQUIREMENTS, "torch", lambda: True)

    def skipping(*lines: str) -> Any:
        text = "\n".join(lines)
        return suite.Section(
            "some", "skips", lambda: [suite.Step(["sh", "-c", 'echo "$0" >> "$OMNI_PERF_SKIPPED_TESTS"', text])]
        )

    status, out = run(suite, capsys, skipping("gpu\tTestA\tno GPU", "gpu\tTestB\tno GPU"))
    assert (status, "skipped, for these are not here:\n   gpu: 2 tests\n" in out) == (0, True)
    status, out = run(suite, capsys, skipping("torch\ttest_a.py::test_a\tno torch", "unknown\tTestC\tno idea"))
    assert status == 1
    failed = out.partition("-- FAILED:")[2].splitlines()
    assert failed[1] == "   test_a.py::test_a was skipped, and torch is here: no torch"
    assert failed[2].startswith("   TestC was skipped, and unknown is here")
    assert run(suite, capsys, go_section(suite, "good"))[0] == 0  # nothing is kept from one run to the next


def test_what_python_tests_lack_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNI_PERF_SKIPPED_TESTS", str(tmp_path / "skipped"))
    with pytest.raises(pytest.skip.Exception, match="gpu: no GPU\there"):
        missing("gpu", "no GPU\there")
    (line,) = (tmp_path / "skipped").read_text().splitlines()
    assert (
        line
        == f"gpu\tmagics/tests/test_suite.py::{test_what_python_tests_lack_is_written_down.__name__}\t'no GPU\\there'"
    )


def test_each_requirement_of_go_tests_is_known() -> None:
    suite = load()
    source = (ROOT / "sidecar" / "testkit" / "requirement" / "requirement.go").read_text()
    named = re.findall(r'Requirement = "([^"]+)"', source)
    assert set(named) <= set(suite.REQUIREMENTS), "not known to tools/suite.py"
    assert len(named) > 5
    in_python = {
        name
        for path in (ROOT / "magics" / "tests").rglob("*.py")
        for name in re.findall(r'missing\("([^"]+)"', path.read_text())
    }
    assert in_python <= set(suite.REQUIREMENTS), "not known to tools/suite.py"


def test_what_fails_more_than_once_is_flaky(
    suite: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    (tmp_path / "build").mkdir()

    def saying(text: str) -> Any:
        return suite.Step(["sh", "-c", 'printf "$0"; exit 1', text])

    assert suite.tally(3, [saying("--- FAIL: TestA (1s)\n"), suite.Step(["true"])]) == 0
    assert (
        suite.tally(
            3,
            [
                saying("--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n--- FAIL: TestA (1s)\n"),
                saying("FAILED a.py::test_b - no\n"),
            ],
        )
        == 1
    )
    assert "-- of 3 runs failed:\n   2\tTestA\n   1\ta.py::test_b\n" in capsys.readouterr().out
    assert (tmp_path / "build" / "flaky.tsv").read_text() == "2\tTestA\n1\ta.py::test_b\n"
