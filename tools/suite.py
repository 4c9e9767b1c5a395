#!/usr/bin/env python3
"""The suite: every section of the tests in one table, run one after the other, with its seconds.

    tools/suite.py                the sections of ``make test``
    tools/suite.py go python      these; a name also means all sections that begin with it (go-live, go-alone …)
    tools/suite.py --all          what a build server runs (.ci/run)
    tools/suite.py --list         the table
    tools/suite.py --flaky [20]   the tests that judge time, so many times, and what failed how often

A section that fails does not keep the others from running. What failed in it, the Go tests or the Python
tests, runs a second time, alone, for some tests watch real programs in real time, and a machine that stalls
for a second can fail one of them. At the end all that ran twice is listed, and the seconds of each section.
What fails twice fails the run, and so does what cannot be told apart: a package that does not compile, a
collection that fails; and a test that was skipped for want of something that is there (REQUIREMENTS).

From the environment, as make hands it on: PACKAGES="./sidecar/show/... ./jupyter" tests only those of the Go
packages, PYTEST="-k name" is handed to pytest, WORKERS is how many Python tests run side by side.
What each section said is kept in build/suite.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "suite"
MODULE = "github.com/omni-perf/omni-perf"
GO = os.environ.get("GO", "go")
VENV = Path(os.environ.get("VENV", ROOT / ".venv"))


class Skipped(Exception):  # noqa: N818 - not an error
    """Nothing of a section can run here; the reason is given."""


@dataclass
class Failures:
    """What an output says has failed."""

    packages: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Go packages, as paths in the checkout, with the names of the tests; none: the package as a whole."""
    tests: list[str] = field(default_factory=list[str])
    """Python tests, as pytest spells them."""
    hopeless: bool = False
    """Something that a second run cannot mend."""

    def names(self) -> list[str]:
        """Return what failed, a line each."""
        listed = [f"{package}: {', '.join(tests) or 'the package'}" for package, tests in self.packages.items()]
        return listed + self.tests


def failures(output: str) -> Failures:
    """Read the output of go test or pytest.

    >>> failures('''--- FAIL: TestA (0.1s)
    ... FAIL    github.com/omni-perf/omni-perf/sidecar/measure/host	1.2s
    ... ok      github.com/omni-perf/omni-perf/sidecar/measure/gpu	1.2s''').names()
    ['./sidecar/measure/host: TestA']
    >>> failures('''--- FAIL: TestA (0.1s)
    ... panic: after this no other test ran
    ... FAIL    github.com/omni-perf/omni-perf/sidecar/measure/host	1.2s''').names()
    ['./sidecar/measure/host: the package']
    >>> failures('FAIL    github.com/omni-perf/omni-perf/sidecar/measure/host [build failed]').hopeless
    True
    >>> failures('FAILED magics/tests/test_save.py::test_link[a b] - AssertionError: no').names()
    ['magics/tests/test_save.py::test_link[a b]']
    """
    found, tests, cut = Failures(), list[str](), False
    for line in output.splitlines():
        if match := re.match(r"--- FAIL: (\S+)", line):
            tests.append(match[1])
        elif re.match(r"panic: |fatal error: |signal: ", line):
            cut = True  # the tests behind it did not run
        elif match := re.match(rf"FAIL\s+{MODULE}/(\S+)(.*)", line):
            found.packages["./" + match[1]], tests, cut = [] if cut else tests, [], False
            found.hopeless |= "[" in match[2]  # [build failed], [setup failed]
        elif re.match(r"ok\s", line):
            tests, cut = [], False
        elif match := re.match(r"(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", line):
            found.tests.append(match[1])
        elif re.match(r"ERROR \S+|E +(ImportError|SyntaxError)", line):
            found.hopeless = True
    return found


@dataclass
class Step:
    """One command of a section."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    folder: Path = ROOT
    quiet: bool = False
    """Its output is shown only if it fails."""
    twice: bool = False
    """Whether it runs once more as a whole where it fails: what it says names no test."""

    def failed(self, output: str) -> Failures:
        """Return what its output says has failed."""
        return Failures()

    def again(self, found: Failures) -> list[Step] | None:
        """Return what runs only these once more, or None where that would mend nothing."""
        return [self] if self.twice else None


@dataclass
class GoTest(Step):
    """Tests of Go packages: ``go test`` with flags."""

    packages: list[str] = field(default_factory=list[str])

    def failed(self, output: str) -> Failures:
        """Return what its output says has failed."""
        return failures(output)

    def again(self, found: Failures) -> list[Step] | None:
        """Return the tests that failed, package by package."""
        if found.hopeless or not found.packages:
            return None
        flags = self.command[: len(self.command) - len(self.packages)]
        if "-run" in flags:
            at = flags.index("-run")
            flags, of_section = flags[:at] + flags[at + 2 :], flags[at : at + 2]
        else:
            of_section = []
        return [
            GoTest(
                [*flags, "-count=1", *(["-run", f"^({'|'.join(tests)})$"] if tests else of_section), package],
                self.environment,
                packages=[package],
            )
            for package, tests in found.packages.items()
        ]


@dataclass
class PyTest(Step):
    """Python tests: pytest, whose cache knows what failed."""

    def failed(self, output: str) -> Failures:
        """Return what its output says has failed."""
        return failures(output)

    def again(self, found: Failures) -> list[Step] | None:
        """Return the tests that failed, one by one."""
        if found.hopeless or not found.tests:
            return None
        only = ["-n", "0", "--last-failed", "--last-failed-no-failures=none"]
        return [PyTest([*self.command, *only], self.environment, self.folder)]


@dataclass
class Section:
    """A part of the suite."""

    name: str
    about: str
    steps: Callable[[], Iterable[Step]]
    daily: bool = True
    """Whether it is of ``make test``; what is not is for those who ask, and for a build server."""
    beside: bool = False
    """Whether it judges no time, and so runs beside others of the kind."""
    needed: bool = False
    """Whether nothing can run where it fails."""


# Go


RACE = ["-race"]
WITHOUT_RACE = {
    "cmd/omni-perf": "starts the profiler in each test; go-concurrency tries the commands that start most",
    "sidecar/compare/mergereports": "measures the memory of many reports; go-concurrency reads many with it",
    "sidecar/measure/pystack": "the race detector slows the sampler tenfold: its accuracy is judged without",
    "sidecar/measure/pytasks": "the same: it reads tasks as often as that costs little",
    "sidecar/understand/diagnose": "starts no goroutine and simulates hours of recordings",
    "sidecar/show/chart": "draws such recordings",
    "sidecar/show/chart/compared": "the same",
    "sidecar/testkit/specimen": "diagnoses recordings of hundreds of programs, and runs some of them",
    "sidecar/traces": "analyses whole traces; go-concurrency tries its goroutines with small ones",
    "sidecar/traces/page": "the same",
    "sidecar/traces/synth": "the same",
}

REAL_TIME = {"os/exec", f"{MODULE}/sidecar/testkit/retry", f"{MODULE}/sidecar/testkit/truth"}
"""A package that imports one of these, or whose tests do, starts programs and judges time: such packages run
one or two at a time. The others only compute, and run beside anything."""

ALONE = {"sidecar/measure/pystack", "sidecar/measure/pytasks"}
"""Those that count how long single reads take: nothing runs beside them."""


def go_list(template: str) -> list[str]:
    """Return a line for each package asked for."""
    asked = shlex.split(os.environ.get("PACKAGES", "")) or ["./..."]
    listed = subprocess.run(
        [GO, "list", "-f", template, *asked], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return listed.stdout.splitlines()


def go_packages(live: bool, race: bool) -> list[str]:
    """Return the packages with tests, of those asked for, that watch programs or not, with the race detector or not."""
    files = "{{.ImportPath}} {{len .TestGoFiles}}{{len .XTestGoFiles}}"
    chosen = list[str]()
    for line in go_list(files + "".join(f' {{{{join .{kind}Imports " "}}}}' for kind in ("", "Test", "XTest"))):
        package, tests, *imports = line.split()
        path = package.removeprefix(MODULE).removeprefix("/")
        if tests != "00" and bool(REAL_TIME.intersection(imports)) == live and (path not in WITHOUT_RACE) == race:
            chosen.append(package)
    return chosen


def go_test(packages: list[str], *flags: str) -> Iterator[Step]:
    if packages:
        yield GoTest([GO, "test", *flags, *packages], packages=packages)


def go_data() -> Iterator[Step]:
    yield from go_test(go_packages(live=False, race=True), *RACE)
    yield from go_test(go_packages(live=False, race=False))


def go_live() -> Iterator[Step]:
    packages = go_packages(live=True, race=True)
    if packages:  # compiled before, so that no compiler runs beside a test
        yield Step([GO, "test", *RACE, "-run", "^$", *packages], quiet=True)
    yield from go_test(packages, *RACE, "-p", "2")


def go_alone() -> Iterator[Step]:
    packages = go_packages(live=True, race=False)
    alone = [package for package in packages if package.removeprefix(f"{MODULE}/") in ALONE]
    yield from go_test([package for package in packages if package not in alone], "-p", "2", "-timeout", "30m")
    yield from go_test(alone, "-p", "1", "-timeout", "30m")


def go_concurrency() -> Iterator[Step]:
    asked = go_list("{{.ImportPath}}")
    chosen = {
        "sidecar/measure/pystack": "Image|Second|Gone|Contended|Budget",
        "sidecar/measure/pytasks": "FutureIsDone|Budget",
        "sidecar/traces": "Damaged|Parity|Run",
        "sidecar/compare/mergereports": "OfManyReportsThree|OneReport|Outline",
        "cmd/omni-perf": "RanksOfALauncherAreFollowed|OutlivesItsProfiler|TopFollows|NoProcessOfOurs",
    }
    for package, tests in chosen.items():
        path = f"{MODULE}/{package}"
        yield from go_test([path] if path in asked else [], *RACE, "-run", tests)


# Python


OF_THE_PROGRAM = [
    "gpu",
    "test_adapters.py",
    "test_agreement.py",
    "test_allocations.py",
    "test_analyze.py",
    "test_analyze_torch.py",
    "test_attach.py",
    "test_attach_kernels.py",
    "test_compare.py",
    "test_documents.py",
    "test_engines.py",
    "test_exact_cell.py",
    "test_exact_work.py",
    "test_glance.py",
    "test_headlines.py",
    "test_lines.py",
    "test_loader_batches.py",
    "test_nsys.py",
    "test_prerequisites.py",
    "test_raised.py",
    "test_remote.py",
    "test_run_torch.py",
    "test_sinks.py",
    "test_stephook.py",
    "test_suite.py",
    "test_torch_cell.py",
    "test_trainings.py",
]
"""Tests of the Go program, of the repository, of interpreters of their own, of devices or of packages that are here for
one Python: another Python of the extension is nothing to them."""
OLDEST = ["ipython==8.12.*", "ipykernel==6.17.*", "grpclib==0.4.7"]
"""The lowest versions that pyproject.toml and the documentation promise."""


def pytest(section: str, *arguments: str, venv: Path = VENV, workers: int = 3) -> Step:
    """Run Python tests with the programs of an environment on PATH.

    So many side by side that two cores are busy: most of the time they wait for kernels.
    """
    command = [str(venv / "bin/python"), "-m", "pytest", "-n", os.environ.get("WORKERS", str(workers))]
    cache = ["-o", f"cache_dir={ROOT}/build/suite/cache-{section}"]  # what failed, which is another's elsewhere
    return PyTest(
        [*command, *cache, *arguments, *shlex.split(os.environ.get("PYTEST", ""))],
        {"PATH": f"{venv}/bin:{os.environ['PATH']}"},
    )


def extension(section: str, venv: Path = VENV, ignored: list[str] | None = None) -> Step:
    """Run all Python tests but those that have a section of their own."""
    leave_out = [f"--ignore=magics/tests/{path}" for path in ["browser", "truth", *(ignored or [])]]
    return pytest(section, "--dist", "loadfile", *leave_out, venv=venv)


def on_another(version: str) -> Iterator[Step]:
    """Run the extension's tests on another Python."""
    venv = ROOT / ".cache" / f"venv-{version}"
    yield Step(["make", "build", f"PYTHON={interpreter(version)}", f"VENV={venv}"])
    yield extension(f"python-{version}", venv, OF_THE_PROGRAM)


def interpreters() -> Iterator[tuple[str, str]]:
    """Return the CPythons that run, as tools/interpreters names them, with their paths."""
    try:
        listed = (ROOT / ".cache/interpreters/list").read_text()
    except FileNotFoundError:
        find = [ROOT / "tools/interpreters", "--print"]
        listed = subprocess.run(find, capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, path = line.partition("\t")
        if succeeds(path, "-I", "-c", ""):
            yield name, path


def interpreter(version: str) -> str:
    """Return the path of a CPython of this version that runs, or skip the section."""
    for name, path in interpreters():
        if name == version:
            return path
    raise Skipped(f"no CPython {version} that runs (tools/interpreters fetches one)")


def oldest() -> Iterator[Step]:
    """Run the extension's tests with the oldest packages, on 3.12.

    3.11 and 3.13 have the newest ones, so each version of Python and each end of the packages is tried once.
    The oldest on 3.11 and the newest on 3.12 run the cells of the section truth.
    """
    venv = ROOT / ".cache" / "venv-3.12-oldest"
    yield Step(["make", "build", f"PYTHON={interpreter('3.12')}", f"VENV={venv}"])
    yield Step([str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *OLDEST])
    yield extension("oldest", venv, OF_THE_PROGRAM)


# The rest


VIEWER = ROOT / "sidecar" / "show" / "viewer"


def viewer() -> Iterator[Step]:
    """Check types and run the modules' tests, where Node and its packages are.

    Not npm ci: that refuses a registry without the optional packages of other systems. --no-save leaves the lock file.
    """
    if not on_path("npm"):
        raise Skipped("Node is not here (apt-get install nodejs npm)")
    install = ["npm", "install", "--no-save", "--silent"]
    installed = subprocess.run(install, cwd=VIEWER, capture_output=True, text=True, check=False)
    if installed.returncode:
        raise Skipped(f"the packages cannot be had here: {last_line(installed.stderr)}")
    yield Step(["npm", "run", "--silent", "check"], folder=VIEWER)
    yield Step(["npm", "run", "--silent", "test"], folder=VIEWER, twice=True)


def wheel() -> Iterator[Step]:
    """Try ``%load_ext omni_perf`` and the omni-perf command of a wheel, in a clean environment."""
    python = os.environ.get("PYTHON") or sys.executable
    build = ROOT / "build"
    clean = build / "wheel-test"
    yield Step(["rm", "-rf", str(clean)])
    yield Step([python, "-m", "venv", str(clean)])
    yield Step([str(clean / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "."])
    yield Step([str(clean / "bin/omni-perf"), "version"])
    yield Step([str(clean / "bin/python"), "../tools/try_wheel.py"], folder=build)


DEMO = """
make --no-print-directory demo 2>build/demo.err | tee build/demo.out || { cat build/demo.err && exit 1; }
if [ -s build/demo.err ]; then
    echo "the demo's lines are not alone:" && cat build/demo.err && exit 1
fi
tail -n 2 build/demo.out | while read -r file; do [ -f "$file" ]; done # those to open first
"""


def demo() -> Iterator[Step]:
    """Execute the example notebooks: nothing but the demo's own lines, and the files that it names."""
    yield Step(["bash", "-euo", "pipefail", "-c", DEMO])


def command(line: str) -> Callable[[], list[Step]]:
    return lambda: [Step(shlex.split(line))]


SECTIONS = [
    # What cannot be had is skipped loudly, here and in the tests that need it.
    Section("interpreters", "the CPythons that tests watch", command("tools/interpreters"), daily=False),
    Section("build", ".venv with the extension and the program", command("make build"), daily=False, needed=True),
    # What judges no time: two of these run at once, the long ones first.
    Section("go-data", "Go packages that only compute", go_data, beside=True),
    Section("torch", "PyTorch in .cache/torch: 5.5 GB", command("tools/torch"), daily=False, beside=True),
    Section("lint", "vet, staticcheck, ruff, pyright", command("make lint"), daily=False, beside=True),
    Section("kernels", "ipykernel for each CPython", command("tools/kernels"), daily=False, beside=True),
    Section("engines", "Dask, Ray and ipyparallel", command("tools/engines"), daily=False, beside=True),
    Section("sinks", "MLflow, W&B, tensorboardX, an S3 server", command("tools/sinks"), daily=False, beside=True),
    Section("memray", "memray in .cache/memray", command("tools/memray"), daily=False, beside=True),
    Section("viewer", "its types and modules", viewer, beside=True),
    Section(
        "vulnerabilities", "known ones of what is linked", command("make vulnerabilities"), daily=False, beside=True
    ),
    # One by one from here: these watch programs, or use all cores themselves.
    Section("wheel", "in a clean environment", wheel, daily=False),  # not beside torch, which builds one, too
    Section("fuzz", "every decoder of foreign bytes", command("tools/fuzz 1"), daily=False),
    Section("demo", "the example notebooks", demo, daily=False),
    Section("python-3.13", "the extension on another Python", lambda: on_another("3.13"), daily=False),
    Section("oldest", "the extension on 3.12 with the oldest IPython", oldest, daily=False),
    Section("go-live", "Go packages that watch programs, with the race detector", go_live),
    Section("go-alone", "those that the race detector is too slow for", go_alone),
    Section("go-concurrency", "of those, what starts goroutines, with it", go_concurrency),
    Section("python", "the extension", lambda: [extension("python")]),
    # A run of its own: Playwright's event loop would stand in the way of the shells above.
    Section("web", "JupyterLab and pages in Chromium", lambda: [pytest("web", "magics/tests/browser", workers=4)]),
    Section(
        "truth",
        "cells and scripts against their own clocks",
        lambda: [pytest("truth", "--dist", "loadgroup", "magics/tests/truth", workers=2)],
    ),
]


# Requirements


def on_path(*names: str) -> bool:
    """Whether one of these programs is there."""
    return any(shutil.which(name) for name in names)


def succeeds(*command: str | Path, folder: Path = ROOT) -> bool:
    """Whether a command can be run and ends well."""
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def has_python(version: str = "") -> bool:
    """Whether a CPython that runs is listed, of this version if one is given."""
    return any(name.partition("-")[0] == version or not version for name, _ in interpreters())


def has_gpu() -> bool:
    """Whether the NVIDIA driver lists a device."""
    try:
        nvml, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(0)
    except OSError:
        return False
    return not (nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))) and count.value > 0


TORCH = ROOT / ".cache" / "torch"
REQUIREMENTS: dict[str, Callable[[], bool]] = {
    "chromium": lambda: on_path("chromium", "chromium-browser", "google-chrome"),
    "compiler": lambda: on_path("cc"),
    "composer": lambda: (ROOT / ".cache/torch-composer/.complete").exists(),
    "cupti": lambda: any((ROOT / ".cache/cupti").glob("*/nvidia/*/include/cupti_activity.h")),
    "engines": lambda: (ROOT / ".cache/engines/.complete").exists(),
    "esbuild": lambda: succeeds(GO, "build", "-o", "/dev/null", ".", folder=ROOT / "tools" / "bundle"),
    "go": lambda: on_path(GO),
    "gpu": has_gpu,
    "memray": lambda: (ROOT / ".cache/memray/.complete").exists(),
    "mpirun": lambda: on_path("mpirun"),
    "namespaces": lambda: succeeds("unshare", "--time", "--mount", "true"),
    "program": lambda: (VENV / "bin/omni-perf").exists(),
    "python": has_python,
    "python3": lambda: succeeds("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"),
    "sinks": lambda: (ROOT / ".cache/sinks/.complete").exists(),
    "torch": lambda: (TORCH / ".complete").exists(),
    "torch-accelerate": lambda: succeeds(TORCH / "bin/python", "-c", "import accelerate"),
    "torch-joblib": lambda: succeeds(TORCH / "bin/python", "-c", "import joblib"),
    "traces": lambda: (ROOT.parent / "shared" / "traces" / "README.md").exists(),
    "virtualenv": lambda: succeeds(VENV / "bin/python", "-c", "import ipykernel"),
}
"""What a machine may lack, and how to look for it. A test that lacks it is skipped by sidecar/testkit/requirement
or magics/tests/requirement.py, which write that down."""


def is_here(requirement: str) -> bool:
    """Whether the machine has what a test was skipped for; one that is not known counts as here."""
    if requirement in REQUIREMENTS:
        return REQUIREMENTS[requirement]()
    kind, _, version = requirement.partition("-")
    if kind == "python":
        return has_python(version)
    if kind in ("gevent", "trio"):
        return succeeds(ROOT / ".cache" / "kernels" / version / "bin" / "python", "-c", f"import {kind}")
    if kind == "kernels":
        return (ROOT / ".cache" / "kernels" / version / ".complete").exists()
    return True


def judge_skipped(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return what the machine lacks, with how many tests, and what was skipped although it is there."""
    lacking, wrong = dict[str, list[str]](), list[str]()
    for requirement, test, reason in (line.rstrip("\n").split("\t", 2) for line in lines):
        lacking.setdefault(requirement, []).append(f"{test} was skipped, and {requirement} is here: {reason}")
    for requirement in list(lacking):
        if is_here(requirement):
            wrong += sorted(set(lacking.pop(requirement)))
    return [f"{requirement}: {plural(len(tests), 'test')}" for requirement, tests in sorted(lacking.items())], wrong


# Running


@dataclass
class Result:
    """How a section went."""

    section: Section
    seconds: float = 0
    closing: str = ""
    """The runner's own last line, or the number of Go packages."""
    skipped: str = ""
    twice: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])

    def word(self) -> str:
        """Return the result in a few words."""
        if self.broken:
            return "FAILED"
        return f"skipped: {self.skipped}" if self.skipped else self.closing or "ok"


SKIPPED_TESTS = "OMNI_PERF_SKIPPED_TESTS"


def skipped_tests() -> Path:
    """Return the file in which skipped tests are written down: another one in each run, which go test's cache sees."""
    return LOGS / f"skipped-{os.getpid()}"


class Runner:
    """Runs sections, and shows what they say, or keeps it until they are over where two run at once."""

    def __init__(self, section: Section, show: bool) -> None:
        self._section = section
        self._show = show
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log = LOGS / f"{section.name}.log"

    def run(self) -> Result:
        """Run the section's steps until one fails twice."""
        result, begun = Result(self._section), time.monotonic()
        with self.log.open("w") as log:
            self._say(log, f"\n-- {self._section.name}: {self._section.about}\n")
            outputs = list[str]()
            try:
                for step in self._section.steps():
                    said = self._step(step, result, log)
                    outputs += [] if step.quiet else [said]
                    if not isinstance(step, GoTest | PyTest) and result.broken:
                        break
            except Skipped as reason:
                result.skipped = str(reason)
                self._say(log, f"{self._section.name}: skipped, {reason}\n")
            except (OSError, subprocess.CalledProcessError) as error:
                result.broken.append(f"{self._section.name}: {error}")
            result.closing = closing("".join(outputs))
        result.seconds = time.monotonic() - begun
        return result

    def _step(self, step: Step, result: Result, log: TextIO) -> str:
        """Run one command; where it fails, what failed runs once more."""
        ok, output = self.command(step, log)
        if ok:
            return output
        failed = step.failed(output)
        more = step.again(failed)
        if more is None:
            result.broken += failed.names() or [self._section.name]
            return output
        lost, ok = set[str](), True
        for once_more in more:
            self._say(log, f"\n-- once more: {shlex.join(once_more.command)}\n")
            passed, output_again = self.command(once_more, log)
            if not passed:
                ok, again = False, once_more.failed(output_again)
                lost |= set(again.packages) | set(again.tests)
        if not lost or not lost <= set(failed.packages) | set(failed.tests):
            lost.clear()  # it is not known what failed again: all of it
        for name in failed.names() or [self._section.name]:
            is_lost = not ok and (not lost or name.split(":")[0] in lost or name in lost)
            (result.broken if is_lost else result.twice).append(name)
        return output

    def command(self, step: Step, log: TextIO) -> tuple[bool, str]:
        """Run a command, show what it says, and return whether it succeeded, and what it said."""
        output = list[str]()
        environment = {**os.environ, "CGO_CFLAGS": CGO_CFLAGS, SKIPPED_TESTS: str(skipped_tests()), **step.environment}
        with subprocess.Popen(
            step.command, cwd=step.folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        ) as p:  # fmt: skip
            assert p.stdout is not None
            for line in p.stdout:
                output.append(line)
                if not step.quiet:
                    self._say(log, line)
        said = "".join(output)
        if step.quiet and p.returncode:
            self._say(log, said)
        return p.returncode == 0, said

    def _say(self, log: TextIO, text: str) -> None:
        log.write(text)
        log.flush()
        if self._show:
            sys.stdout.write(text)
            sys.stdout.flush()


CGO_CFLAGS = os.environ.get("CGO_CFLAGS", "-O2 -g -Wno-deprecated-declarations")
"""As the Makefile has it: go-nvml's headers are full of deprecation marks."""


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")[:200]


def closing(output: str) -> str:
    r"""Return how the runner itself sums up an output.

    >>> closing("....\n4 passed, 1 skipped in 3.21s\n")
    '4 passed, 1 skipped in 3.21s'
    >>> closing("ok  a 1s\nok  b 2s\n?   c [no test files]\n")
    '2 Go packages ok'
    """
    for line in reversed(output.splitlines()):
        if match := re.match(r"=* ?(\d+ (?:passed|failed|skipped|error).* in [\d.]+s.*?) ?=*$", line):
            return match[1]
    packages = len(re.findall(r"^ok\s", output, re.MULTILINE))
    return f"{plural(packages, 'Go package')} ok" if packages else ""


def run_all(sections: list[Section]) -> list[Result]:
    """Run sections in order, those that judge no time two at once."""
    results, at = list[Result](), 0
    lock = threading.Lock()

    def aside(section: Section) -> Result:
        runner = Runner(section, show=False)
        result = runner.run()
        with lock:
            sys.stdout.write(runner.log.read_text(errors="replace"))
            sys.stdout.flush()
        return result

    while at < len(sections):
        end = at
        while end < len(sections) and sections[end].beside:
            end += 1
        if end - at > 1:
            with ThreadPoolExecutor(2) as lanes:
                results += lanes.map(aside, sections[at:end])
            at = end
            continue
        results.append(Runner(sections[at], show=True).run())
        at += 1
        if results[-1].broken and results[-1].section.needed:
            break
    return results


def sum_up(results: list[Result], seconds: float) -> int:
    """Print what was skipped, what ran twice, what failed and the seconds, and return the exit status."""
    lacking, wrong = list[str](), list[str]()
    if skipped_tests().exists():
        lacking, wrong = judge_skipped(skipped_tests().read_text().splitlines())
        skipped_tests().unlink()
    for title, names in (
        ("skipped, for these are not here", lacking),
        ("passed when run a second time", [name for result in results for name in result.twice]),
        ("FAILED", [name for result in results for name in result.broken] + wrong),
    ):
        if names:
            print(f"\n-- {title}:", *names, sep="\n   ")
    print("\n-- seconds of each section:")
    for result in results:
        print(f"   {result.seconds:7.0f}  {result.section.name:16}  {result.word()}")
    print(f"   {seconds:7.0f}  in all", flush=True)
    return 1 if wrong or any(result.broken for result in results) else 0


# Tests that judge time


def timed_go_tests(sources: Iterable[str]) -> list[str]:
    r"""Return the tests of a package, given by the texts of its test files, that measure under retry.Again.

    >>> again = "func helper(t *testing.T) { retry.Again(t, nil) }"
    >>> timed_go_tests(["func TestA(t *T) { helper(t) }\nfunc TestB(t *T) { }\n", again])
    ['TestA']
    """
    bodies = dict[str, str]()
    for source in sources:
        for part in re.split(r"^func ", source, flags=re.MULTILINE)[1:]:
            name = re.match(r"(?:\([^)]*\) )?(\w+)", part)
            if name:
                bodies[name[1]] = part[name.end() :]
    timed = {name for name, body in bodies.items() if "retry.Again(" in body}
    while True:
        calls = re.compile(rf"\b({'|'.join(map(re.escape, sorted(timed)))})\(") if timed else re.compile(r"(?!)")
        more = {name for name, body in bodies.items() if name not in timed and calls.search(body)}
        if not more:
            return sorted(name for name in timed if name.startswith("Test"))
        timed |= more


def timed_steps(times: int) -> Iterator[Step]:
    """Return what runs the tests that judge time, so many times: Go's at once, Python's in turn."""
    for line in go_list("{{.ImportPath}} {{.Dir}}"):
        package, folder = line.split(" ", 1)
        tests = timed_go_tests(path.read_text() for path in Path(folder).glob("*_test.go"))
        if tests:
            flags = ["-count", str(times), "-timeout", "0", "-run", f"^({'|'.join(tests)})$"]
            yield from go_test([package], *flags)
    for _ in range(times):
        yield pytest("flaky", "-m", "timed", "--dist", "loadgroup", "--ignore=magics/tests/browser", workers=2)


def tally(times: int, steps: Iterable[Step]) -> int:
    """Run steps, print how often each test failed, and fail where one did more than once."""
    runner, counts = Runner(Section("flaky", f"what judges time, {times} times", list), show=True), Counter[str]()
    LOGS.mkdir(parents=True, exist_ok=True)
    with runner.log.open("w") as log:
        for step in steps:
            passed, output = runner.command(step, log)
            counts.update(count_failed(output) if not passed else {})
    table = "".join(f"{count}\t{name}\n" for name, count in counts.most_common())
    (ROOT / "build" / "flaky.tsv").write_text(table)
    print(f"\n-- of {times} runs failed:", *(table.splitlines() or ["none"]), sep="\n   ", flush=True)
    return 1 if any(count > 1 for count in counts.values()) else 0


def count_failed(output: str) -> Counter[str]:
    r"""Return how often each test failed in an output.

    >>> sorted(count_failed("--- FAIL: TestA (1s)\n--- FAIL: TestA (1s)\nFAILED a.py::test_b - no").items())
    [('TestA', 2), ('a.py::test_b', 1)]
    >>> count_failed("panic: no")
    Counter({'something that names no test': 1})
    """
    names = re.findall(r"^--- FAIL: (\S+)", output, re.MULTILINE) + failures(output).tests
    return Counter(names or ["something that names no test"])


def choose(names: list[str]) -> list[Section]:
    """Return the sections of these names, in the order of the table."""
    chosen = set[str]()
    for name in names:
        found = {s.name for s in SECTIONS if s.name == name} or {
            s.name for s in SECTIONS if s.name.startswith(name + "-")
        }
        if not found:
            sys.exit(f"there is no section {name}; there are {', '.join(s.name for s in SECTIONS)}")
        chosen |= found
    return [section for section in SECTIONS if section.name in chosen]


def main(arguments: list[str]) -> int:
    """Run what is asked for and return the exit status."""
    if arguments == ["--list"]:
        for section in SECTIONS:
            print(f"{section.name:16}  {'make test' if section.daily else '         '}  {section.about}")
        return 0
    if arguments[:1] == ["--flaky"]:
        times = int(arguments[1]) if len(arguments) > 1 else 20
        return tally(times, timed_steps(times))
    if arguments == ["--all"]:
        sections = SECTIONS
    else:
        sections = choose(arguments) if arguments else [section for section in SECTIONS if section.daily]
    begun = time.monotonic()
    results = run_all(sections)
    return sum_up(results, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
