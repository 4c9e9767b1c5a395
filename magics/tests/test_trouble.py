"""Answers of a sidecar that a healthy one rarely gives; the fake one gives them on demand."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import FakeSidecar, Notebook, alive, wait_until
from omni_perf import permission, session


def stderr_of(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_a_refusal_is_told_and_the_sidecar_ended(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "The extension is version 0.1.0, the sidecar 9.0.0: restart the kernel."
    fake.behave(answers={"Hello": {"refusal": sentence}})
    result = notebook.run("%%omni_perf\n6 * 7")
    assert result.result == 42
    assert stderr_of(capsys) == f"omni_perf: {sentence} This cell is not profiled.\n"
    for call in fake.calls("Hello"):
        assert call["api"] == 1
    fake.behave(answers={})
    notebook.run("%%omni_perf\n1")
    assert len(notebook.charts()) == 1


def test_permission_is_granted_and_asked_about_again(
    notebook: Notebook, fake: FakeSidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted: list[int] = []

    def give(self: permission.Grant, pid: int) -> bool:
        granted.append(pid)
        return True

    monkeypatch.setattr(permission.Grant, "give", give)
    fake.behave(answers={"Hello": {"outside": "permission"}})
    notebook.run("%%omni_perf\n1")
    assert granted == [fake.pid]
    assert len(fake.calls("Hello")) == 2


def test_permission_is_not_granted_unasked(
    notebook: Notebook, fake: FakeSidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would overwrite what the user granted to another tool."""

    def give(self: permission.Grant, pid: int) -> bool:
        raise AssertionError

    monkeypatch.setattr(permission.Grant, "give", give)
    notebook.run("%%omni_perf\n1")
    assert len(fake.calls("Hello")) == 1


def test_the_grant_holds_for_forked_children() -> None:
    grant = permission.Grant()
    if not grant.give(os.getpid()):
        pytest.skip("this kernel has no Yama: PR_SET_PTRACER does not exist")
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    grant.withdraw()


def test_in_kernel_sampling_when_outside_reading_is_refused(notebook: Notebook, fake: FakeSidecar) -> None:
    fake.behave(answers={"Begin": {"outside": "fallback", "reason": "No reading here."}}, delay_s={"Push": 0.2})
    cell = "%%omni_perf -p 0.005\nimport time\ndef busy():\n    end = time.monotonic() + 0.8\n    while time.monotonic() < end: pass\nbusy()"
    notebook.run(cell).raise_error()
    end = fake.call("End")
    pushes = fake.calls("Push")
    assert {push["cellId"] for push in pushes} == {end["cellId"]}
    frames = {frame["id"]: frame for push in pushes for frame in push["frames"]}
    stacks = {stack["id"]: stack["frames"] for push in pushes for stack in push["stacks"]}
    samples = [sample for push in pushes for sample in push["samples"]]
    threads = {thread["threadId"]: thread for push in pushes for thread in push["threads"]}
    assert len(samples) >= 10
    main = threading.get_native_id()
    assert threads[main]["main"]
    assert not any(thread["name"].startswith("omni_perf") for thread in threads.values())
    in_busy = [
        sample
        for sample in samples
        if sample["threadId"] == main and "busy" in {frames[number]["function"] for number in stacks[sample["stack"]]}
    ]
    assert len(in_busy) >= 10
    path = [frames[number]["function"] for number in stacks[in_busy[0]["stack"]]]
    assert path[-1] == "busy"
    assert "InteractiveShell.run_cell" in path
    times = [int(sample["atNs"]) for sample in samples]
    assert times == sorted(times)
    assert int(pushes[-1]["cpuNs"]) > 0
    order = [line.split('"')[3] for line in fake.journal.read_text().splitlines()]
    assert order[-1] == "End", "all samples must be there at the end of their cell"
    assert len(pushes) >= 2
    seen: set[int] = set()
    for push in pushes:
        seen |= {stack["id"] for stack in push["stacks"]}
        assert {sample["stack"] for sample in push["samples"]} <= seen, "a batch overtook another"
    assert not [thread for thread in threading.enumerate() if thread.name == "omni_perf sampler"]


@pytest.mark.parametrize(
    ("cell", "leaf"),
    [
        ("def down(n):\n    if n: return down(n - 1)\n    time.sleep(0.5)\ndown(1500)", ("down", 6, 0)),
        (
            "async def down(n):\n    if n: return await down(n - 1)\n    await asyncio.sleep(0.5)\nawait down(1500)",
            ("sleep", None, 0),
        ),
    ],
)
def test_in_kernel_sampling_keeps_both_ends_of_a_deep_stack(
    notebook: Notebook, fake: FakeSidecar, cell: str, leaf: tuple[str, int | None, int]
) -> None:
    fake.behave(answers={"Begin": {"outside": "fallback", "reason": "No reading here."}})
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(4000)
    try:
        notebook.run("%%omni_perf -p 0.005\nimport asyncio, time\n\n" + cell).raise_error()
    finally:
        sys.setrecursionlimit(before)
    fake.call("End")
    pushes = fake.calls("Push")
    frames = {frame["id"]: frame for push in pushes for frame in push["frames"]}
    stacks = {stack["id"]: stack["frames"] for push in pushes for stack in push["stacks"]}
    main = [s["stack"] for push in pushes for s in push["samples"] if s["threadId"] == threading.get_native_id()]
    deep = [[frames[number] for number in stacks[stack]] for stack in main if len(stacks[stack]) > 200]
    assert len(deep) * 2 > len(main)
    path = deep[len(deep) // 2]
    between = [frame for frame in path if frame.get("elided")]
    assert [(frame["function"], frame["elided"]) for frame in between] == [("down", 1000)], "1,500 calls, 300 kept"
    assert path[-1]["function"] == leaf[0]
    assert leaf[1] in (None, path[-1]["line"])
    assert "InteractiveShell.run_cell" in {frame["function"] for frame in path}


def test_in_kernel_sampling_of_a_cell_that_awaits(notebook: Notebook, fake: FakeSidecar) -> None:
    fake.behave(answers={"Begin": {"outside": "fallback", "reason": "No reading here."}})
    cell = "%%omni_perf -p 0.005\nimport asyncio\nasync def fetch():\n    await asyncio.sleep(0.5)\nawait fetch()"
    notebook.run(cell).raise_error()
    fake.call("End")
    pushes = fake.calls("Push")
    frames = {frame["id"]: frame for push in pushes for frame in push["frames"]}
    stacks = {stack["id"]: stack["frames"] for push in pushes for stack in push["stacks"]}
    leaves = [
        [
            (frames[number]["function"], frames[number]["line"], "suspended" in frames[number])
            for number in stacks[sample["stack"]][-3:]
        ]
        for push in pushes
        for sample in push["samples"]
        if sample["threadId"] == threading.get_native_id()
    ]
    awaiting = [leaf for leaf in leaves if leaf[:2] == [("<module>", 5, True), ("fetch", 4, True)]]
    assert len(awaiting) * 2 > len(leaves), leaves
    assert all(leaf[2][0] == "sleep" for leaf in awaiting)


def test_a_slow_end_gives_the_chart_up(
    notebook: Notebook,
    fake: FakeSidecar,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "END_LIMIT_S", 0.2)
    fake.behave(delay_s={"End": 5})
    assert notebook.run("%%omni_perf\n6 * 7").result == 42
    assert "did not answer within 0.2 s. The profile of this cell is lost." in stderr_of(capsys)


def test_a_late_begin_loses_the_beginning_only(
    notebook: Notebook,
    fake: FakeSidecar,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "BEGIN_LIMIT_S", 0.25)
    fake.behave(delay_s={"Begin": 0.6})
    assert notebook.run("%%omni_perf\nimport time\nbegan = time.monotonic_ns()\ntime.sleep(1)\n6 * 7").result == 42
    assert stderr_of(capsys) == ""
    assert len(notebook.charts()) == 1
    began = notebook.shell.user_ns["began"]
    assert began - int(fake.call("Begin")["startedNs"]) < 0.55e9  # it did not wait for the answer
    assert 0 <= began - int(fake.call("End")["beganNs"]) < 0.2e9


def test_a_cell_that_waited_for_its_recording_says_so(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%omni_perf\n1")
    assert fake.call("End")["beganNs"] == "0"


def test_on_waits_for_a_sidecar_that_reads(notebook: Notebook, fake: FakeSidecar) -> None:
    fake.behave(delay_s={"Hello": 0.3})
    notebook.run("%omni_perf on -t 0.1")
    assert len(fake.calls("Hello")) == 1
    before = time.monotonic_ns()
    notebook.run("import time; time.sleep(0.3)")
    begin = fake.call("Begin")
    assert int(begin["startedNs"]) - before < 0.1e9
    assert fake.call("End")["beganNs"] == begin["startedNs"]
    assert len(notebook.charts()) == 1


def test_on_waits_a_second_at_most(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "READY_LIMIT_S", 0.2)
    fake.behave(delay_s={"Hello": 1.5})
    before = time.monotonic()
    notebook.run("%omni_perf on -t 0.1")
    assert time.monotonic() - before < 1.4
    assert stderr_of(capsys) == ""
    notebook.run("import time; time.sleep(2)")
    assert len(notebook.charts()) == 1


def test_a_cell_does_not_overlap_the_end_of_the_one_before(notebook: Notebook, fake: FakeSidecar) -> None:
    """The end of a short cell waits for its beginning's answer; the next beginning waits for that end."""
    fake.behave(delay_s={"Begin": 0.3})
    notebook.run("%omni_perf on -t 0.5")
    notebook.run("import time; time.sleep(0.1)")
    notebook.run("time.sleep(1)")
    assert len(notebook.charts()) == 1
    lines = [json.loads(line) for line in fake.journal.read_text().splitlines()]
    order = [(call["method"], call["cellId"]) for call in lines if call["method"] in ("Begin", "End")]
    first, second = (call["cellId"] for call in fake.calls("Begin"))
    assert order == [("Begin", first), ("End", first), ("Begin", second), ("End", second)]


def test_a_slow_begin_leaves_no_recording_behind(
    notebook: Notebook,
    fake: FakeSidecar,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "BEGIN_LIMIT_S", 0.25)
    fake.behave(delay_s={"Begin": 3})
    assert notebook.run("%%omni_perf\n6 * 7").result == 42
    assert re.search(r"did not answer within [\d.]+ s\. This cell is not profiled\.", stderr_of(capsys))
    end = fake.call("End")
    assert end["cellId"] == fake.call("Begin")["cellId"]
    assert end["quiet"]
    assert notebook.charts() == []


def test_a_sidecar_that_never_answers_its_start(
    notebook: Notebook,
    fake: FakeSidecar,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "START_LIMIT_S", 0.5)
    fake.behave(start="hang")
    assert notebook.run("%%omni_perf\n6 * 7").result == 42
    assert "This cell is not profiled." in stderr_of(capsys)


@pytest.mark.parametrize("method", ["Hello", "Begin", "End"])
def test_a_sidecar_that_dies_in_a_call(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    fake.behave(die_on=method)
    assert notebook.run("%%omni_perf\n6 * 7").result == 42
    err = stderr_of(capsys)
    assert err.count("\n") == 1
    assert "is not profiled" in err or "is lost" in err
    fake.behaviour.pop("die_on")
    fake.behave()
    notebook.run("%%omni_perf\n1")
    assert len(notebook.charts()) == 1


def test_an_interrupt_while_a_recording_begins_reaches_the_cell(notebook: Notebook, fake: FakeSidecar) -> None:
    fake.behave(delay_s={"Begin": 0.2})
    notebook.run("%%omni_perf --quiet\n1")

    def interrupt() -> None:
        fake.call("Begin", 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = notebook.run("%%omni_perf\nimport time\ntime.sleep(20)")
    thread.join()
    assert isinstance(result.error_in_exec, KeyboardInterrupt)


def test_an_interrupt_while_the_chart_is_awaited_gives_it_up(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.behave(delay_s={"End": 10})

    def interrupt() -> None:
        fake.call("End")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    result = notebook.run("%%omni_perf\n6 * 7")
    thread.join()
    assert result.result == 42
    assert result.success
    assert time.monotonic() - began < 9
    assert "The chart was given up" in stderr_of(capsys)


def test_notes_are_told_once(notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]) -> None:
    fake.behave(answers={"Hello": {"notes": ["IOPub speaks CurveZMQ."]}})
    notebook.run("%%omni_perf\n1")
    notebook.run("%%omni_perf\n1")
    assert stderr_of(capsys) == "omni_perf: IOPub speaks CurveZMQ.\n"


def test_the_sidecar_ends_with_a_process_that_never_unloads(fake: FakeSidecar, tmp_path: Path) -> None:
    import subprocess
    import sys

    script = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'omni_perf')\n"
        "shell.run_cell('%%omni_perf --quiet\\n1')\n"
    )
    ran = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "omni_perf" not in ran.stderr, ran.stderr  # no ResourceWarning, no thread torn down
    pid: Any = fake.pid
    wait_until(lambda: not alive(pid), "the sidecar to end")


def test_a_connection_that_is_closed_while_it_is_looked_at_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's thread renews its connection while a cell asks whether the loop is usable."""
    from omni_perf import looper

    used = looper.Looper()
    mine, other = socket.socketpair()
    number = mine.fileno()
    selector: Any = used._selector
    selector.register(mine, selectors.EVENT_READ)
    look = os.fstat

    def closed_meanwhile(descriptor: int) -> os.stat_result:
        if descriptor == number and mine.fileno() == number:
            selector.unregister(mine)
            mine.close()
        return look(descriptor)

    monkeypatch.setattr(os, "fstat", closed_meanwhile)
    try:
        assert used.usable
        assert mine.fileno() == -1
    finally:
        monkeypatch.undo()
        used.close()
        other.close()


def test_the_connection_is_renewed_and_calls_go_on(
    notebook: Notebook, fake: FakeSidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omni_perf import client

    monkeypatch.setattr(client, "RENEW_AFTER", 5)
    made: list[object] = []
    connect = client.Client._connection
    monkeypatch.setattr(client.Client, "_connection", lambda self: made.append(self) or connect(self))
    for _ in range(12):
        assert notebook.run("%%omni_perf --quiet\n1").success
    assert len(made) >= 4
    assert len(fake.calls("End")) == 12
    assert len({call["pid"] for call in fake.calls("End")}) == 1
