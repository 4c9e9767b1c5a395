"""Shells, kernels and sidecars for the tests."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fakesidecar
import pytest

PATIENCE_S = 20.0

# What tests start shall have the defaults, also where the tests run in the background or
# under nohup: ignored signals are inherited.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for something that another process is about to do."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    pytest.fail(f"waited {PATIENCE_S:g} s for {what}")


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@dataclass
class FakeSidecar:
    """How the next fake sidecar behaves, and what it was asked."""

    journal: Path
    behaviour: dict[str, Any] = field(default_factory=dict[str, Any])

    def behave(self, **behaviour: Any) -> None:
        self.behaviour.update(behaviour)
        os.environ["FAKE_SIDECAR"] = json.dumps(self.behaviour)

    def calls(self, method: str) -> list[dict[str, Any]]:
        written = self.journal.read_text() if self.journal.exists() else ""
        lines = written[: written.rfind("\n") + 1].splitlines()  # the last one may be on its way
        return [call for call in map(json.loads, lines) if call["method"] == method]

    def call(self, method: str, count: int = 1) -> dict[str, Any]:
        """Wait for the count-th call of a method and return its request."""
        return wait_until(lambda: self.calls(method)[count - 1 : count], f"{method} {count}")[0]

    @property
    def pid(self) -> int:
        """Of the sidecar that served the last cell."""
        return self.calls("Begin")[-1]["pid"]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSidecar]:
    """Make the extension start the sidecar in Python of fakesidecar.py."""
    program = fakesidecar.install(tmp_path)
    monkeypatch.setenv("OMNI_PERF_BINARY", program)
    sockets = tempfile.TemporaryDirectory(prefix="fake_omni_perf_")  # tmp_path may be too long for a socket
    monkeypatch.setenv("FAKE_SIDECAR_SOCKETS", sockets.name)
    monkeypatch.setenv("FAKE_SIDECAR", "{}")
    sidecar = FakeSidecar(tmp_path / "journal")
    sidecar.behave(journal=str(sidecar.journal))
    with sockets:
        yield sidecar


@dataclass
class Notebook:
    """A real InteractiveShell whose displays are captured."""

    shell: Any
    displays: list[dict[str, Any]]

    def run(self, cell: str) -> Any:
        """Run a cell as a front end would, and return its ExecutionResult."""
        return self.shell.run_cell(cell, store_history=True)

    def charts(self) -> list[dict[str, Any]]:
        """The displays that are charts, as their data."""
        return [display["data"] for display in self.displays if "text/html" in display["data"]]


@pytest.fixture(scope="session")
def interactive_shell(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["IPYTHONDIR"] = str(tmp_path_factory.mktemp("ipython"))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config: Any = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "NoColor" if sys.modules["IPython"].version_info < (9, 0) else "nocolor"
    return InteractiveShell.instance(config=config)


@pytest.fixture
def plain(interactive_shell: Any, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A shell without the extension."""
    from IPython.core.displaypub import CapturingDisplayPublisher

    interactive_shell.reset()
    publisher: Any = CapturingDisplayPublisher()
    monkeypatch.setattr(interactive_shell, "display_pub", publisher)
    return Notebook(interactive_shell, publisher.outputs)


@pytest.fixture
def notebook(fake: FakeSidecar, plain: Notebook, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A shell with the extension and a fake sidecar."""
    from omni_perf import extension, report, session

    # 250 ms, and 3 s for a start, may pass on a busy test machine.
    monkeypatch.setattr(session, "BEGIN_LIMIT_S", 10)
    monkeypatch.setattr(session, "START_LIMIT_S", 30)
    report.kept.last = None
    extension.load(plain.shell)
    yield plain
    extension.unload(plain.shell)
    for pid in {call["pid"] for call in fake.calls("Begin")}:
        wait_until(lambda pid=pid: not alive(pid), f"sidecar {pid} to end")
