"""The kernel that died: what its sidecar leaves for the next kernel of the same notebook."""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
import time
import uuid
from pathlib import Path

import pytest
from conftest import wait_until
from kernels import Kernel
from omni_perf import lastreport

DEATHS = {
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "ctypes.string_at(0)",
    "SIGABRT": "os.abort()",
}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a notebook of its own; this process takes part in it."""
    name = f"{uuid.uuid4()}.ipynb"
    monkeypatch.setenv("JPY_SESSION_NAME", name)
    return name


def left(session: str) -> list[Path]:
    """The last reports of a notebook."""
    key = lastreport.notebook_key()
    parents = [Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp"), Path("/tmp")]
    return list({p for parent in parents if (p := parent / f"omni_perf-last-{os.geteuid()}" / f"{key}.json").exists()})


SEEN = " last seen (?:.* before )?in"


def die(session: str, cell: str) -> None:
    """Run a cell in a kernel that does not survive it, and wait for its last report."""
    with Kernel(environment={"JPY_SESSION_NAME": session}) as kernel:
        kernel.start(cell)
        wait_until(lambda: left(session), "the last report")


def cell_of(death: str) -> str:
    return f"%%omni_perf\nimport ctypes, os, signal, time\ndef work():\n    time.sleep(0.8); {death}\nwork()"


@pytest.mark.parametrize("name", DEATHS)
def test_the_next_kernel_says_how_the_last_one_died(session: str, name: str) -> None:
    die(session, cell_of(DEATHS[name]))
    (file,) = left(session)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    with Kernel(load=False, environment={"JPY_SESSION_NAME": session}) as kernel:
        said = kernel.run("%load_ext omni_perf").text("stdout")
        died = re.search(rf"^The kernel died by {name}, (\d\.\d+) s into cell \[\d+\],{SEEN} line (\d), work: ", said)
        assert died, said
        assert 0.7 < float(died[1]) < 20
        assert died[2] == "4"
        assert "resident" in said
        assert said.count("\n") == 1
        shown = kernel.run("%omni_perf last died")
        assert "MainThread, the innermost call first:\n" in shown.text("stdout")
        assert shown.result is not None
        assert "kernel died" in shown.result
        assert kernel.run("%omni_perf last").result is not None
        kernel.run("%%omni_perf\nsum(range(100_000))")
        assert "kernel died" not in (kernel.run("%omni_perf last").result or "")
    assert not left(session)  # it was shown


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on the interpreter stops a recursion in C")
def test_a_recursion_in_c_is_said_with_its_line(session: str) -> None:
    recursion = "sys.setrecursionlimit(10**9)\n@ctypes.CFUNCTYPE(None)\ndef again():\n    again()"
    die(session, f"%%omni_perf\nimport ctypes, sys, time\n{recursion}\ntime.sleep(0.8)\nagain()")
    with Kernel(load=False, environment={"JPY_SESSION_NAME": session}) as kernel:
        said = kernel.run("%load_ext omni_perf").text("stdout")
        assert re.match(
            rf"The kernel died by SIGSEGV, \d\.\d+ s into cell \[\d+\],{SEEN} line 6, again: again\(\)\.", said
        ), said
        shown = kernel.run("%omni_perf last died").text("stdout")
        assert re.search(r"\[\d+\]:6, again: again\(\) \([\d,]+ times one above the other\)\n", shown), shown


def test_a_kernel_that_was_asked_to_end_has_not_died(session: str) -> None:
    with Kernel(environment={"JPY_SESSION_NAME": session}) as kernel:
        kernel.run("%%omni_perf\nimport time")
        sidecar = kernel.sidecar()
        kernel.start("%%omni_perf\nprint('begun', flush=True)\ntime.sleep(30)")
        kernel.wait_for_output("begun")
        kernel.ask_to_shut_down()
        time.sleep(0.5)
        os.kill(kernel.pid, signal.SIGKILL)  # as a server does with one that is still busy then
        wait_until(lambda: not Path(f"/proc/{sidecar}").exists(), "the sidecar's end")
    assert not left(session)


def test_a_cell_that_is_over_has_no_last_report(session: str) -> None:
    with Kernel(environment={"JPY_SESSION_NAME": session}) as kernel:
        kernel.run("%%omni_perf\nsum(range(1_000_000))")
        sidecar = kernel.sidecar()
        os.kill(kernel.pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{sidecar}").exists(), "the sidecar's end")
    assert not left(session)


def test_only_what_is_ours_and_of_today_is_read(session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    key = lastreport.notebook_key()
    folder = tmp_path / f"omni_perf-last-{os.geteuid()}"
    folder.mkdir(0o700)
    file = folder / f"{key}.json"
    text = '{"sentence": "s", "text": "t", "cell": 3, "headline": "h", "report_gzip": "YQ=="}'

    file.write_text(text)
    assert lastreport.take(key) == lastreport.LastReport("s", "t", 3, "h", b"a")
    assert not file.exists()

    file.write_text(text)
    folder.chmod(0o755)  # another user may have written it
    assert lastreport.take(key) is None
    folder.chmod(0o700)

    os.utime(file, (0, 0))
    assert lastreport.take(key) is None
    assert not file.exists()

    (tmp_path / "elsewhere").write_text(text)
    file.symlink_to(tmp_path / "elsewhere")
    assert lastreport.take(key) is None
    file.unlink()
    for broken in ("", "[]", "{}", "\0"):
        file.write_text(broken)
        assert lastreport.take(key) is None
