"""Finds the omni-perf program and starts it as a sidecar that is no child of ours.

The start-up protocol is described in sidecar/doors/server/doc.go: one line of JSON in, one out.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

PROGRAM = "omni-perf"

ANSWER_LIMIT = 65536
"""Longest first line, in bytes, that a sidecar may write."""


class LaunchError(Exception):
    """The sidecar could not be started; the text is a sentence for the user."""


@dataclass(frozen=True)
class Endpoint:
    """A running sidecar: where it listens and how to be let in."""

    socket: str
    pid: int
    version: str
    token: str = field(repr=False)
    started: int = 0
    """Its start time in /proc/PID/stat, which distinguishes it from a later process of that pid."""


def find_binary() -> str:
    """Return the path of the program: $OMNI_PERF_BINARY, next to this Python, or on PATH."""
    named = os.environ.get("OMNI_PERF_BINARY")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise LaunchError(
                f"OMNI_PERF_BINARY names {named}, which is not an executable file; unset it or point it to omni-perf."
            )
        return os.path.abspath(named)
    for folder in _script_folders():
        candidate = os.path.join(folder, PROGRAM)
        if os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which(PROGRAM)
    if on_path is None:
        raise LaunchError(
            "The program omni-perf was not found beside this Python or on PATH; "
            "install omni_perf again or set OMNI_PERF_BINARY."
        )
    return on_path


def _script_folders() -> list[str]:
    """List where pip may have put the program for this very package, likeliest first."""
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    user_scheme = sysconfig.get_preferred_scheme("user")
    folders.append(sysconfig.get_path("scripts", user_scheme))
    # pip install --target DIR puts scripts into DIR/bin.
    folders.append(str(Path(__file__).parent.parent / "bin"))
    return list(dict.fromkeys(folders))


def launch(version: str, timeout: float) -> Endpoint:
    """Start a sidecar for this process and wait until its socket accepts connections."""
    binary = find_binary()
    token = secrets.token_urlsafe(32)
    start = {
        "token": token,
        "kernel_pid": os.getpid(),
        "kernel_start": _start_time(os.getpid()),
        "version": version,
    }
    deadline = time.monotonic() + timeout
    # The program detaches by itself: the process started here ends at once, and the
    # kernel is left without a child that os.wait() of user code could meet.
    try:
        process = subprocess.Popen(
            [binary, "serve", "--detach"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # An arena of malloc's per thread, 64 MB of addresses each, would not fit below
            # the limits (ulimit -v) that login nodes set.
            env={"MALLOC_ARENA_MAX": "1", **os.environ},
        )
    except OSError as error:
        raise LaunchError(f"{binary} could not be executed: {error.strerror}.") from error
    assert process.stderr is not None
    with process.stderr as stderr:
        try:
            line = _exchange(process, json.dumps(start).encode() + b"\n", deadline)
        finally:
            status = _reap(process, deadline)
        if not line:
            raise LaunchError(_no_answer(binary, status, _complaint(stderr.fileno()), time.monotonic() > deadline))
    return _endpoint(line, binary, status, token)


def _exchange(process: subprocess.Popen[bytes], line: bytes, deadline: float) -> bytes:
    """Write the start message and return the first line of the answer, maybe cut short."""
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as stdin, process.stdout as stdout:
        try:
            os.write(stdin.fileno(), line)
        except OSError:
            pass  # it ended already; its answer, if any, says why
        poll = select.poll()
        poll.register(stdout.fileno(), select.POLLIN)
        answer = b""
        while b"\n" not in answer and len(answer) < ANSWER_LIMIT:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                break
            chunk = os.read(stdout.fileno(), 4096)
            if not chunk:
                break
            answer += chunk
        return answer.partition(b"\n")[0]


def _reap(process: subprocess.Popen[bytes], deadline: float) -> int:
    """Wait for the process that detached the sidecar; end it if it hangs."""
    try:
        return process.wait(max(0.2, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _complaint(stderr: int) -> str:
    """Return the first line that a program which did not start has left on its stderr."""
    os.set_blocking(stderr, False)
    try:
        text = os.read(stderr, ANSWER_LIMIT).decode(errors="replace")
    except OSError:  # nothing, and a sidecar that hangs holds the other end
        text = ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first.removeprefix(f"{PROGRAM}: ").rstrip(".")


def _no_answer(binary: str, status: int, complaint: str, late: bool) -> str:
    what = "did not answer in time" if late else f"did not start as a sidecar (exit status {status})"
    limits = limits_too_low()
    if complaint:
        return f"{binary} {what}: {complaint}." + limits
    return (
        f"{binary} {what}; it may belong to another version of omni_perf."
        if not limits
        else f"{binary} {what}.{limits}"
    )


LEAST_ADDRESSES = 2 << 30
"""Below, the Go runtime's reservations and the stacks of its threads may not fit."""

LEAST_FILES = 32


def limits_too_low() -> str:
    """Say which limits of this process, which a sidecar inherits, are too low for one; or ""."""
    try:
        import resource

        addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (ImportError, OSError, ValueError):
        return ""
    said = ""
    if 0 <= addresses < LEAST_ADDRESSES:
        said += f" Addresses are limited to {addresses / 1e9:.1f} GB here (ulimit -v), a sidecar needs 2 GB."
    if 0 <= files < LEAST_FILES:
        said += f" Only {files} files may be open at a time (ulimit -n), a sidecar needs {LEAST_FILES}."
    return said


def _endpoint(line: bytes, binary: str, status: int, token: str) -> Endpoint:
    try:
        answer: Any = json.loads(line)
    except ValueError:
        raise LaunchError(
            f"{binary} did not start as a sidecar (exit status {status}); "
            "it may belong to another version of omni_perf."
        ) from None
    fields = cast("dict[str, object]", answer) if isinstance(answer, dict) else {}
    if "error" in fields:
        raise LaunchError("; ".join(str(fields["error"]).splitlines()))
    socket, pid, version = fields.get("socket"), fields.get("pid"), fields.get("version")
    if not isinstance(socket, str) or not isinstance(pid, int):
        raise LaunchError(f"{binary} gave an answer this version of omni_perf cannot read.")
    return Endpoint(socket, pid, str(version), token, _start_time(pid))


def end_process(endpoint: Endpoint) -> None:
    """Ask a sidecar to end, one that was stopped too, unless its pid belongs to another process by now."""
    if endpoint.started and _start_time(endpoint.pid) != endpoint.started:
        return
    try:
        os.kill(endpoint.pid, signal.SIGTERM)
        os.kill(endpoint.pid, signal.SIGCONT)
    except OSError:
        pass


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal or by a debugger."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def _start_time(pid: int) -> int:
    """Return field 22 of /proc/PID/stat, or 0 where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The second field, the command in parentheses, may hold spaces.
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
