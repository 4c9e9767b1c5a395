"""Which line the time goes to, where code objects come and go: in a real kernel and in a script.

IPython compiles each statement of a cell into a code object of its own and frees it; the
next one takes its memory, as do modules that are imported one after the other. Each test
knows by its own clock, or by its sleeps, where the time went.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel
from reading import frames, leaves, reading, roots

pytestmark = pytest.mark.timed

BINARY = Path(sys.executable).parent / "omni-perf"

KEEP_REPORTS = """
import importlib, json, sys, time, omni_perf
sys.dont_write_bytecode = True
reports, latest = [], None
def keep():
    global latest
    if latest is not (latest := omni_perf.last()):
        reports.append(latest)
get_ipython().events.register("post_run_cell", lambda result: keep())
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        assert kernel.run(KEEP_REPORTS).error is None
        yield kernel


def reports(kernel: Kernel) -> list[dict[str, Any]]:
    """Take every report made since the last call."""
    ran = kernel.run("print(json.dumps([report.to_dict() for report in reports])); reports.clear()")
    return json.loads(ran.text("stdout"))


def lines_of(kernel: Kernel) -> list[list[dict[str, Any]]]:
    """Take the lines of every report made since the last call."""
    return [reading(report)["lines"] for report in reports(kernel)]


def times_of(lines: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """The seconds of each line of the user's own code."""
    return {(line["file"], line["line"]): line["self_s"] for line in lines if line["self_s"] > 0}


def distance(got: dict[Any, float], want: dict[Any, float]) -> float:
    """The share of the time that is at another line than it should be."""
    total = sum(want.values())
    return sum(max(0.0, seconds - got.get(line, 0.0)) for line, seconds in want.items()) / total


def test_three_statements_in_a_row(kernel: Kernel) -> None:
    ran = kernel.run("%%omni_perf --quiet\ntime.sleep(0.1)\ntime.sleep(0.2)\ntime.sleep(0.6)")
    assert ran.error is None
    [lines] = lines_of(kernel)
    [cell] = {line["file"] for line in lines}
    assert distance(times_of(lines), {(cell, 2): 0.1, (cell, 3): 0.2, (cell, 4): 0.6}) < 0.05, lines


def test_functions_of_statements_in_a_row(kernel: Kernel) -> None:
    """A comprehension's or lambda's code goes with its statement, and its frame has the same place, too."""
    statements = [f"(lambda: time.sleep({seconds}))()" for seconds in (0.1, 0.25, 0.1, 0.3)]
    kernel.run("%%omni_perf --quiet\n" + "\n".join(statements))
    [lines] = lines_of(kernel)
    [cell] = {line["file"] for line in lines}
    want = {(cell, 2): 0.1, (cell, 3): 0.25, (cell, 4): 0.1, (cell, 5): 0.3}
    assert distance(times_of(lines), want) < 0.05, lines


@pytest.mark.parametrize("magic", ["%%omni_perf --quiet\n", "%omni_perf --quiet "])
def test_short_cells_in_a_row(kernel: Kernel, magic: str) -> None:
    for number in range(30):
        kernel.run(f"{magic}time.sleep(0.03)  # {number}")
    recorded = [times_of(lines) for lines in lines_of(kernel)]
    assert len(recorded) == 30
    assert all(len(lines) <= 1 for lines in recorded), recorded
    seen = [file for lines in recorded for file, _ in lines]
    assert len(seen) >= 27, "a cell without a sample is one on a machine busy elsewhere; these are too many"
    assert len(set(seen)) == len(seen), f"{len(seen)} cells name {len(set(seen))}: {seen}"


def test_modules_in_a_row(kernel: Kernel, tmp_path: Path) -> None:
    names = [f"shape_{number:02}" for number in range(24)]
    for name in names:
        (tmp_path / f"{name}.py").write_text(
            "import time\nbegan = time.monotonic()\ntime.sleep(0.02)\nspent = time.monotonic() - began\n"
        )
    kernel.run(f"sys.path.insert(0, {str(tmp_path)!r})")
    ran = kernel.run("%%omni_perf --quiet\n" + "\n".join(f"import {name}" for name in names))
    assert ran.error is None
    [report] = reports(kernel)
    seconds: dict[str, float] = {}
    for leaf, length in leaves(report):
        seconds[leaf["file"]] = seconds.get(leaf["file"], 0.0) + length
    spent: list[float] = json.loads(
        kernel.run(f"print([{', '.join(f'{name}.spent' for name in names)}])").text("stdout")
    )
    want = {str(tmp_path / f"{name}.py"): seconds for name, seconds in zip(names, spent, strict=True)}
    named = {file: seconds.get(file, 0.0) for file in want}  # importlib's own time is in nobody's clock
    assert distance(named, want) < 0.1, seconds


def test_code_compiled_under_the_name_of_a_real_file(kernel: Kernel, tmp_path: Path) -> None:
    real = tmp_path / "real.py"
    for seconds in (0.1, 0.3):
        real.write_text("\n" * round(20 * seconds) + f"time.sleep({seconds})\n")
        kernel.run(f"%%omni_perf --quiet\nexec(compile(open({str(real)!r}).read(), {str(real)!r}, 'exec'))")
        [report] = reports(kernel)
        lines = {frame["line"] for frame in frames(report) if frame["file"] == str(real)}
        assert lines == {round(20 * seconds) + 1}


def test_a_module_that_is_reloaded(kernel: Kernel, tmp_path: Path) -> None:
    module = tmp_path / "again.py"
    kernel.run(f"sys.path.insert(0, {str(tmp_path)!r})")
    module.write_text("import time\ndef work():\n    time.sleep(0.1)\nwork()\n")
    kernel.run("%%omni_perf --quiet\nimport again")
    module.write_text("import time\n\n\n\ndef work():\n\n    time.sleep(0.1)\n\nwork()\n")
    kernel.run("%%omni_perf --quiet\nimportlib.reload(again)")
    for report, want in zip(reports(kernel), [{3, 4}, {7, 9}], strict=True):
        lines = {frame["line"] for frame in frames(report) if frame["file"] == str(module)}
        assert lines >= want
        assert not lines & ({3, 4, 7, 9} - want)


def test_the_profilers_own_threads_are_in_nobodys_profile(kernel: Kernel) -> None:
    threads = "{thread.native_id: thread.name for thread in __import__('threading').enumerate()}"
    there = json.loads(kernel.run(f"print(json.dumps({threads}))").text("stdout"))
    assert "omni_perf" in there.values()
    kernel.run("%%omni_perf --quiet\ntime.sleep(0.2)")
    [report] = reports(kernel)
    seen = report["threads"]
    assert len(seen) > 1  # the kernel's own are there
    assert not [thread for thread in seen if there.get(str(thread["native_id"])) == "omni_perf"], seen


def test_the_root_of_a_script_is_the_script(tmp_path: Path) -> None:
    """Its code often takes the memory of that of a package which the interpreter's start has imported."""
    package = tmp_path / "path" / "sitecustomize"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import time\ntime.sleep(0.15)\n")
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(0.3)\n")
    for number in range(3):
        subprocess.run(
            [BINARY, "run", "--interpreter", sys.executable, "-o", str(tmp_path / f"out{number}"), "--format", "json", script],
            env=os.environ | {"PYTHONPATH": str(package.parent)}, check=True, capture_output=True,
        )  # fmt: skip
        report = json.loads((tmp_path / f"out{number}.json").read_text())
        assert "script.py" in roots(report), roots(report)
        lines = [line for line in reading(report)["lines"] if line["file"].endswith("script.py")]
        most = max(lines, key=lambda line: line["self_s"])  # the import before it may be seen, too
        assert (most["text"], most["self_s"] > 0.25) == ("time.sleep(0.3)", True), lines


def test_a_scripts_files_that_were_changed_while_it_ran_show_no_text(tmp_path: Path) -> None:
    """One was edited and then imported by another process; the script itself was replaced by an older one."""
    (tmp_path / "edited.py").write_text("import time\ndef slow():\n    time.sleep(0.3)\n")
    (tmp_path / "untouched.py").write_text("import time\ndef slow():\n    time.sleep(0.3)\n")
    (tmp_path / "older.py").write_text("import time\n\n# a script of which nothing ran\n")
    os.utime(tmp_path / "older.py", (1e9, 1e9))
    (tmp_path / "script.py").write_text(
        "import os, subprocess, sys, time, edited, untouched\n"
        "time.sleep(0.3)\n"
        "with open('edited.py', 'w') as file:\n"
        "    file.write('import time\\n# a comment that never ran\\n\\ndef slow():\\n    return 0\\n')\n"
        "os.rename('older.py', 'script.py')\n"
        "subprocess.run([sys.executable, '-c', 'import edited'], check=True)\n"
        "edited.slow()\n"
        "untouched.slow()\n"
    )
    subprocess.run(
        [BINARY, "run", "--interpreter", sys.executable, "-o", "out", "--format", "json", "script.py"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    texts = {
        (Path(line["file"]).name, line["line"]): line["text"]
        for line in reading(json.loads((tmp_path / "out.json").read_text()))["lines"]
        if line["self_s"] > 0.2
    }
    assert texts[("edited.py", 3)] is None
    assert texts[("script.py", 2)] is None
    assert texts[("untouched.py", 3)] == "time.sleep(0.3)"


FINDER = """
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
MAPPING = {mapping!r}
class _EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            return spec_from_file_location(fullname, MAPPING[fullname])
def install():
    sys.meta_path.append(_EditableFinder)
"""
"""What setuptools writes for a project that is more than a folder to add to sys.path, but for its packages."""


def test_editable_installs_are_own_code(tmp_path: Path) -> None:
    """By a .pth file that names a folder, and by one that installs a finder."""
    venv.create(tmp_path / "environment", symlinks=True)
    (site,) = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    project = tmp_path / "project"
    project.mkdir()
    source = "import time\ndef slow():\n    time.sleep(0.2)\n"
    for file in (project / "by_path.py", project / "by_finder.py", site / "installed.py"):
        file.write_text(source)
    (site / "__editable__.by_path-1.0.pth").write_text(f"{project}\n")
    finder = "__editable___by_finder_1_0_finder"
    (site / "__editable__.by_finder-1.0.pth").write_text(f"import {finder}; {finder}.install()")
    (site / f"{finder}.py").write_text(FINDER.format(mapping={"by_finder": str(project / "by_finder.py")}))
    (tmp_path / "script.py").write_text(
        "import by_path, by_finder, installed\nby_path.slow()\nby_finder.slow()\ninstalled.slow()\n"
    )
    interpreter = tmp_path / "environment" / "bin" / "python"
    subprocess.run(
        [BINARY, "run", "--interpreter", interpreter, "-o", "out", "--format", "json", "script.py"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    slow = [line for line in reading(json.loads((tmp_path / "out.json").read_text()))["lines"] if line["self_s"] > 0.15]
    assert sorted((Path(line["file"]).name, line["line"], line["text"]) for line in slow) == [
        ("by_finder.py", 3, "time.sleep(0.2)"),
        ("by_path.py", 3, "time.sleep(0.2)"),
        ("script.py", 4, "installed.slow()"),
    ]


def test_a_cell_with_an_error_has_one_duration(kernel: Kernel) -> None:
    """Chart, list and footer know nothing of the time for which IPython formats the traceback."""
    kernel.run("def deep(n):\n    if n:\n        return deep(n - 1)\n    time.sleep(0.3)\n    raise ValueError('deep')")
    ran = kernel.run("%%omni_perf\ntime.sleep(0.9)\ndeep(300)")
    assert ran.error == "ValueError"
    [chart] = ran.charts()
    figures: Any = chart["application/vnd.omni-perf+json"]
    seconds: float = figures["wall_ns"] / 1e9
    assert 1.2 <= seconds < 7  # of less than a second no rate of sampling is said
    plain = chart["text/plain"]
    [title] = re.findall(r"\] +([\d.]+) s  error: ValueError", plain)
    assert abs(float(title) - seconds) <= 0.06
    shown = kernel.run("%omni_perf list")
    [listed] = re.findall(r"([\d.]+) s  .*\(error: ValueError\)", shown.text("stdout") or shown.plain)
    assert abs(float(listed) - seconds) < 0.001
    footer = " ".join(plain.split())
    [cpu, unit, share] = re.findall(r"sampling took ([\d.]+) (m?s) of CPU \((\d+) % of a core\)", footer)[0]
    used = float(cpu) / (1000 if unit == "ms" else 1)
    assert abs(used / seconds - int(share) / 100) < 0.006
    assert not re.search(r"within \d+ %", plain)
