#!/usr/bin/env python3
"""The tests of a build server: what fails is run once more, and named.

    tools/test_twice.py [TARGET…]

Some tests watch real programs in real time, and a build server that stalls for a second can fail one
of them. So each target of the Makefile (by default those of ``make test``; "TARGET NAME=VALUE" sets
variables) runs once; of one that fails, the Go packages or the Python tests that failed run a second
time, and those of the viewer all. At the end all that ran twice is listed. What fails twice fails the
build, and so does what cannot be told apart: a package that does not compile, a collection that fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field

TARGETS = [
    "test-go-race",
    "test-go-alone",
    "test-go-concurrency",
    "test-viewer",
    "test-python WORKERS=2",
    "test-web",
    "test-truth",
]
WHOLE = "test-viewer"
"""Its output names no test that could run alone; it is short."""

MODULE = "github.com/omni-perf/omni-perf"


@dataclass
class Failures:
    """What a target's output says has failed."""

    packages: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Go packages, as paths in the checkout, with the names of the tests."""
    tests: list[str] = field(default_factory=list[str])
    """Python tests, as pytest spells them."""
    hopeless: bool = False
    """Something that a second run cannot mend."""

    def again(self, target: str) -> list[str] | None:
        """Return the command that runs only these, or None where there is none."""
        if target == WHOLE:
            return ["make", target]
        if self.hopeless or not (self.packages or self.tests):
            return None
        if self.packages:
            return ["make", *target.split(), "PACKAGES=" + " ".join(self.packages)]
        return ["make", *target.split(), "WORKERS=0", "PYTEST=--last-failed --last-failed-no-failures=none"]

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
    >>> failures('FAIL    github.com/omni-perf/omni-perf/sidecar/measure/host [build failed]').hopeless
    True
    >>> failures('FAILED magics/tests/test_save.py::test_link[a b] - AssertionError: no').names()
    ['magics/tests/test_save.py::test_link[a b]']
    """
    found, tests = Failures(), list[str]()
    for line in output.splitlines():
        if match := re.match(r"--- FAIL: (\S+)", line):
            tests.append(match[1])
        elif match := re.match(rf"FAIL\s+{MODULE}/(\S+)(.*)", line):
            found.packages["./" + match[1]], tests = tests, []
            found.hopeless |= "[" in match[2]  # [build failed], [setup failed]
        elif re.match(r"ok\s", line):
            tests = []
        elif match := re.match(r"(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", line):
            found.tests.append(match[1])
        elif re.match(r"ERROR \S+|E +(ImportError|SyntaxError)", line):
            found.hopeless = True
    return found


def run(command: list[str]) -> tuple[bool, str]:
    """Run a command, show what it says, and return whether it succeeded, and what it said."""
    output = list[str]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as p:
        assert p.stdout is not None
        for line in p.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            output.append(line)
    return p.returncode == 0, "".join(output)


def main(targets: list[str]) -> int:
    """Run the targets and return the exit status."""
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    twice, broken = list[str](), list[str]()
    for target in targets:
        print(f"\n-- make {target}", flush=True)
        ok, output = run(["make", *target.split()])
        if ok:
            continue
        failed = failures(output)
        command = failed.again(target)
        if command is None:
            broken += failed.names() or [target]
            continue
        print(f"\n-- once more: {' '.join(command)}", flush=True)
        ok, output = run(command)
        again = failures(output)
        lost = set(again.packages) | set(again.tests)
        for name in failed.names() or [target]:
            is_lost = not ok and (not lost or name.split(":")[0] in lost or name in lost)
            (broken if is_lost else twice).append(name)
    for title, names in (("passed when run a second time", twice), ("FAILED", broken)):
        if names:
            print(f"\n-- {title}:", *names, sep="\n   ")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or TARGETS))
