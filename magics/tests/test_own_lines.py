"""Lines of the user's own code where a notebook does more than run typed cells."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kernels import Kernel
from reading import reading

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def kernel(folder: Path) -> Iterator[Kernel]:
    with Kernel(python=sys.executable, folder=folder) as running:
        running.run("import time")
        yield running


def run(kernel: Kernel, cell: str) -> dict[str, Any]:
    """Run a profiled cell and return its report."""
    ran = kernel.run("%%omni_perf --quiet\n" + cell)
    assert ran.reply["status"] == "ok", ran.outputs
    return last_report(kernel)


def last_report(kernel: Kernel) -> dict[str, Any]:
    path = Path(kernel.run("import os; print(os.getcwd())").text("stdout").strip()) / "report.json"
    kernel.silently(f"import omni_perf as _p\n_p.last().save({str(path)!r})")
    return reading(json.loads(path.read_text()))


def top(report: dict[str, Any]) -> tuple[str, int, str | None]:
    """The line with most time: its file's name, number and text."""
    line = report["lines"][0]
    return os.path.basename(line["file"]), line["line"], line["text"]


def lines(report: dict[str, Any], text: str) -> list[tuple[str, int]]:
    """The places of a line's text, those with most time first."""
    return [(os.path.basename(line["file"]), line["line"]) for line in report["lines"] if line["text"] == text]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_module_of_ones_own(kernel: Kernel, folder: Path) -> None:
    write(folder, "own_module.py", "import time\ndef slow():\n    time.sleep(0.22)\n")
    report = run(kernel, "import own_module\nown_module.slow()")
    assert top(report) == ("own_module.py", 3, "time.sleep(0.22)")
    (callee,) = (line for line in report["lines"] if line["text"] == "time.sleep(0.22)")
    (caller,) = (line for line in report["lines"] if line["text"] == "own_module.slow()")
    assert caller["total_s"] >= max(callee["self_s"], 0.2)


def test_code_with_a_made_up_name_is_its_callers_and_a_file_by_a_relative_name_is_own(
    kernel: Kernel, folder: Path
) -> None:
    report = run(kernel, "code = compile('\\ntime.sleep(0.2)', 'string', 'exec')\nx = 1\nexec(code)")
    assert top(report)[1:] == (4, "exec(code)")
    write(folder, "relative_script.py", "import time\nx = 1\ntime.sleep(0.2)\n")
    report = run(kernel, "import runpy\nx = runpy.run_path('relative_script.py')")
    assert top(report) == ("relative_script.py", 3, "time.sleep(0.2)")


def test_an_editable_install_is_own_and_an_installed_package_is_not(kernel: Kernel, folder: Path) -> None:
    source = "import time\ndef slow():\n    time.sleep(0.2)\n"
    (folder / "checkout").mkdir()
    (folder / "lib" / "site-packages").mkdir(parents=True)
    write(folder / "checkout", "editable_package.py", source)
    write(folder / "lib" / "site-packages", "installed_package.py", source)
    kernel.run(f"import sys; sys.path += [{str(folder / 'checkout')!r}, {str(folder / 'lib' / 'site-packages')!r}]")
    assert top(run(kernel, "import editable_package\neditable_package.slow()")) == (
        "editable_package.py",
        3,
        "time.sleep(0.2)",
    )
    assert top(run(kernel, "import installed_package\ninstalled_package.slow()"))[1:] == (3, "installed_package.slow()")


def test_a_file_that_was_edited_after_its_import_shows_no_text(kernel: Kernel, folder: Path) -> None:
    path = write(folder, "edited_module.py", "import time\ndef slow():\n    time.sleep(0.2)\n")
    assert top(run(kernel, "import edited_module\nedited_module.slow()"))[2] == "time.sleep(0.2)"
    time.sleep(1.1)  # Python compares whole seconds
    path.write_text("import time\n# a new line\n\ndef slow():\n    return 0\n")
    report = run(kernel, "edited_module.slow()")
    assert top(report) == ("edited_module.py", 3, None)
    assert any("changed after its code was loaded" in note["text"] for note in report["notes"])
    path.write_text("import time\n# a new line\n\ndef slow():\n    time.sleep(0.3)\n")
    kernel.run("import importlib; importlib.reload(edited_module)")
    assert top(run(kernel, "edited_module.slow()")) == ("edited_module.py", 5, "time.sleep(0.3)")


def test_a_file_that_is_edited_while_the_cell_that_imports_it_runs_shows_no_text(kernel: Kernel, folder: Path) -> None:
    path = write(folder, "busy_module.py", "import time\ndef slow(seconds):\n    time.sleep(seconds)\n")
    editor = threading.Timer(1.0, path.write_text, ["import time\n\ndef slow(seconds):\n    return 0\n"])
    editor.start()
    assert top(run(kernel, "import busy_module\nbusy_module.slow(2)")) == ("busy_module.py", 3, None)
    editor.join()
    assert top(run(kernel, "busy_module.slow(0.2)")) == ("busy_module.py", 3, None)
    write(folder, "busy_module.py", "import time\n\ndef slow(seconds):\n    time.sleep(seconds)\n")
    kernel.run("import importlib; importlib.reload(busy_module)")
    assert top(run(kernel, "busy_module.slow(0.2)")) == ("busy_module.py", 4, "time.sleep(seconds)")


def test_a_file_that_is_replaced_by_an_older_one_shows_no_text(kernel: Kernel, folder: Path) -> None:
    write(folder, "replaced_module.py", "import time\ndef slow():\n    time.sleep(0.2)\n")
    assert top(run(kernel, "import replaced_module\nreplaced_module.slow()"))[2] == "time.sleep(0.2)"
    older = write(folder, "older.py", "import time\n\ndef slow():\n    return 0\n")
    os.utime(older, (1e9, 1e9))
    older.rename(folder / "replaced_module.py")
    report = run(kernel, "replaced_module.slow()")
    assert top(report) == ("replaced_module.py", 3, None)
    assert any("changed after its code was loaded" in note["text"] for note in report["notes"])


def test_a_script_that_was_edited_and_run_again(kernel: Kernel, folder: Path) -> None:
    path = write(folder, "edited_script.py", "import time\ntime.sleep(0.2)\n")
    assert top(run(kernel, "%run edited_script.py")) == ("edited_script.py", 2, "time.sleep(0.2)")
    path.write_text("import time\nx = 1\ntime.sleep(0.25)\n")
    assert top(run(kernel, "%run edited_script.py")) == ("edited_script.py", 3, "time.sleep(0.25)")


def test_a_notebook_run_by_a_cell(kernel: Kernel, folder: Path) -> None:
    notebook: Any = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("import time\nx = 1\ntime.sleep(0.2)")]
    nbformat.write(notebook, folder / "other.ipynb")
    ((file, line),) = lines(run(kernel, "%run other.ipynb"), "time.sleep(0.2)")
    assert file.startswith("code run by Cell [")
    assert line == 3


def test_empty_lines_at_the_top_and_magics_over_several_lines(kernel: Kernel) -> None:
    kernel.run("\n\ndef late():\n    time.sleep(0.2)")
    assert top(run(kernel, "late()"))[1:] == (4, "time.sleep(0.2)")
    assert top(run(kernel, "%time sum( \\\n  [1])\nx = 1\ntime.sleep(0.2)"))[1:] == (5, "time.sleep(0.2)")


def test_cells_that_all_have_one_file_name(folder: Path) -> None:
    """IPYKERNEL_CELL_NAME names them; a function's cell is the one that defines it."""
    with Kernel({"IPYKERNEL_CELL_NAME": "<notebook>"}, python=sys.executable, folder=folder) as kernel:
        kernel.run("import time\ndef first():\n    time.sleep(0.2)")
        kernel.run("import time\n\ndef second():\n    x = 1\n    time.sleep(0.3)")
        report = run(kernel, "y = 1\nfirst()\nsecond()\ntime.sleep(0.1)")
        assert lines(report, "time.sleep(0.2)") == [("Cell [2]", 3)]
        assert lines(report, "time.sleep(0.3)") == [("Cell [3]", 5)]
        assert lines(report, "time.sleep(0.1)") == [("Cell [4]", 5)]


SLOW_ERROR = (
    "import time\nclass Slow(Exception):\n    def __str__(self):\n        time.sleep(0.3)\n        return 'slow'\n"
)


@pytest.mark.parametrize("by", ["a cell", "%run", "a printer of one's own"])
def test_the_traceback_is_not_the_cells_time(kernel: Kernel, folder: Path, by: str) -> None:
    kernel.run(SLOW_ERROR)
    cell = "time.sleep(0.1)\nraise Slow"
    if by == "%run":
        write(folder, "bad.py", SLOW_ERROR + cell)
        cell = "%run bad.py"
    elif by == "a printer of one's own":
        kernel.run("def show(shell, kind, error, tb, tb_offset=None):\n    time.sleep(0.3)\n    print(kind.__name__)")
        kernel.run("get_ipython().set_custom_exc((Slow,), show)")
    ran = kernel.run("%%omni_perf --quiet\n" + cell)
    kernel.run("get_ipython().set_custom_exc((), None)")
    assert ran.error == "Slow" or ran.text("stdout") == "Slow\n"
    report = last_report(kernel)
    assert 0.08 <= report["duration_s"] < 0.39
    assert report["phases"] == [] or report["phases"][0]["id"] != "traceback"


def test_the_display_of_the_value_belongs_to_no_line(kernel: Kernel) -> None:
    report = run(kernel, "x = 1\nrows = [[x] * 1000 for _ in range(100)]\nrows")  # formatted in some tenths of a second
    assert not any(line["self_s"] > 0.02 and line["line"] == 4 for line in report["lines"]), report["lines"]
    assert [phase["id"] for phase in report["phases"]][:1] == ["display"]
    assert report["phases"][0]["text"] == "displaying the result"


def test_a_function_that_autoreload_left_as_it_was_has_no_line(kernel: Kernel, folder: Path) -> None:
    path = write(folder, "autoreloaded.py", "import time\ndef slow():\n    time.sleep(0.2)\n")
    kernel.run("%load_ext autoreload\n%autoreload 2\nimport autoreloaded\nkept = autoreloaded.slow")
    time.sleep(1.1)  # Python compares whole seconds
    path.write_text("import time\n\nFACTOR = 'of no cost'\n\ndef quick():\n    time.sleep(0.1)\n")
    report = run(kernel, "x = 1\nautoreloaded.quick()\nkept()")
    kernel.run("%autoreload 0")
    assert top(report)[1:] == (4, "kept()")
    assert ("autoreloaded.py", 6, "time.sleep(0.1)") in {
        (Path(line["file"]).name, line["line"], line["text"]) for line in report["lines"]
    }
    assert not [line for line in report["lines"] if line["text"] and "no cost" in line["text"]]
    [function] = [function for function in report["functions"] if function["function"] == "slow"]
    assert not function["line"]
    assert any(note["id"] == "function-outdated" and "slow" in note["text"] for note in report["notes"])
