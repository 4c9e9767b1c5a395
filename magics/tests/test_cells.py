"""The extension in a real shell, with a sidecar that only says what it was asked."""

import ast
import json
import os
import sys
import threading
from typing import Any

import omni_perf
import pytest
from conftest import FakeSidecar, Notebook, wait_until


def test_a_cell_is_recorded_and_its_chart_published(notebook: Notebook, fake: FakeSidecar) -> None:
    result = notebook.run("%%omni_perf -p 0.01 --name first\nx = 6\nx * 7")
    assert result.result == 42
    assert notebook.charts() == [{"text/html": "<b>CHART</b>", "text/plain": "CHART"}]
    begin, end = fake.call("Begin"), fake.call("End")
    assert begin["text"] == "%%omni_perf -p 0.01 --name first\nx = 6\nx * 7"
    assert begin["intervalNs"] == "10000000"
    assert begin["name"] == "first"
    assert begin["executionCount"] == result.execution_count
    assert begin["threadId"] == threading.get_native_id()
    assert begin["cellId"] == end["cellId"]
    assert int(begin["startedNs"]) <= int(end["endedNs"])
    assert end["outcome"] == "ok"
    assert end["form"] == "terminal"


def test_the_file_of_a_cell_is_reported_before_it_runs(notebook: Notebook, fake: FakeSidecar) -> None:
    result = notebook.run("%%omni_perf\nimport sys\nsys._getframe().f_code.co_filename")
    assert fake.call("Begin")["file"] == result.result


def test_sources_are_sent_once(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("def f():\n    return 1")
    notebook.run("%%omni_perf\nf()")
    notebook.run("%%omni_perf\nf()")
    sent = [source["text"] for method in ("Begin", "End") for source in fake.calls(method)[0].get("sources", [])]
    assert "def f():\n    return 1" in sent
    assert "%%omni_perf\nf()" in [text.replace("# %%", "%%").strip() for text in sent]
    again = [source["text"] for source in fake.calls("Begin")[1]["sources"]]
    assert again == []


def test_a_cell_that_begins_waits_for_few_sources(notebook: Notebook, fake: FakeSidecar) -> None:
    """A new sidecar lacks all cells of a long session: the rest follows when the cell ends."""
    cells = [f"x = {number}  # {'y' * 100}" for number in range(400)]
    for cell in cells:
        notebook.run(cell)
    notebook.run("%%omni_perf\n1")
    first, rest = fake.call("Begin")["sources"], fake.call("End")["sources"]
    assert len(json.dumps(first)) < 50_000
    assert cells[-1] in [source["text"] for source in first]
    assert set(cells) <= {source["text"] for source in [*first, *rest]}


@pytest.mark.parametrize(
    ("cell", "outcome"),
    [
        ("1 / 0", "error: ZeroDivisionError"),
        ("raise KeyboardInterrupt", "interrupted"),
        ("import sys; sys.exit()", "error: SystemExit"),
        ("x = )", "error: SyntaxError"),
        ("import asyncio\nawait asyncio.sleep(0)\n1 / 0", "error: ZeroDivisionError"),
        ("", "ok"),
    ],
)
def test_outcome(notebook: Notebook, fake: FakeSidecar, cell: str, outcome: str) -> None:
    notebook.run("%%omni_perf\n" + cell)
    assert fake.call("End")["outcome"] == outcome
    assert len(notebook.charts()) == 1


def test_quiet_shows_no_chart(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%omni_perf --quiet\n1")
    assert fake.call("End")["quiet"] is True
    assert notebook.charts() == []
    last = omni_perf.last()
    assert last is not None
    assert last.to_dict() == {"document": "omni_perf.report", "version": 2}


def test_lines_of_the_sidecar_are_printed(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.behave(answers={"End": {"lines": ["Too short to profile: only 5 samples."]}})
    notebook.run("%%omni_perf --quiet\n1")
    assert "Too short to profile: only 5 samples.\n" in capsys.readouterr().out


def test_a_mistake_in_the_options_lets_the_cell_run(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    result = notebook.run("%%omni_perf -p fast\n6 * 7")
    assert result.result == 42
    assert "omni_perf: -p takes seconds, such as -p 0.001, not 'fast'.\n" in capsys.readouterr().err
    assert fake.call("Begin")["intervalNs"] == "0"


def test_nested_cells_are_told_apart(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%omni_perf --name outer\nget_ipython().run_cell('%%omni_perf --name inner\\n1 / 0')\n2")
    begins = {call["cellId"]: call["name"] for call in fake.calls("Begin")}
    ends = [(begins[call["cellId"]], call["outcome"]) for call in fake.calls("End")]
    assert ends == [("inner", "error: ZeroDivisionError"), ("outer", "ok")]


def test_cells_of_two_threads_are_told_apart(notebook: Notebook, fake: FakeSidecar) -> None:
    """As ipykernel's subshells run them."""
    gate = threading.Barrier(2, timeout=20)
    notebook.shell.user_ns["gate"] = gate
    cells = [f"%%omni_perf --name {name}\ngate.wait()\ngate.wait()" for name in ("one", "two")]

    def run(cell: str) -> None:
        from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult

        kinds: Any = ExecutionInfo
        info = kinds(cell, False, False, True, None)
        events = notebook.shell.events
        events.trigger("pre_run_cell", info)
        gate.wait()
        events.trigger("post_run_cell", ExecutionResult(info))

    threads = [threading.Thread(target=run, args=[cell]) for cell in cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    begins = {call["cellId"]: call["name"] for call in fake.calls("Begin")}
    assert sorted(begins[call["cellId"]] for call in fake.calls("End")) == ["one", "two"]
    assert len({call["threadId"] for call in fake.calls("Begin")}) == 2


def test_a_cancelled_cell_without_a_result_ends_its_recording(notebook: Notebook, fake: FakeSidecar) -> None:
    """ipykernel's answer to an interrupted await."""
    from IPython.core.interactiveshell import ExecutionInfo

    kinds: Any = ExecutionInfo
    notebook.shell.events.trigger("pre_run_cell", kinds("%%omni_perf\nawait x", False, False, True, None))
    notebook.shell.events.trigger("post_run_cell", None)
    assert fake.call("End")["outcome"] == "interrupted"


def test_on_records_every_cell(notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.run("%omni_perf on -t 0.05 -s 0.5")
    notebook.run("1 + 1")
    notebook.run("import time; time.sleep(0.06)")
    notebook.run("%omni_perf off")
    notebook.run("2 + 2")
    assert "those that take 0.05 s or more show their chart" in capsys.readouterr().out
    fake.call("End", 2)
    begins = fake.calls("Begin")
    assert [(call["text"], call["automatic"], call["thresholdNs"]) for call in begins] == [
        ("1 + 1", True, "50000000"),
        ("import time; time.sleep(0.06)", True, "50000000"),
    ]
    assert begins[0]["systemIntervalNs"] == "500000000"
    assert [fake.call("End", n)["quiet"] for n in (1, 2)] == [True, False]
    assert len(notebook.charts()) == 1


def test_on_leaves_nested_cells_to_their_outer_one(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%omni_perf on")
    notebook.run("get_ipython().run_cell('1')")
    fake.call("End")
    assert [call["text"] for call in fake.calls("Begin")] == ["get_ipython().run_cell('1')"]


def test_the_magic_below_time_is_recorded(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%time\n%%omni_perf --name timed\nx = 1")
    assert fake.call("Begin")["name"] == "timed"
    assert notebook.shell.user_ns["x"] == 1


def test_the_magic_below_capture_is_recorded_once(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%capture seen\n%%omni_perf\nprint('hello')")
    assert len(fake.calls("Begin")) == 1
    assert notebook.shell.user_ns["seen"].stdout == "hello\n"
    assert [out.data["text/plain"] for out in notebook.shell.user_ns["seen"].outputs] == ["CHART"]


# The line magic.


def test_a_statement_is_recorded_and_gives_its_value(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("y = %omni_perf -p 0.01 sum(range(10))")
    assert notebook.shell.user_ns["y"] == 45
    assert fake.call("Begin")["text"] == "sum(range(10))"
    notebook.run("%omni_perf z = 3")
    assert notebook.shell.user_ns["z"] == 3


def test_a_statement_sees_local_names(notebook: Notebook) -> None:
    notebook.run("def f(a):\n    b = %omni_perf a + 1\n    return b\nresult = f(2)")
    assert notebook.shell.user_ns["result"] == 3


def test_a_failing_statement_raises(notebook: Notebook, fake: FakeSidecar) -> None:
    result = notebook.run("%omni_perf 1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert fake.call("End")["outcome"] == "error: ZeroDivisionError"


def test_a_subcommand_wins_and_dashes_run_the_statement(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run("%omni_perf -- list")
    assert fake.call("Begin")["text"] == "list"
    notebook.run("%omni_perf list((1, 2))")
    assert fake.call("Begin", 2)["text"] == "list((1, 2))"
    notebook.run("%omni_perf last = 5")
    assert notebook.shell.user_ns["last"] == 5
    capsys.readouterr()
    notebook.run("%omni_perf list")
    assert capsys.readouterr().out.startswith("[3]        1.500 s")


def test_last_and_save(notebook: Notebook, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.run("%omni_perf last")
    assert "No cell was profiled yet" in capsys.readouterr().out
    notebook.run("%%omni_perf\n1")
    shown = notebook.run("%omni_perf last").result
    assert shown is omni_perf.last()
    assert shown._repr_mimebundle_()[0]["text/html"] == "<b>DRAWN</b>"
    notebook.run(f"%omni_perf save {tmp_path}/run")
    notebook.run(f"%omni_perf save {tmp_path}/run.json")
    assert (tmp_path / "run.svg").read_bytes() == b"DRAWN"
    assert (tmp_path / "run.html").read_bytes() == b"DRAWN"
    assert json.loads((tmp_path / "run.json").read_text()) == {"document": "omni_perf.report", "version": 2}
    notebook.run(f"%omni_perf save {tmp_path}/no/such/folder.json")
    assert "folder.json: No such file or directory." in capsys.readouterr().err


def test_what_is_to_be_saved_or_compared_is_asked_for_in_a_sentence(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    for word, usage in {"save": "%omni_perf save NAME [N].", "compare": "%omni_perf compare A B."}.items():
        notebook.run(f"%omni_perf {word}")
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and said.err.rstrip().endswith(usage), said


def test_status_and_doctor(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.run("%omni_perf status")
    assert "none yet; the first profiled cell starts one" in capsys.readouterr().out
    notebook.run("%omni_perf doctor")
    out = capsys.readouterr().out
    assert "ok    program: " in out
    assert "ok    stacks: Readable." in out
    notebook.run("%omni_perf status")
    assert "stacks      read from outside" in capsys.readouterr().out


def test_help(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.run("%omni_perf")
    assert "%%omni_perf [-p SECONDS]" in capsys.readouterr().out
    found = notebook.shell.object_inspect("%%omni_perf")
    assert found["found"]
    assert "Show where the time of this cell went" in found["docstring"]


def test_run_cell_magic_is_served(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.shell.run_cell_magic("omni_perf", "--name direct", "x = 5")
    assert notebook.shell.user_ns["x"] == 5
    assert fake.call("Begin")["name"] == "direct"


# The extension and its shell.


def test_unload_takes_everything_out(fake: FakeSidecar, plain: Notebook) -> None:
    shell = plain.shell
    before = list(shell.input_transformers_cleanup), dict(shell.events.callbacks)
    before_callbacks = {name: list(functions) for name, functions in before[1].items()}
    from omni_perf import extension

    extension.load(shell)
    extension.load(shell)
    plain.run("%%omni_perf\n1")
    pid = fake.pid
    extension.unload(shell)
    assert list(shell.input_transformers_cleanup) == before[0]
    assert {name: list(functions) for name, functions in shell.events.callbacks.items()} == before_callbacks
    assert "omni_perf" not in shell.magics_manager.magics["cell"]
    assert "omni_perf" not in shell.magics_manager.magics["line"]
    assert "%omni_perf" not in shell.Completer.custom_completers.strs
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the sidecar to end")
    extension.unload(shell)


def test_marks_of_the_cell_are_handed_over(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run(
        "%%omni_perf\nimport omni_perf\nfor _ in range(3):\n"
        "    with omni_perf.region('load'):\n        pass\n    omni_perf.step()"
    )
    assert [mark["kind"] for mark in fake.call("End")["marks"]].count("step") == 3
    assert [mark.get("name") for mark in fake.call("End")["marks"]].count("load") == 3


def test_a_step_of_the_optimizer_is_found(notebook: Notebook, fake: FakeSidecar) -> None:
    """Stands in for torch: the module appears while the cell runs, and is never imported by us."""
    cell = """%%omni_perf
import sys, time, types
hooks = []
class Handle:
    def remove(self): hooks.clear()
module = types.ModuleType("torch.optim.optimizer")
module.register_optimizer_step_pre_hook = lambda hook: Handle()
module.register_optimizer_step_post_hook = lambda hook: (hooks.append(hook), Handle())[1]
sys.modules["torch.optim.optimizer"] = module
deadline = time.monotonic() + 20
while not hooks and time.monotonic() < deadline:
    time.sleep(0.01)
class Optimizer: pass
first, second = Optimizer(), Optimizer()
for _ in range(5):
    hooks[0](first, (), {})
    hooks[0](second, (), {})
"""
    try:
        result = notebook.run(cell)
        result.raise_error()
        assert [mark["kind"] for mark in fake.call("End")["marks"]] == ["optimizer-step"] * 5 + ["optimizer"]
    finally:
        sys.modules.pop("torch.optim.optimizer", None)


def test_names_that_are_hard_to_carry(notebook: Notebook, fake: FakeSidecar) -> None:
    text = "%%omni_perf\nx = '<&\"\\x00\\udc80 \u202eright to left " + "y" * 10_000 + "'"
    notebook.run(text).raise_error()
    assert fake.call("Begin")["text"] == text
    notebook.run("%%omni_perf --name 'a <b> & \U0001f525'\n1")
    assert fake.call("Begin", 2)["name"] == "a <b> & \U0001f525"
    notebook.shell.user_ns["omni_perf"] = omni_perf
    notebook.run("%%omni_perf\nwith omni_perf.region('\\udc80'): pass")
    assert fake.call("End", 3)["marks"][0]["name"] == "?"


def test_nothing_heavy_is_imported_by_loading() -> None:
    import subprocess

    code = (
        "import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\nbefore = set(sys.modules)\n"
        "shell.run_line_magic('load_ext', 'omni_perf')\n"
        "print([m for m in set(sys.modules) - before if m.split('.')[0] in ('grpclib', 'h2', 'multidict', 'numpy', 'torch')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(ran.stdout.strip().splitlines()[-1]) == []


# The line magic behaves as %time and %%time do.


def test_a_statement_is_taken_verbatim(notebook: Notebook) -> None:
    notebook.run("a = 5")
    notebook.run("%omni_perf s = {a}; t = '$a {a}'")
    assert notebook.shell.user_ns["s"] == {5}
    assert notebook.shell.user_ns["t"] == "$a {a}"


def test_a_semicolon_silences_a_statement(notebook: Notebook) -> None:
    assert notebook.run("%omni_perf 6 * 7;").result is None
    assert notebook.run("%omni_perf ';'").result == ";"


def test_run_cell_magic_raises_and_returns_as_time_does(notebook: Notebook, fake: FakeSidecar) -> None:
    with pytest.raises(ZeroDivisionError):
        notebook.shell.run_cell_magic("omni_perf", "", "x = 1\n1 / 0")
    assert fake.call("End")["outcome"] == "error: ZeroDivisionError"
    assert notebook.shell.run_cell_magic("omni_perf", "--name n", "y = 6\ny * 7") == 42
    assert fake.call("Begin", 2)["name"] == "n"
    assert notebook.shell.run_cell_magic("omni_perf", "", "6 * 7;") is None


@pytest.mark.parametrize("line", ["-h", "--help", "help", "", "on -h", "-p 0.1 -h"])
def test_help_is_given_where_it_is_asked_for(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert notebook.run(f"%omni_perf {line}").success
    assert "%omni_perf list " in capsys.readouterr().out
    assert fake.calls("Begin") == []


def test_help_above_a_cell_does_not_keep_it_from_running(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notebook.run("%%omni_perf -h\n6 * 7").result == 42
    assert "--quiet      no chart" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("stauts", "%omni_perf status?"),
        ("lst", "%omni_perf list?"),
        ("sav run.svg", "%omni_perf save NAME [N]?"),
        ("off now", "%omni_perf off?"),
        ("last one", "%omni_perf last [N|died]?"),
        ("last -1", "%omni_perf last [N|died]?"),
        ("--quiet x", ""),
    ],
)
def test_a_mistyped_subcommand_is_reported(
    notebook: Notebook, fake: FakeSidecar, capsys: pytest.CaptureFixture[str], line: str, meant: str
) -> None:
    ran = notebook.run(f"%omni_perf {line}")
    if not meant:  # a statement that fails by itself
        assert isinstance(ran.error_in_exec, NameError)
        return
    assert ran.success
    assert f"did you mean {meant} %omni_perf help has all." in capsys.readouterr().err
    assert fake.calls("Begin") == []


def test_names_like_subcommands_are_statements_where_they_are_known(notebook: Notebook) -> None:
    notebook.run("stats = 7")
    assert notebook.run("%omni_perf stats").result == 7
    assert notebook.run("%omni_perf stats + 1").result == 8
    assert isinstance(notebook.run("%omni_perf unheard_of").error_in_exec, NameError)


def complete(notebook: Notebook, text: str) -> list[str]:
    notebook.shell.Completer.use_jedi = False  # which gives up on a busy machine
    return sorted(notebook.shell.Completer.complete(line_buffer=text, cursor_pos=len(text))[1])


def test_completion_offers_subcommands_and_the_users_names(notebook: Notebook) -> None:
    assert complete(notebook, "%omni_perf s") == ["save", "status"]
    offered = complete(notebook, "%omni_perf ")
    assert {"doctor", "help", "last", "list", "off", "on", "save", "status"} <= set(offered)
    assert not any(word.startswith("%") for word in offered)
    notebook.run("import omni_perf\nsample_function = len")
    for part in ("sample_f", "len(sample_f", "save sample_f"):
        assert complete(notebook, f"%omni_perf {part}") == complete(notebook, f"%time {part}")
    names = {name.rpartition(".")[2] for name in complete(notebook, "omni_perf.")}
    known = {"analyze", "cluster", "last", "make_traces", "ray_worker", "read", "region", "schedule", "step"}
    assert names - {"__version__"} == known


# Older recordings.

OLDER = [
    {"reportId": "1", "executionCount": 3, "headline": "the first"},
    {"reportId": "2", "executionCount": 3, "headline": "the second"},
    {"reportId": "", "executionCount": 4},
]


def test_older_recordings_are_reached_by_the_number_of_their_cell(
    notebook: Notebook,
    fake: FakeSidecar,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import base64

    drawn = base64.b64encode(
        b'{"document": "omni_perf.report", "version": 2, "headline": {"text": "mostly waiting"}}'
    ).decode()
    fake.behave(answers={"List": {"entries": OLDER}, "Report": {"content": drawn}})
    newest = notebook.run("%%omni_perf\n1").execution_count
    report = notebook.run("%omni_perf last 3").result
    assert fake.call("Report")["reportId"] == "2"
    assert report.headline == "mostly waiting"
    assert report.to_dict() == {"document": "omni_perf.report", "version": 2, "headline": {"text": "mostly waiting"}}
    assert notebook.run(f"%omni_perf last {newest}").result is omni_perf.last()
    notebook.run(f"%omni_perf save {tmp_path}/old.json 3")
    assert json.loads((tmp_path / "old.json").read_text())["headline"]["text"] == "mostly waiting"
    notebook.run(f"%omni_perf save '{tmp_path}/with space 3.json'")
    assert (tmp_path / "with space 3.json").exists()
    notebook.shell.user_ns["where"] = str(tmp_path)
    notebook.run("%omni_perf save {where}/named.json")
    assert (tmp_path / "named.json").exists()
    monkeypatch.chdir(tmp_path)
    notebook.run("%omni_perf save ./here.json")
    assert (tmp_path / "here.json").exists()
    capsys.readouterr()
    assert notebook.run("%omni_perf last 4").result is None
    assert "The report of cell [4] is not kept" in capsys.readouterr().err
    notebook.run("%omni_perf last 99")
    assert "No cell [99] was profiled" in capsys.readouterr().err


@pytest.mark.parametrize("cell", ["%%omni_perf\n1", "%%omni_perf --quiet\n1"])
def test_last_shows_the_whole_chart_whatever_the_cell_showed(notebook: Notebook, fake: FakeSidecar, cell: str) -> None:
    import base64

    drawn = {"data": {"text/html": "<b>LATER</b>"}, "metadata": {"text/html": {"isolated": False}}, "transient": {}}
    fake.behave(answers={"Report": {"content": base64.b64encode(json.dumps(drawn).encode()).decode()}})
    notebook.run(cell)
    report = notebook.run("%omni_perf last").result
    assert report._repr_mimebundle_() == ({"text/html": "<b>LATER</b>"}, {"text/html": {"isolated": False}})
    assert fake.call("Report")["format"] == "bundle"


def test_without_a_sidecar_last_shows_what_the_cell_showed(notebook: Notebook, fake: FakeSidecar) -> None:
    fake.behave(die_on="Report")
    notebook.run("%%omni_perf\n1")
    report = notebook.run("%omni_perf last").result
    assert report._repr_mimebundle_() == (
        {"text/html": "<b>CHART</b>", "text/plain": "CHART"},
        {"text/html": {"isolated": False}},
    )


def test_what_is_listed_sends_no_commands_to_the_terminal(
    notebook: Notebook,
    fake: FakeSidecar,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # a line ends at \r: what comes before is a name
    evil = "\x1b]0;owned\x07\x1b[2J\x9b\u202e\r"
    fake.behave(answers={"List": {"entries": [{"executionCount": 3, "name": evil, "headline": evil, "outcome": evil}]}})
    notebook.run("%%omni_perf\n1")
    notebook.run("%omni_perf list")
    notebook.run(f"%omni_perf save {evil}/x")
    shown = capsys.readouterr()
    assert "owned" in shown.out
    assert not set("\x1b\x07\x9b\u202e\r") & set(shown.out + shown.err)
