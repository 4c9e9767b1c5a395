"""Reports that a user saves, from a real kernel: by the rule of sidecar/show/output.

The rule's cases are tested where it is kept; here, that the notebook follows it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import alive, wait_until
from kernels import Kernel


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """With one recorded cell."""
    with Kernel() as kernel:
        assert len(kernel.run("%%omni_perf\nsum(range(10**6))").charts()) == 1
        kernel.run("import omni_perf")
        yield kernel


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_name_without_ending_gives_picture_and_page(kernel: Kernel, tmp_path: Path) -> None:
    ran = kernel.run(f"%omni_perf save {tmp_path}/run")
    assert ran.text("stdout") == f"Wrote {tmp_path}/run.svg and {tmp_path}/run.html.\n", ran.text("stderr")
    assert (tmp_path / "run.svg").read_text().startswith("<?xml")
    assert "<html" in (tmp_path / "run.html").read_text()
    assert sorted(os.listdir(tmp_path)) == ["run.html", "run.svg"]
    assert mode(tmp_path / "run.svg") == mode(tmp_path / "run.html") == 0o600


@pytest.mark.parametrize(
    "ending", [".svg", ".html", ".json", ".speedscope.json", ".trace.json.gz", ".pb.gz", ".collapsed.txt"]
)
def test_every_format_by_its_ending(kernel: Kernel, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"run{ending}"
    ran = kernel.run(f"%omni_perf save {path}")
    assert ran.text("stdout") == f"Wrote {path}.\n", ran.text("stderr")
    assert os.listdir(tmp_path) == [path.name]
    assert mode(path) == 0o600


def test_saved_json_is_the_report(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(f"%omni_perf save {tmp_path}/run.json")
    duration = kernel.run("omni_perf.last().to_dict()['duration_ns']").result
    assert duration is not None
    assert json.loads((tmp_path / "run.json").read_text())["duration_ns"] == int(duration)


def test_a_file_is_replaced_a_link_is_not_followed(kernel: Kernel, tmp_path: Path) -> None:
    old, link, precious = tmp_path / "old.json", tmp_path / "link.json", tmp_path / "precious"
    old.write_text("old")
    old.chmod(0o644)
    precious.write_text("precious")
    link.symlink_to(precious)
    assert "Wrote" in kernel.run(f"%omni_perf save {old}").text("stdout")
    assert mode(old) == 0o600
    assert json.loads(old.read_text())["version"] == 2
    ran = kernel.run(f"%omni_perf save {link}")
    assert ran.text("stderr") == (
        f"omni_perf: Cannot write {link}: it is a link to {precious}, which is not followed; "
        "name that file itself, or remove the link.\n"
    )
    assert precious.read_text() == "precious"
    assert link.is_symlink()


def test_a_fifo_is_written_through(kernel: Kernel, tmp_path: Path) -> None:
    fifo = tmp_path / "run.json"
    os.mkfifo(fifo)
    passed: list[str] = []
    reader = threading.Thread(target=lambda: passed.append(fifo.read_text()), daemon=True)
    reader.start()
    assert "Wrote" in kernel.run(f"%omni_perf save {fifo}").text("stdout")
    reader.join(10)
    assert json.loads(passed[0])["version"] == 2
    assert fifo.is_fifo()


def test_saving_in_code_returns_paths_and_raises(kernel: Kernel, tmp_path: Path) -> None:
    ran = kernel.run(f"print(*omni_perf.last().save({str(tmp_path)!r} + '/a', 'collapsed', 'json'))")
    assert ran.text("stdout") == f"{tmp_path}/a.collapsed.txt {tmp_path}/a.json\n"
    ran = kernel.run("try:\n    omni_perf.last().save('/no/such/a')\nexcept OSError as e:\n    print(e)")
    assert ran.text("stdout") == "Cannot write /no/such/a.svg: there is no folder /no/such.\n"


def test_relative_names_and_home_are_the_kernels(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(f"import os; os.environ['HOME'] = {str(tmp_path)!r}; here = os.getcwd(); os.chdir({str(tmp_path)!r})")
    try:
        assert "Wrote a.svg and a.html." in kernel.run("%omni_perf save a").text("stdout")
        assert "Wrote" in kernel.run("%omni_perf save ~/b.svg").text("stdout")
    finally:
        kernel.run("os.chdir(here)")
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a.svg", "b.svg"]


def test_a_report_outlives_its_sidecar(kernel: Kernel, tmp_path: Path) -> None:
    pid = kernel.sidecar()
    os.kill(pid, 9)
    wait_until(lambda: not alive(pid), "the sidecar's end")
    assert "Wrote" in kernel.run(f"%omni_perf save {tmp_path}/run.svg").text("stdout")


def test_saving_leaves_no_child(kernel: Kernel, tmp_path: Path) -> None:
    ran = kernel.run(
        f"omni_perf.last().save({str(tmp_path)!r} + '/a')\nimport os\n"
        "try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError as e:\n    print(e)"
    )
    assert "No child processes" in ran.text("stdout")


def test_a_name_that_no_file_can_have_is_a_sentence(kernel: Kernel) -> None:
    ran = kernel.run(r"get_ipython().run_line_magic('omni_perf', 'save a\x00b')")  # CPython 3.12 refuses it in a cell
    assert ran.error in (None, "TokenError")  # of IPython, which looks for a semicolon at the end
    assert ran.text("stderr").startswith("omni_perf: ")
