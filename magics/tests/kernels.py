"""Real ipykernels, driven as a front end drives them."""

from __future__ import annotations

import os
import re
import signal
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

PATIENCE_S = 30.0


@dataclass
class Ran:
    """What a cell made a front end see."""

    outputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Content of the IOPub messages in order, each with its "type" and when it "arrived";
    neighbouring text joined."""
    reply: dict[str, Any] = field(default_factory=dict[str, Any])

    def text(self, name: str) -> str:
        """All of stdout or stderr."""
        return "".join(out["text"] for out in self.outputs if out["type"] == "stream" and out["name"] == name)

    @property
    def plain(self) -> str:
        """The text form of all that was displayed."""
        return "".join(out["data"]["text/plain"] for out in self.outputs if out["type"] == "display_data")

    @property
    def result(self) -> str | None:
        """Out[n] as text."""
        for out in self.outputs:
            if out["type"] == "execute_result":
                return out["data"]["text/plain"]
        return None

    @property
    def error(self) -> str | None:
        """Name of the exception."""
        for out in self.outputs:
            if out["type"] == "error":
                return out["ename"]
        return None

    def charts(self) -> list[dict[str, str]]:
        """The data of what we show of cells: charts, and the lines of cells that are over at once."""
        return [out["data"] for out in self.outputs if is_chart(out)]


def is_chart(output: dict[str, Any]) -> bool:
    return output["type"] == "display_data" and "application/vnd.omni-perf+json" in output["data"]


def program(path: Path, command: str) -> Path:
    """Make a program of a command, which takes its arguments."""
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


class Kernel:
    """A kernel process with a client; ``with Kernel() as kernel``."""

    def __init__(
        self,
        environment: dict[str, str] | None = None,
        load: bool = True,
        python: str | Path = "",
        folder: Path | None = None,
    ) -> None:
        """``python`` is another interpreter than this one; its kernel works in ``folder``."""
        self._manager: Any = KernelManager()
        if python:
            argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            self._manager._kernel_spec = KernelSpec(argv=argv, display_name="another", language="python")
        self._manager.start_kernel(
            env={**os.environ, "JPY_SESSION_NAME": f"{uuid.uuid4()}.ipynb", **(environment or {})},
            cwd=str(folder) if folder else None,
            extra_arguments=["--HistoryManager.hist_file=:memory:"],  # which kernels share otherwise
        )
        self._client: Any = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE_S)
        if load:
            self.limit_begin(10)
            self.limit_start(30)
            loaded = self.run("%load_ext omni_perf")
            assert not loaded.outputs, loaded.outputs

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    @property
    def pid(self) -> int:
        return int(self._manager.provisioner.pid)

    @property
    def connection_file(self) -> str:
        return str(self._manager.connection_file)

    def limit_begin(self, seconds: float) -> None:
        """Set how long a cell waits for its recording: 250 ms may pass on a busy test machine."""
        self._limit("BEGIN_LIMIT_S", seconds)

    def limit_start(self, seconds: float) -> None:
        """Set how long a cell waits for a sidecar to start."""
        self._limit("START_LIMIT_S", seconds)

    def _limit(self, name: str, seconds: float) -> None:
        code = f"import omni_perf.session; omni_perf.session.{name} = {seconds}; del omni_perf"
        self.silently(code)

    def silently(self, code: str) -> Ran:
        """Run code that is no cell: no events, no number, no history."""
        return self.finish(str(self._client.execute(code, silent=True, store_history=False)))

    def start(self, cell: str) -> str:
        """Send a cell, which runs whatever the one before did; return the id of the request."""
        return str(self._client.execute(cell, allow_stdin=False, stop_on_error=False))

    def finish(self, request: str, patience_s: float = PATIENCE_S) -> Ran:
        """Collect what a cell shows until it is done."""
        ran = Ran()
        deadline = time.monotonic() + patience_s
        while True:
            message = self._client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], dict(message["content"])
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("status", "execute_input"):
                continue
            last = ran.outputs[-1] if ran.outputs else {}
            if kind == "stream" and last.get("type") == "stream" and last["name"] == content["name"]:
                last["text"] += content["text"]
            else:
                mark = message["metadata"].get("omni_perf", "")
                ran.outputs.append({"type": kind, "arrived": time.monotonic(), "mark": mark, **content})
        while True:
            reply = self._client.get_shell_msg(timeout=max(0.1, deadline - time.monotonic()))
            if reply["parent_header"].get("msg_id") == request:
                ran.reply = dict(reply["content"])
                return ran

    def run(self, cell: str, patience_s: float = PATIENCE_S) -> Ran:
        return self.finish(self.start(cell), patience_s)

    def wait_for_output(self, text: str) -> None:
        """Wait until a running cell has printed something."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = self._client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["msg_type"] == "stream" and text in message["content"]["text"]:
                return

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def ask_to_shut_down(self) -> None:
        self._client.shutdown()

    def restart(self) -> None:
        self._manager.restart_kernel(now=True)

    def sidecar(self) -> int:
        """The pid of the sidecar, as %omni_perf status prints it."""
        found = re.search(r"^sidecar .* pid (\d+)", self.run("%omni_perf status").text("stdout"), re.MULTILINE)
        assert found, "no sidecar runs"
        return int(found[1])


def folders_of(pid: int) -> list[Path]:
    """The folders that sidecar pid made."""
    places = {Path("/tmp"), Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")}
    return [folder for place in places for folder in place.glob(f"omni_perf-{pid}-*")]
