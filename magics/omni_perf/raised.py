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
    from typing import Any

MOST_TEXT = 200
MOST_FRAMES = 64
LONGEST_PATH = 400
WAIT_S = 1.0


def send(error: BaseException, path: str, process: bool = False) -> None:
    """Send what the exception is and where it was raised, if it has come up to the main program.

    With ``process`` it has come up to multiprocessing's own function that runs a process.
    """
    calls = frames(error.__traceback__, ("multiprocessing.process",) if process else ("__main__", "runpy"))
    if calls is None:
        return
    if isinstance(error, SyntaxError) and isinstance(error.filename, str) and isinstance(error.lineno, int):
        calls.insert(0, (error.filename, error.lineno))
    name, text, inner = of_worker(error) or (type(error).__name__, message(error), [])
    lines = line(name, text, inner + calls)
    child = of_child(error)
    if child is not None:
        pid, name, text, calls = child
        lines += line(name, text, calls, pid)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(WAIT_S)
        connection.connect(path)
        connection.sendall(lines.encode("ascii"))
    finally:
        connection.close()


def line(name: str, text: str, calls: list[tuple[str, int]], pid: int = 0) -> str:
    """Return the line that says which exception ended a process, another than this one where a pid is given."""
    calls = [call for call in calls if len(call[0]) <= LONGEST_PATH][:MOST_FRAMES]
    stack = ",".join(f"[{quoted(file)},{number:d}]" for file, number in calls)
    of = f',"pid":{pid:d}' if pid else ""
    return f'{{"raised":{quoted(name[:MOST_TEXT])},"message":{quoted(text)},"stack":[{stack}]{of}}}\n'


def of_child(error: BaseException) -> tuple[int, str, str, list[tuple[str, int]]] | None:
    """Return the pid and the exception of the process that torch.multiprocessing.spawn says has failed.

    The process itself has caught it, to hand over its traceback as a text, which is all that is left of it.
    """
    kind = type(error)
    if (kind.__module__, kind.__name__) != ("torch.multiprocessing.spawn", "ProcessRaisedException"):
        return None
    pid, text = getattr(error, "error_pid", None), error.args[0] if error.args else None
    return (pid, *read(text)) if type(pid) is int and type(text) is str else None


ORIGINAL = "\nOriginal Traceback (most recent call last):\n"


def of_worker(error: BaseException) -> tuple[str, str, list[tuple[str, int]]] | None:
    """Return the exception of a DataLoader's worker, or of a replica, that torch raises again with its traceback."""
    text: Any = error.args[0] if error.args else None
    if not issubclass(type(text), str) or not str.startswith(text, "Caught ") or str.find(text, ORIGINAL) < 0:
        return None
    name, what, calls = read(str.partition(text, ORIGINAL)[2])
    return (name, what, calls) if name else None


def read(text: str) -> tuple[str, str, list[tuple[str, int]]]:
    """Return the type and message of the exception in a traceback's text, and its lines, the innermost first."""
    calls: list[tuple[str, int]] = []
    last = ""
    for each in text.splitlines():
        if each.startswith("Traceback (most recent call last)"):
            calls, last = [], ""
        elif each.startswith('  File "'):
            file, _, rest = each[8:].partition('", line ')
            number = rest.partition(",")[0]
            if number.isdecimal():
                calls.append((file, int(number)))
            last = ""
        elif not last and each and not each.startswith(" "):
            last = each
    name, _, what = last.partition(":")
    return name.rpartition(".")[2], what.strip()[:MOST_TEXT], calls[::-1]


def frames(trace: TracebackType | None, begin: tuple[str, ...]) -> list[tuple[str, int]] | None:
    """Return the lines of a traceback, the innermost first; None for one that begins in none of these modules."""
    calls: list[tuple[str, int]] = []
    if trace is not None and trace.tb_frame.f_globals.get("__name__") not in begin:
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
