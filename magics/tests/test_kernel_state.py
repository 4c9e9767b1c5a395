"""Nothing runs in a user's kernel that the user did not ask for, whatever door omni_perf comes in by.

The state of the kernel's process is read before and after: random numbers, warnings, hooks, signal
handlers, threads, descriptors, modules. What stays of ours is listed here; by ``attach``, ``top`` and
``live KERNEL`` nothing does. ``make test-oldest`` runs it with the oldest ipykernel.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel

BINARY = Path(sys.executable).parent / "omni-perf"
PATIENCE_S = 60.0

PROBE = '''
def omni_perf_test_state():
    """The state of this process, as what can be printed and compared."""
    import atexit, builtins, gc, hashlib, logging, os, random, re, signal, sys, threading, warnings
    shell = get_ipython()
    state = {
        "random": random.getstate(),
        "warnings.filters": [str(f) for f in warnings.filters],
        "warnings.showwarning": warnings.showwarning,
        "sys hooks": [sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook, sys.gettrace(), sys.getprofile()],
        "threading hooks": [threading.excepthook, threading.gettrace(), threading.getprofile()],
        "streams": [sys.stdin, sys.stdout, sys.stderr],
        "import": [sys.path, sys.meta_path, sys.path_hooks, builtins.__import__],
        "interpreter": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_asyncgen_hooks(), gc.isenabled(), gc.get_threshold(), gc.callbacks],
        "signals": [(s.name, signal.getsignal(s)) for s in sorted(signal.valid_signals()) if isinstance(s, signal.Signals)],
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "process": [os.getcwd(), dict(os.environ), os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))],
        "logging": [logging.root.level, logging.root.handlers, logging.root.manager.disable],
        "custom exceptions": [shell.custom_exceptions, shell.showtraceback],
    }
    if "numpy" in sys.modules:
        state["numpy.random"] = sys.modules["numpy"].random.get_state()
    if "torch" in sys.modules:
        state["torch"] = sys.modules["torch"].get_rng_state().tolist()
    state = {name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in state.items()}
    descriptors = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            descriptors[int(entry)] = re.sub(r":\\[\\d+\\]$", "", os.readlink("/proc/self/fd/" + entry))
        except OSError:
            pass  # that of the listing
    state["threads"] = sorted(t.name for t in threading.enumerate())
    state["descriptors"] = sorted(descriptors.values())
    state["modules"] = sorted(sys.modules)
    return state
'''

IMPORTS = "import random, sys\nfor name in ('numpy', 'numpy.random', 'torch'):\n    try: __import__(name)\n    except ImportError: pass\nrandom.seed(0)"

OUR_PACKAGES = {"omni_perf", "grpclib", "h2", "hpack", "hyperframe", "multidict"}
OUR_THREADS = ["omni_perf"]
OUR_DESCRIPTORS = Counter(
    {
        "anon_inode:[eventpoll]": 1,  # of our thread's event loop
        # Its self-pipe, the connection to the sidecar, and that by which the sidecar counts what cells print.
        "socket": 4,
        "anon_inode:[pidfd]": 1,  # by which the sidecar's end is seen
    }
)


def state(kernel: Kernel) -> dict[str, Any]:
    return ast.literal_eval(kernel.run("print(omni_perf_test_state())").text("stdout"))


def differences(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    """A kernel with nothing of ours, as it is after some cells."""
    with Kernel(load=False) as kernel:
        assert kernel.run(IMPORTS).error is None
        assert kernel.run(PROBE).error is None
        # ipykernel, IPython and pyzmq import, open and start things when they are first used, pyzmq a
        # thread with the first message of more than 64 kB.
        assert kernel.run("display({'text/plain': 'x' * 200_000}, raw=True)").error is None
        kernel.run("%unload_ext omni_perf")  # which is not loaded: IPython imports its own module for %load_ext
        for _ in range(2):
            state(kernel)
        yield kernel


def load(kernel: Kernel) -> None:
    kernel.limit_begin(10)
    kernel.limit_start(30)
    assert not kernel.run("%load_ext omni_perf").outputs


def with_magic(kernel: Kernel) -> None:
    load(kernel)
    assert kernel.run("%%omni_perf\nsum(range(100_000))").charts()
    assert kernel.run("%%omni_perf\nsum(range(100_000))").charts()


def with_on(kernel: Kernel) -> None:
    load(kernel)
    kernel.run("%omni_perf on -t 0")
    assert kernel.run("import time; time.sleep(0.5)").charts()
    kernel.run("%omni_perf off")


@pytest.mark.parametrize("profile", [with_magic, with_on], ids=["%%omni_perf", "%omni_perf on"])
def test_what_stays_of_the_extension_is_known(kernel: Kernel, profile: Callable[[Kernel], None]) -> None:
    before = state(kernel)
    profile(kernel)
    after = state(kernel)
    assert differences(before, after) == {"threads", "descriptors", "modules"}
    assert Counter(after["threads"]) - Counter(before["threads"]) == Counter(OUR_THREADS)
    assert Counter(after["descriptors"]) - Counter(before["descriptors"]) <= OUR_DESCRIPTORS
    assert not Counter(before["descriptors"]) - Counter(after["descriptors"])
    packages = {name.partition(".")[0] for name in set(after["modules"]) - set(before["modules"])}
    assert packages - sys.stdlib_module_names <= OUR_PACKAGES
    assert set(before["modules"]) <= set(after["modules"])


@contextmanager
def command(*args: str, says: str) -> Generator[None]:
    """Run an omni-perf command that watches, from when it says so to its end."""
    process = subprocess.Popen([BINARY, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        said = ""
        while says not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def attached(kernel: Kernel, folder: Path) -> Generator[None]:
    with command("attach", kernel.connection_file, "-o", f"{folder}/out/", "--format", "json", says="following"):
        yield


@contextmanager
def topped(kernel: Kernel, folder: Path) -> Generator[None]:
    with command("top", kernel.connection_file, says="following"):
        yield


@contextmanager
def shown_elsewhere(kernel: Kernel, folder: Path) -> Generator[None]:
    with Kernel() as other:
        watching = other.start(f"%omni_perf live {kernel.pid}")
        time.sleep(4)  # it says nothing while no cell runs
        yield
        other.interrupt()
        other.finish(watching)


@pytest.mark.parametrize("watched", [attached, topped, shown_elsewhere], ids=["attach", "top", "live"])
def test_a_kernel_that_is_watched_stays_as_it_is(
    kernel: Kernel, tmp_path: Path, watched: Callable[[Kernel, Path], Any]
) -> None:
    before = state(kernel)
    with watched(kernel, tmp_path):
        during = state(kernel)
        kernel.start("import time\nprint('runs', flush=True)\ntime.sleep(2)")
        kernel.wait_for_output("runs")
        with watched(kernel, tmp_path / "second"):  # one that comes while a cell runs
            pass
    extra = Counter(during["descriptors"]) - Counter(before["descriptors"])
    assert differences(before, during) <= {"descriptors"}
    assert extra <= Counter({"socket": 1})  # the connection by which its messages are heard
    deadline = time.monotonic() + PATIENCE_S
    while differences(before, after := state(kernel)) and time.monotonic() < deadline:
        time.sleep(0.2)  # ZeroMQ closes the connection in its own time
    assert not differences(before, after), {name: (before[name], after[name]) for name in differences(before, after)}
