"""`omni-perf run` says which exception ended the program, and the program ends as it would without."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omni_perf import raised
from omni_perf.launcher import find_binary

LOADS = """
import sys
def load(part):
    raise ValueError(f"no rows in {part}\\n<second line>")
"""
FAILS = LOADS + "load(3)\n"
OTHER_HOOK = LOADS + "sys.excepthook = lambda *raised: print(raised[0].__name__, sys.excepthook.__name__)\nload(3)\n"
EXITS = (
    LOADS
    + "import code\ntry:\n    load(3)\nexcept ValueError:\n    code.InteractiveInterpreter().showtraceback()\nsys.exit(2)\n"
)
INTERRUPTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
CHILD = "import subprocess, sys\nraise SystemExit(subprocess.run([sys.executable, 'fails.py']).returncode)\n"


def run(place: Path, program: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run a program under omni-perf; return how it ended, and its report."""
    (place / "train.py").write_text(program)
    options = ["--interpreter", sys.executable, "-o", str(place / "r.json")]
    done = subprocess.run(
        [find_binary(), "run", *options, "train.py"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done, json.loads((place / "r.json").read_text())


@pytest.mark.parametrize(
    ("program", "code", "raised", "title"),
    [
        (FAILS, 1, ("ValueError", "no rows in 3", 4), "ended by ValueError at train.py:4"),
        (OTHER_HOOK, 1, ("ValueError", "no rows in 3", 4), "ended by ValueError at train.py:4"),
        (EXITS, 2, None, "exit code 2"),  # an exception that it caught
        (INTERRUPTED, -signal.SIGINT, ("KeyboardInterrupt", "", 2), "interrupted at train.py:2"),
        (CHILD, 1, ("ValueError", "no rows in 3", 4), "exit code 1"),
    ],
    ids=["uncaught", "hook", "caught", "interrupt", "child"],
)
def test_what_ended_a_program_is_said(
    tmp_path: Path, program: str, code: int, raised: tuple[str, str, int] | None, title: str
) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    done, report = run(tmp_path, program)
    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ
    )
    assert (done.returncode, done.stdout) == (code, alone.stdout)
    assert done.stderr.startswith(alone.stderr)
    assert title in done.stderr[len(alone.stderr) :]
    (process,) = (p for p in report["processes"] if p["role"] == ("child" if program is CHILD else "script"))
    if raised is None:
        assert "exception" not in process
        return
    exception = process["exception"]
    assert (exception["type"], exception["message"]) == raised[:2]
    assert exception["line"] == raised[2]


PROCESS = """
import multiprocessing, sys, time
def work(part, how):
    time.sleep(0.3)
    if how == "raises":
        raise KeyError(part)
    sys.exit(3 if how == "exits" else 0)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    all = [context.Process(target=work, args=("b", how), name=how) for how in ("raises", "exits", "ends")]
    [p.start() for p in all]
    [p.join() for p in all]
    print(sorted(p.exitcode for p in all))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_what_ended_a_process_of_multiprocessing_is_said(tmp_path: Path, method: str) -> None:
    done, report = run(tmp_path, PROCESS.replace("sys.argv[1]", repr(method)))
    assert done.returncode == 0 and done.stdout == "[0, 1, 3]\n", done.stderr
    assert done.stderr.count("KeyError: 'b'") == 1, done.stderr  # multiprocessing's own words, as without us
    raised = [p["exception"] for p in report["processes"] if "exception" in p]
    assert [(e["type"], e["message"], e["line"]) for e in raised] == [("KeyError", "'b'", 6)]


class CountedError(Exception):
    """An exception whose message a method of the program's own makes."""

    asked = 0

    def __str__(self) -> str:
        CountedError.asked += 1
        return "mine"


class Value:
    """A value that says what it is by a method of the program's own."""

    def __repr__(self) -> str:
        raise AssertionError("it was asked")


def test_no_code_of_the_program_makes_the_message() -> None:
    assert raised.message(CountedError("x")) == ""
    assert CountedError.asked == 0
    assert raised.message(ValueError(Value(), 1)) == ""
    assert raised.message(KeyError("a")) == "'a'"
    assert raised.message(FileNotFoundError(2, "none", "f")) == "[Errno 2] none: 'f'"
    assert len(raised.message(ValueError("x" * 5000))) == raised.MOST_TEXT


def test_texts_are_sent_as_they_are() -> None:
    for text in ('a "b" \\n', "é\u20ac\U0001f600\0\x7f", "\udc80"):
        assert json.loads(raised.quoted(text)) == text


FAILED = """

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/v/torch/multiprocessing/spawn.py", line 89, in _wrap
    fn(i, *args)
  File "train.py", line 7, in work
    rows[3]
    ~~~~^^^
KeyError: 3

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/v/torch/multiprocessing/spawn.py", line 89, in _wrap
    fn(i, *args)
  File "train.py", line 18, in work
    raise torch.OutOfMemoryError("bad: batch\\nof 3")
torch.OutOfMemoryError: bad: batch
of 3
"""


def test_the_exception_of_a_spawned_rank_is_read_from_its_traceback() -> None:
    calls = [("train.py", 18), ("/v/torch/multiprocessing/spawn.py", 89)]
    assert raised.read(FAILED) == ("OutOfMemoryError", "bad: batch", calls)
    assert raised.read("") == ("", "", [])
    kind = type("ProcessRaisedException", (Exception,), {"__module__": "torch.multiprocessing.spawn"})
    error = kind(FAILED)
    assert raised.of_child(error) is None
    setattr(error, "error_pid", 12)  # noqa: B010 - as torch does
    assert raised.of_child(error) == (12, "OutOfMemoryError", "bad: batch", calls)
    assert raised.of_child(ValueError(FAILED)) is None
    sent = json.loads(raised.line("E", "m", calls[:1], 12))
    assert sent == {"raised": "E", "message": "m", "stack": [["train.py", 18]], "pid": 12}


CAUGHT = """Caught OSError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/v/torch/utils/data/_utils/worker.py", line 375, in _worker_loop
    data = fetcher.fetch(index)
           ^^^^^^^^^^^^^^^^^^^^
  File "train.py", line 9, in __getitem__
    raise OSError("truncated image 2500")
OSError: truncated image 2500
"""


class Unprinted(str):
    """A text with methods of the program's own, as torch's KeyErrorMessage has some."""

    def startswith(self, *_: Any) -> bool:
        raise AssertionError("it was asked")

    __repr__ = __str__ = partition = startswith  # type: ignore[assignment]


def test_the_exception_of_a_loaders_worker_is_read_from_its_traceback() -> None:
    calls = [("train.py", 9), ("/v/torch/utils/data/_utils/worker.py", 375)]
    for error in (OSError(CAUGHT), RuntimeError(CAUGHT), KeyError(Unprinted(CAUGHT))):
        assert raised.of_worker(error) == ("OSError", "truncated image 2500", calls)
    for other in (OSError(), OSError(2, "none"), OSError("Caught OSError in a net"), OSError(CAUGHT[:80])):
        assert raised.of_worker(other) is None


LOADER = """
class Again(Exception):
    pass
def load():
    raise OSError("Caught OSError in DataLoader worker process 0.\\nOriginal Traceback (most recent call last):\\n"
        '  File "/v/torch/worker.py", line 375, in _worker_loop\\n    fetch()\\n'
        f'  File "{__file__}", line 3, in __getitem__\\n    raise OSError("cut")\\nOSError: cut: 2500\\n')
import time
time.sleep(0.3)
load()
"""


def test_what_ended_a_loaders_worker_ended_the_program(tmp_path: Path) -> None:
    done, report = run(tmp_path, LOADER)
    assert done.returncode == 1 and "ended by OSError at train.py:3  cut: 2500" in done.stderr, done.stderr
    (exception,) = (p["exception"] for p in report["processes"] if "exception" in p)
    assert (exception["type"], exception["message"], exception["line"]) == ("OSError", "cut: 2500", 3)


def test_an_exception_of_another_call_than_the_main_program_is_not_its_end() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError
    assert raised.frames(caught.value.__traceback__, ("__main__", "runpy")) is None
