"""What may go wrong around a cell, in real kernels with the real sidecar.

In each case the cell does what it would have done, one sentence says what was lost, and
nothing is left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import alive, wait_until
from kernels import Kernel, folders_of

BUSY = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass\n"


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """Shared by the tests that leave it in order."""
    with Kernel() as kernel:
        yield kernel


def profiled(cell: str, options: str = "") -> str:
    return f"%%omni_perf {options}\n{cell}"


def use_binary(kernel: Kernel, path: str) -> None:
    """Let the next sidecar be this program, "" for the real one."""
    kernel.run(f"import os\nos.environ['OMNI_PERF_BINARY'] = {path!r}\n%reload_ext omni_perf")


# The sidecar.


def test_binary_missing(kernel: Kernel) -> None:
    use_binary(kernel, "/no/such/omni-perf")
    ran = kernel.run(profiled("print('ran')\n6 * 7"))
    assert ran.result == "42"
    assert ran.text("stdout") == "ran\n"
    assert "OMNI_PERF_BINARY names /no/such/omni-perf, which is not an executable file" in ran.text("stderr")
    assert "This cell is not profiled." in ran.text("stderr")
    assert ran.charts() == []
    use_binary(kernel, "")
    assert len(kernel.run(profiled("1")).charts()) == 1


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("#!/bin/sh\nexit 2\n", "did not start as a sidecar (exit status 2)"),
        ("#!/bin/sh\necho gibberish\n", "did not start as a sidecar"),
        ("not a program at all", "could not be executed: Exec format error."),
        ("#!/no/interpreter\n", "could not be executed: No such file or directory."),
        ("""#!/bin/sh\necho '{"error": "No room in /tmp."}'\nexit 1\n""", "No room in /tmp."),
        ("""#!/bin/sh\necho '{"socket": "/no/s", "pid": 1}'\n""", "The connection to the sidecar was lost."),
        ("#!/bin/sh\necho '[1]'\n", "gave an answer this version of omni_perf cannot read"),
    ],
)
def test_binary_of_another_kind(kernel: Kernel, tmp_path: Path, program: str, says: str) -> None:
    path = tmp_path / "omni-perf"
    path.write_text(program)
    path.chmod(0o755)
    use_binary(kernel, str(path))
    try:
        ran = kernel.run(profiled("6 * 7"))
        assert ran.result == "42"
        assert says in ran.text("stderr")
        assert ran.text("stderr").count("\n") == 1
    finally:
        use_binary(kernel, "")


def test_on_warns_once_and_does_not_try_again_at_once(kernel: Kernel) -> None:
    use_binary(kernel, "/no/such/omni-perf")
    kernel.run("%omni_perf on")
    try:
        # The trouble shows after the first cells are over: one of the next reports it.
        warning = wait_until(lambda: kernel.run("1").text("stderr"), "a warning")
        assert "not an executable file" in warning
        assert kernel.run("1").text("stderr") == ""
    finally:
        kernel.run("%omni_perf off")
        use_binary(kernel, "")


FORGOTTEN = (
    "The sidecar has ended since cells were profiled: what it kept of them is lost; their charts stay where they are.\n"
)


def test_sidecar_killed_in_mid_cell(kernel: Kernel) -> None:
    kernel.run(profiled("1"))
    first = kernel.sidecar()
    ran = kernel.run(profiled(f"import os, time\ntime.sleep(0.3)\nos.kill({first}, 9)\ntime.sleep(0.3)\n'intact'"))
    assert ran.result == "'intact'"
    found = re.fullmatch(
        r"omni_perf: The sidecar was gone (\d\.\d) s into this cell: its profile is lost, and what was kept of the cells "
        r"before it; the next profiled cell starts a new sidecar\.\n",
        ran.text("stderr"),
    )
    assert found, ran.text("stderr")
    assert 0.2 < float(found[1]) < 0.6
    after = kernel.run(profiled("1"))
    assert after.text("stderr") == ""
    assert len(after.charts()) == 1
    assert kernel.sidecar() != first
    wait_until(lambda: not folders_of(first), "the new sidecar to remove the old one's folder")


def test_sidecar_killed_between_cells(kernel: Kernel) -> None:
    kernel.run(profiled("1"))
    first = kernel.sidecar()
    os.kill(first, 9)
    wait_until(lambda: not alive(first), "the sidecar's end")
    assert kernel.run("%omni_perf report").text("stdout") == FORGOTTEN
    ran = kernel.run(profiled("1"))
    assert ran.text("stderr") == ""
    assert len(ran.charts()) == 1
    assert kernel.run("%omni_perf list").text("stdout") == FORGOTTEN


STOPPED_FOR_S = 2.5
"""What is allowed where a stopped sidecar shall cost 0.25 s: ten times that."""


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text(), "the sidecar to stop")


def test_sidecar_stopped(kernel: Kernel) -> None:
    """A sidecar that hangs costs the cell a quarter of a second at its start."""
    kernel.run(profiled("1"))
    pid = kernel.sidecar()
    kernel.limit_begin(0.25)
    stop(pid)
    try:
        began = time.monotonic()
        ran = kernel.run(profiled("6 * 7"))
        took = time.monotonic() - began
    finally:
        os.kill(pid, signal.SIGCONT)
        kernel.limit_begin(10)
    assert ran.result == "42"
    assert took < STOPPED_FOR_S
    assert ran.text("stderr") == (
        f"omni_perf: The sidecar (process {pid}) is stopped; kill -CONT {pid} lets it go on. This cell has no chart.\n"
    )
    wait_until(lambda: kernel.run(profiled("1")).charts(), "the sidecar to answer again")
    assert kernel.sidecar() == pid


@pytest.mark.parametrize("begin_by_itself", [False, True])
def test_a_sidecar_that_answers_late(kernel: Kernel, begin_by_itself: bool) -> None:
    """The cell runs meanwhile, and its chart says from when on it was recorded."""
    kernel.run(profiled("1"))
    pid = kernel.sidecar()
    kernel.limit_begin(0.25)
    cell = "import time\nprint('runs', flush=True)\ntime.sleep(3)"
    if begin_by_itself:
        kernel.run("%omni_perf on -t 2.5")
    stop(pid)
    try:
        request = kernel.start(cell if begin_by_itself else profiled(cell))
        kernel.wait_for_output("runs")
        time.sleep(1)
    finally:
        os.kill(pid, signal.SIGCONT)
    ran = kernel.finish(request)
    kernel.limit_begin(10)
    kernel.run("%omni_perf off")
    assert ran.text("stderr") == ""
    assert len(ran.charts()) == 1
    late = re.search(r"recorded from ([\d.]+) s on, of ([\d.]+) s", ran.charts()[0]["text/plain"])
    assert late, ran.charts()[0]["text/plain"]
    assert 0.9 < float(late[1]) < 2.9
    assert float(late[2]) > 2.9


@pytest.mark.parametrize("begin_by_itself", [False, True])
def test_sidecar_stopped_in_mid_cell(kernel: Kernel, begin_by_itself: bool) -> None:
    """It costs the cell a quarter of a second at its end, too, and loses nothing when it goes on."""
    kernel.run(profiled("1"))
    pid = kernel.sidecar()
    cell = f"import os, signal, time\ntime.sleep(0.3)\nos.kill({pid}, signal.SIGSTOP)\ntime.sleep(0.1)\n6 * 7"
    if begin_by_itself:
        kernel.run("%omni_perf on -t 0.1")
    began = time.monotonic()
    try:
        ran = kernel.run(cell if begin_by_itself else profiled(cell))
        took = time.monotonic() - began
    finally:
        os.kill(pid, signal.SIGCONT)
        kernel.run("%omni_perf off")
    assert ran.result == "42"
    assert took < 0.4 + STOPPED_FOR_S
    number = ran.reply["execution_count"]
    assert ran.text("stderr") == (
        f"omni_perf: The sidecar (process {pid}) is stopped; kill -CONT {pid} lets it go on. "
        f"Then %omni_perf last {number} shows this cell.\n"
    )
    later = wait_until(
        lambda: [out["data"] for out in kernel.run(f"%omni_perf last {number}").outputs if "data" in out],
        "the cell's chart",
    )
    assert f"Cell [{number}]" in later[-1]["text/plain"]
    assert kernel.sidecar() == pid


def test_a_stopped_sidecar_holds_up_no_subcommand(kernel: Kernel) -> None:
    kernel.run(profiled("1"))
    pid = kernel.sidecar()
    stop(pid)
    try:
        for word in ("status", "list", "doctor", "last 1"):
            began = time.monotonic()
            ran = kernel.run(f"%omni_perf {word}")
            assert time.monotonic() - began < STOPPED_FOR_S, word
            assert f"The sidecar (process {pid}) is stopped" in ran.text("stderr"), word
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: "pid" in kernel.run("%omni_perf status").text("stdout"), "the sidecar to answer again")


def test_unloading_ends_a_stopped_sidecar(kernel: Kernel) -> None:
    kernel.run(profiled("1"))
    pid = kernel.sidecar()
    stop(pid)
    try:
        kernel.run("%reload_ext omni_perf")
        wait_until(lambda: not alive(pid), "the sidecar to end")
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGCONT)
    assert len(kernel.run(profiled("1")).charts()) == 1


def test_a_log_that_is_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    with Kernel({"OMNI_PERF_LOG": str(fifo)}) as kernel:
        ran = kernel.run(profiled("6 * 7"))
        assert len(ran.charts()) == 1
        assert f"The log {fifo} (OMNI_PERF_LOG) cannot be written: it is no file." in ran.text("stderr")
        assert kernel.run(profiled("1")).text("stderr") == ""
    assert fifo.is_fifo()


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("RLIMIT_AS, (700 << 20,) * 2", r"Addresses are limited to 0\.7 GB here \(ulimit -v\), a sidecar needs 2 GB\."),
        (
            "RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')) + 6,) * 2",
            "files may be open at a time|Too many open files",
        ),
    ],
)
def test_limits_that_are_too_low_are_reported(tmp_path: Path, limit: str, says: str) -> None:
    script = textwrap.dedent(f"""
        import os, resource
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        shell.run_line_magic('load_ext', 'omni_perf')
        import omni_perf.session as session
        session.START_LIMIT_S, session.BEGIN_LIMIT_S = 30, 10
        resource.setrlimit(resource.{limit})
        shell.run_cell('%%omni_perf\\nprint("ran")').raise_error()
        children = open('/proc/self/task/%d/children' % os.getpid()).read().split()
        print('children', children)
    """)
    ran = _python(script, tmp_path)
    assert "ran\n" in ran.stdout, ran.stdout + ran.stderr
    assert "children []" in ran.stdout
    if "Cell [" not in ran.stdout:  # where the limit is enough after all
        assert re.search(says, ran.stderr), ran.stderr
        assert "may belong to another version" not in ran.stderr


def test_socket_deleted(kernel: Kernel) -> None:
    kernel.run(profiled("1"))
    for folder in folders_of(kernel.sidecar()):
        shutil.rmtree(folder)
    ran = kernel.run(profiled("6 * 7"))
    assert ran.result == "42"
    assert len(ran.charts()) == 1  # the connection is kept


def run_in_own_mounts(prepare: str) -> subprocess.CompletedProcess[str]:
    """Profile a cell in terminal IPython after shell commands that change what is mounted."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("another /tmp takes a mount namespace: needs root and unshare")
    script = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'omni_perf')\n"
        "shell.run_cell('%%omni_perf\\nprint(\"ran\")')\n"
    )
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{prepare} && exec {sys.executable} -"],
        input=script,
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": "/tmp/nowhere", "IPYTHONDIR": "/dev/shm/ipython"},
        cwd="/",
        timeout=60,
    )
    if "mount:" in ran.stderr:
        pytest.skip(f"no mount namespace here: {ran.stderr.strip()}")
    return ran


def test_no_place_for_the_socket() -> None:
    """Every place for the sidecar's folder refuses: /tmp is read-only in here."""
    ran = run_in_own_mounts("mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp")
    assert "ran" in ran.stdout
    assert re.search(r"omni_perf: The sidecar could not .*/tmp.* This cell is not profiled\.\n", ran.stderr), ran.stderr


def test_a_full_disk() -> None:
    """Nothing more fits on /tmp: folder and socket take no space, the log is lost, the cell is not."""
    checkout = Path(__file__).resolve().parents[2]
    if checkout.is_relative_to("/tmp"):
        pytest.skip("the checkout itself lies in /tmp")
    fill = "mount -t tmpfs -o size=64k tmpfs /tmp && { cat /dev/zero > /tmp/fill || true; } 2>/dev/null"
    ran = run_in_own_mounts(fill)
    assert "ran" in ran.stdout
    profiled_all_the_same = "Cell [" in ran.stdout
    said = re.search(r"omni_perf: .* This cell is not profiled\.\n", ran.stderr)
    assert profiled_all_the_same or said, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


def test_a_clock_that_is_set_back_changes_nothing(kernel: Kernel) -> None:
    """The wall clock jumps an hour back in mid-cell; durations are of another clock."""
    ran = kernel.run(
        profiled(
            "import time\n"
            "time.sleep(0.2)\n"
            "wall = time.time\n"
            "time.time = lambda: wall() - 3600\n"
            "time.sleep(0.2)\n"
            "time.time = wall"
        )
    )
    assert len(ran.charts()) == 1
    seconds = kernel.run("import omni_perf; omni_perf.last().to_dict()['duration_ns'] / 1e9").result
    assert seconds is not None and 0.4 <= float(seconds) < 60


def test_kernel_killed_in_a_cell() -> None:
    with Kernel() as kernel:
        kernel.run(profiled("1"))
        sidecar = kernel.sidecar()
        kernel.start(profiled("print('here', flush=True)\nimport time; time.sleep(60)"))
        kernel.wait_for_output("here")
        kernel.kill()
        _gone_soon(sidecar)


def test_kernel_restarted_in_a_cell() -> None:
    with Kernel() as kernel:
        kernel.run(profiled("1"))
        sidecar = kernel.sidecar()
        kernel.start(profiled("print('here', flush=True)\nimport time; time.sleep(60)"))
        kernel.wait_for_output("here")
        kernel.restart()
        _gone_soon(sidecar)


def _gone_soon(sidecar: int) -> None:
    """An orphan stays at most two seconds, and no file stays at all."""
    killed_at = time.monotonic()
    wait_until(lambda: not alive(sidecar), "the sidecar to end")
    assert time.monotonic() - killed_at < 2.5
    assert folders_of(sidecar) == []


def test_two_kernels() -> None:
    with Kernel() as one, Kernel() as two:
        requests = [kernel.start(profiled(BUSY.format(seconds=0.3))) for kernel in (one, two)]
        for kernel, request in zip((one, two), requests, strict=True):
            assert len(kernel.finish(request).charts()) == 1
        assert one.sidecar() != two.sidecar()


def test_peers_without_token_or_of_another_user_are_refused(kernel: Kernel) -> None:
    kernel.run("%reload_ext omni_perf")
    kernel.run(profiled("1"))
    (folder,) = folders_of(kernel.sidecar())
    socket = folder / "s"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert socket.stat().st_mode & 0o777 == 0o600
    call = textwrap.dedent("""
        import asyncio, sys
        from grpclib.client import Channel
        from omni_perf import client, launcher
        async def main(token):
            one = client.Client(launcher.Endpoint(sys.argv[1], 0, "", token))
            try:
                print(await one.call("Status", {}, 5))
            except client.SidecarError as error:
                print(type(error).__name__, error)
            one.close()
        asyncio.run(main(sys.argv[2]))
    """)
    ran = subprocess.run(
        [sys.executable, "-c", call, str(socket), "x" * 43], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.startswith("SidecarError"), ran.stdout + ran.stderr
    assert "token" in ran.stdout
    if os.geteuid() != 0:
        pytest.skip("the part with another user needs root")
    connect = "import os, socket, sys; os.setuid(65534); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", connect, str(socket)], capture_output=True, text=True, timeout=60)
    assert "PermissionError" in ran.stderr


def test_the_sidecar_is_reached_by_its_socket_alone(kernel: Kernel) -> None:
    """No port of any network; the token is in nothing that other processes can read."""
    kernel.run(profiled("1"))
    pid = kernel.sidecar()
    inodes = {
        os.readlink(link)[len("socket:[") : -1]
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if os.readlink(link).startswith("socket:[")
    }
    tables = {
        name: [line.split() for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
        for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")
        if Path(f"/proc/{pid}/net/{name}").exists()
    }
    own = {name: [fields for fields in table if fields[9] in inodes] for name, table in tables.items()}
    listening = "0A"
    assert [fields for table in own.values() for fields in table if fields[3] == listening] == []
    assert {name for name, table in own.items() if table} <= {"tcp"}
    assert {fields[2].partition(":")[0] for fields in own["tcp"]} <= {"0100007F"}  # the kernel's own ports
    read = "next(iter(__import__('omni_perf.extension').extension._loaded.values())).session.link.client.endpoint.token"
    token = str(kernel.run(read).result).strip("'").encode()
    assert len(token) > 40
    for process in (pid, kernel.pid):
        for what in ("cmdline", "environ"):
            assert token not in Path(f"/proc/{process}/{what}").read_bytes(), what


# Interrupts.


def test_interrupt_in_mid_cell(kernel: Kernel) -> None:
    cell = (
        "try:\n    print('here', flush=True)\n    import time; time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('user code saw it')\n    raise"
    )
    request = kernel.start(profiled(cell))
    kernel.wait_for_output("here")
    kernel.interrupt()
    ran = kernel.finish(request)
    assert ran.error == "KeyboardInterrupt"
    assert ran.text("stdout").startswith("user code saw it\n")
    assert len(ran.charts()) == 1
    assert "interrupted" in kernel.run("%omni_perf list").plain


def test_interrupt_of_an_awaiting_cell(kernel: Kernel) -> None:
    """ipykernel cancels the cell and hands its event no result, or one with CancelledError."""
    cell = "import asyncio\nprint('here', flush=True)\nawait asyncio.sleep(1)"
    errors: list[str | None] = []
    for each in (cell, profiled(cell)):
        request = kernel.start(each)
        kernel.wait_for_output("here")
        kernel.interrupt()
        errors.append(kernel.finish(request).error)
    assert errors[0] == errors[1]
    assert "(interrupted)" in kernel.run("%omni_perf list").plain.splitlines()[-1]
    after = kernel.run(profiled("6 * 7"))
    assert after.result == "42"
    assert len(after.charts()) == 1


def test_interrupt_spares_the_sidecar(kernel: Kernel) -> None:
    kernel.run(profiled("1"))
    before = kernel.sidecar()
    request = kernel.start("print('here', flush=True)\nimport time; time.sleep(60)")
    kernel.wait_for_output("here")
    kernel.interrupt()
    assert kernel.finish(request).error == "KeyboardInterrupt"
    assert kernel.sidecar() == before


# What cells do.


def test_a_raising_cell_has_its_chart(kernel: Kernel) -> None:
    ran = kernel.run(profiled("1 / 0"))
    assert ran.error == "ZeroDivisionError"
    assert [output["type"] for output in ran.outputs if output["type"] != "stream"] == ["error", "display_data"]


def test_many_short_functions(kernel: Kernel) -> None:
    names = "\n".join(f"def f{n}(): return {n}" for n in range(200))
    ran = kernel.run(
        profiled(names + "\nfs = [globals()[f'f{n}'] for n in range(200)]\nfor n in range(10**5): fs[n % 200]()")
    )
    assert _small_chart(ran.charts())


def test_deep_recursion(kernel: Kernel) -> None:
    cell = "import time\ndef deep(n):\n    if n: return deep(n - 1)\n    time.sleep(0.2)\ndeep(900)"
    ran = kernel.run(profiled(cell))
    assert ran.error is None
    assert _small_chart(ran.charts())


def test_200_threads(kernel: Kernel) -> None:
    cell = (
        "import threading, time\nthreads = [threading.Thread(target=time.sleep, args=(0.3,), name=f'w{n}') for n in range(200)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nlen(threads)"
    )
    ran = kernel.run(profiled(cell))
    assert ran.result == "200"
    assert _small_chart(ran.charts())


def test_a_cell_that_prints_300_megabytes_at_once() -> None:
    """The sidecar observes IOPub, where this is one message; it stays below its 64 MB."""
    with Kernel() as kernel:
        kernel.run(profiled("1"))
        pid = kernel.sidecar()
        ran = kernel.run(profiled("print('a' * 300_000_000)"), patience_s=240)
        assert len(ran.text("stdout")) == 300_000_001
        assert len(ran.charts()) == 1
        assert kernel.sidecar() == pid
        status = Path(f"/proc/{pid}/status").read_text()
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert peak
        assert int(peak[1]) < 64 * 1024


def test_a_cell_of_10_megabytes() -> None:
    """Its text is cut before it is sent: the sidecar stays below its 64 MB."""
    with Kernel() as kernel:
        kernel.run(profiled("1"))
        pid = kernel.sidecar()
        ran = kernel.run(profiled("x = '" + "a" * 10_000_000 + "'\nlen(x)"), patience_s=240)
        assert ran.result == "10000000"
        assert len(ran.charts()) == 1
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        assert peak
        assert int(peak[1]) < 64 * 1024


def test_ugly_names(kernel: Kernel) -> None:
    cell = BUSY.format(seconds=0) + textwrap.dedent("""
        import threading
        evil = ['<script>alert(1)</script>', 'a&b', '"quoted"', "it's", 'nul\\x00', 'bell\\x07\\x1b[31m', '\\udc80', 'x' * 10_000, '\\u202eright to left', 'größe']
        def spin():
            end = time.monotonic() + 0.05
            while time.monotonic() < end: pass
        for name in evil:
            code = spin.__code__.replace(co_name=name, co_qualname=name, co_filename=name) if '\\udc80' not in name and '\\x00' not in name else spin.__code__
            spin.__code__ = code
            t = threading.Thread(target=spin, name=name); t.start(); t.join()
    """)
    ran = kernel.run(profiled(cell))
    assert ran.error is None, ran.outputs
    (chart,) = ran.charts()
    assert len(str(chart)) < 500_000
    assert "<script>alert" not in chart["text/html"]
    assert "\x1b[31m" not in chart["text/plain"]
    assert "\x07" not in chart["text/plain"]


def test_code_from_exec_and_deleted_files(kernel: Kernel, tmp_path: Path) -> None:
    module = tmp_path / "soon_gone.py"
    module.write_text("import time\ndef work():\n    time.sleep(0.2)\n")
    cell = (
        f"import sys, os\nsys.path.insert(0, {str(tmp_path)!r})\nimport soon_gone\nos.remove(soon_gone.__file__)\n"
        "soon_gone.work()\nexec('def made(): time.sleep(0.2)', {'time': soon_gone.time}, ns := {})\nns['made']()"
    )
    ran = kernel.run(profiled(cell))
    assert ran.error is None, ran.outputs
    functions = kernel.run(
        "import omni_perf; sorted({f['name'] for f in omni_perf.last().to_dict()['functions']})"
    ).result
    assert functions is not None
    assert "made" in functions
    assert "work" in functions


def test_closed_file_descriptors(tmp_path: Path) -> None:
    """A cell that closes every descriptor and opens files that get the same numbers."""
    script = textwrap.dedent("""
        import os, tempfile
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        shell.run_line_magic('load_ext', 'omni_perf')
        shell.run_cell('%%omni_perf --quiet\\n1')
        shell.user_ns['folder'] = tempfile.mkdtemp()
        cell = '''%%omni_perf
        os.closerange(3, 1000)
        files = [open(f'{folder}/{n}', 'w+') for n in range(30)]
        print('numbers', files[0].fileno(), files[-1].fileno())
        '''
        shell.user_ns['os'] = os
        shell.run_cell('\\n'.join(line.strip() for line in cell.splitlines())).raise_error()
        shell.run_cell('%%omni_perf --quiet\\n1')
        shell.run_cell('%%omni_perf --quiet\\n1')
        for file in shell.user_ns['files']:
            assert os.fstat(file.fileno()).st_size == 0, os.pread(file.fileno(), 100, 0)
            file.write('mine')
            file.close()
        shell.run_cell('%omni_perf list')
        print('done')
    """)
    ran = _python(script, tmp_path)
    assert ran.stdout.endswith("done\n"), ran.stdout + ran.stderr
    assert "numbers 3 32" in ran.stdout
    assert "The connection to the sidecar was lost. The profile of this cell is lost." in ran.stderr


def test_a_forked_child_leaves_the_sidecar_alone(kernel: Kernel) -> None:
    cell = textwrap.dedent("""
        import os, omni_perf
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                omni_perf.step()
                with omni_perf.region("in the child"): pass
                get_ipython().run_cell("%%omni_perf\\nx = 1")
                os.write(write, b"child lives")
            finally:
                os._exit(0)
        os.wait()
        os.read(read, 100)
    """)
    ran = kernel.run(profiled(cell))
    assert ran.result == "b'child lives'"
    assert len(ran.charts()) == 1


def test_a_forked_child_that_finalises_its_copies(tmp_path: Path) -> None:
    """As an interpreter does that ends in the child; the parent's connection must not notice."""
    script = textwrap.dedent("""
        import os
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        shell.run_line_magic('load_ext', 'omni_perf')
        shell.run_cell('%%omni_perf --quiet\\n1')
        import omni_perf.extension
        if os.fork() == 0:
            (loaded,) = omni_perf.extension._loaded.values()
            loaded.session._link.client.close()  # as the finaliser of grpclib's channel does
            os._exit(0)
        assert os.wait()[1] == 0
        omni_perf.session.BEGIN_LIMIT_S = 5
        for _ in range(3):
            shell.run_cell('%%omni_perf --quiet\\n1')
        print('done')
    """)
    ran = _python(script, tmp_path)
    assert ran.stdout.endswith("done\n"), ran.stdout + ran.stderr
    assert "omni_perf" not in ran.stderr, ran.stderr  # Python 3.12+ warns of the fork itself


def _python(script: str, ipython_folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "IPYTHONDIR": str(ipython_folder)}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment)


def _small_chart(charts: list[dict[str, str]]) -> bool:
    (chart,) = charts
    return len(str(chart)) <= 500_000
