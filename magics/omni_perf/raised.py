"""Sends `omni-perf run` the exception that has ended the program, when the interpreter ends.

CPython keeps an exception that nothing caught in sys.last_value before it calls sys.excepthook, so that
no hook is placed for it. Nothing here runs code of the program's own: a message that a method of the
program's would make is left out. Nothing is imported but what is written in C: a module that evaluates a
string, as each named tuple does, would make CPython forget that Ctrl-C ended the program.

Like runmarks it is placed in programs that do not import omni_perf, as part of the package _omni_perf.
"""

from __future__ import annotations

import _socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

MOST_TEXT = 200
MOST_FRAMES = 64
LONGEST_PATH = 400
WAIT_S = 1.0


def send(error: BaseException, path: str) -> None:
    """Send what the exception is and where it was raised, if it has come up to the main program."""
    calls = frames(error.__traceback__)
    if calls is None:
        return
    if isinstance(error, SyntaxError) and isinstance(error.filename, str) and isinstance(error.lineno, int):
        calls.insert(0, (error.filename, error.lineno))
    calls = [call for call in calls if len(call[0]) <= LONGEST_PATH][:MOST_FRAMES]
    stack = ",".join(f"[{quoted(file)},{line:d}]" for file, line in calls)
    name = quoted(type(error).__name__[:MOST_TEXT])
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(WAIT_S)
        connection.connect(path)
        connection.sendall(
            f'{{"raised":{name},"message":{quoted(message(error))},"stack":[{stack}]}}\n'.encode("ascii")
        )
    finally:
        connection.close()


def frames(trace: TracebackType | None) -> list[tuple[str, int]] | None:
    """Return the lines of a traceback, the innermost first; None for one that does not begin in the main program."""
    calls: list[tuple[str, int]] = []
    if trace is not None and trace.tb_frame.f_globals.get("__name__") not in ("__main__", "runpy"):
        return None
    while trace is not None:
        calls.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno or 0))
        trace = trace.tb_next
    return calls[::-1]


def message(error: BaseException) -> str:
    """Return the first line of an exception's message, where plain values and CPython's own method make it."""
    builtin = type(type(error).__str__) is type(BaseException.__str__)
    if not builtin or not all(type(value) in (str, int, float, bool, type(None)) for value in error.args):
        return ""
    return str(error).strip().partition("\n")[0][:MOST_TEXT]


def quoted(text: str) -> str:
    """Return a text as JSON has it, of ASCII alone."""
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = [units[i] << 8 | units[i + 1] for i in range(0, len(units), 2)]
    return '"' + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\u{c:04x}" for c in pairs) + '"'
