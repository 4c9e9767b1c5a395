"""What the sidecar gets of the cells' texts, their lines and the installation."""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path
from typing import Any

import omni_perf
import pytest
from conftest import FakeSidecar, Notebook
from omni_perf.cellsources import typed_lines


@pytest.mark.parametrize(
    ("typed", "compiled", "want"),
    [
        ("x = 1\ny = 2", "x = 1\ny = 2\n", []),
        ("\n\nx = 1\ny = 2", "x = 1\ny = 2\n", [3, 4]),
        ("x = 1\n\n\n", "x = 1\n", []),
        ("a = 1\n%time f(1, \\\n  2)\ng()", "a = 1\nget_ipython().run_line_magic('time', 'f(1, 2)')\ng()\n", [1, 2, 4]),
        ("%%time\nx = 1\ny = 2", "get_ipython().run_cell_magic('time', '', 'x = 1\\ny = 2\\n')\n", []),
        ("", "", []),
    ],
)
def test_lines_as_typed(typed: str, compiled: str, want: list[int]) -> None:
    assert typed_lines(typed, compiled) == want


def sources(fake: FakeSidecar) -> list[dict[str, Any]]:
    """What was sent, once each: where an answer is late, it is sent again."""
    sent = [source for method in ("Begin", "End") for call in fake.calls(method) for source in call.get("sources", [])]
    return [source for i, source in enumerate(sent) if source not in sent[:i]]


def test_lines_of_a_cell_are_told_where_they_moved(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("\n\ndef moved_down():\n    return 1")
    notebook.run("%%omni_perf\nmoved_down()")
    (moved,) = (source for source in sources(fake) if "def moved_down" in source["text"])
    assert moved["lines"] == [3, 4]
    assert not any("lines" in source for source in sources(fake) if "%%omni_perf" in source["text"])


def test_a_cell_of_an_earlier_session_is_not_told_by_the_text_of_a_later_one(
    notebook: Notebook, fake: FakeSidecar
) -> None:
    notebook.run("def of_the_earlier_session():\n    return 1")
    notebook.shell.reset()  # counts from 1 again
    notebook.run("def of_the_later_session():\n    return 2")
    notebook.run("%%omni_perf\nof_the_later_session()")
    sent = [source["file"] for source in sources(fake) if "of_the_later_session():" in source["text"]]
    assert len(sent) == 1, sent


def test_a_cell_that_ends_with_empty_lines_keeps_its_number(
    notebook: Notebook, fake: FakeSidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_raw_text(raw: str, _code: str, _number: int) -> str:  # as ipykernel does
        return f"/tmp/ipykernel_1/{zlib.crc32(raw.encode())}.py"

    monkeypatch.setattr(notebook.shell.compile, "get_code_name", by_raw_text)
    number = notebook.run("def ends_with_empty_lines():\n    return 1\n\n").execution_count
    notebook.run("%%omni_perf\nf()")
    defined = [source for source in sources(fake) if "def ends_with" in source["text"]]
    assert defined
    assert all(source["executionCount"] == number and not source.get("nested") for source in defined)


def test_a_body_run_by_a_magic_is_sent_as_typed_with_its_cells_number(notebook: Notebook, fake: FakeSidecar) -> None:
    number = notebook.run("%%omni_perf\n%%capture seen\n%time x = 1\ny = 2").execution_count
    (body,) = (source for source in sources(fake) if source["text"] == "%time x = 1\ny = 2\n")
    assert body["nested"] is True
    assert body["executionCount"] == number == fake.call("Begin")["executionCount"]


def test_a_nested_cell_has_its_cells_number(notebook: Notebook, fake: FakeSidecar) -> None:
    number = notebook.run(
        "get_ipython().run_cell('%%omni_perf\\nimport sys\\nname = sys._getframe().f_code.co_filename')"
    )
    begin = fake.call("Begin")
    assert begin["executionCount"] == number.execution_count
    assert begin["file"] == notebook.shell.user_ns["name"]


def test_the_line_magics_statement_is_nested(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("x = 1\n%omni_perf sum(range(10))")
    begin = fake.call("Begin")
    (statement,) = (source for source in sources(fake) if source["file"] == begin["file"])
    assert statement["nested"] is True
    assert statement["executionCount"] == begin["executionCount"]


def test_the_sidecar_is_told_where_libraries_lie(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%omni_perf\n1")
    sent = fake.call("Hello")["installation"]
    assert {sys.prefix, sys.base_prefix} <= set(sent["prefixes"])
    assert os.path.dirname(os.__file__) in sent["standard"]
    assert sent["extension"] == str(Path(omni_perf.__file__).parent)


def test_the_sidecar_is_told_which_thread_is_ours(notebook: Notebook, fake: FakeSidecar) -> None:
    notebook.run("%%omni_perf\nimport threading\nnames = {t.native_id: t.name for t in threading.enumerate()}")
    (own,) = fake.call("Begin")["ownThreads"]
    assert notebook.shell.user_ns["names"][own] == "omni_perf"
