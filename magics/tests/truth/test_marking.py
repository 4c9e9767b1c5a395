"""The marks: where they are written, and what they measure."""

from __future__ import annotations

import time
from typing import Any

import pytest

from truth import cases, marking
from truth.cases import Case, Text
from truth.marking import Places
from truth.running import Marked


def marks(source: str, ends: bool = False) -> str:
    """Return the marked source with marks written «line»."""
    places = Places()
    text = marking.marked(source, "#1", places, marking.own_names([source]), ends)
    for (_, line), number in reversed(places.numbers.items()):
        text = text.replace(f"_mark(_clock() << 16 | {number})", f"«{line}»")
    return text


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ("f()", "(«1», (f()))[1]"),
        ("x = a, b", "x = («1», (a, b))[1]"),
        ("x += f(); y = 2", "x += («1», (f()))[1]; y = («1», (2))[1]"),
        ("import os", "«1»; import os"),
        ("# only\nx = 'ä' + f(1)", "# only\nx = («2», ('ä' + f(1)))[1]"),
        ("%time f()\nx = 1", "%time f()\nx = («2», (1))[1]"),
        ("x = (\n    f()\n)", "x = (\n    («2», (f()))[1]\n)"),
        (
            "def f():\n    '''Text.'''\n    return 1\nf()",
            "def f():\n    '''Text.'''\n    return («3», (1))[1]\n(«4», ((f(), «4»)[0]))[1]",
        ),
        ("f = lambda: 1\nf()", "f = («1», (lambda: («1», (1))[1]))[1]\n(«2», ((f(), «2»)[0]))[1]"),
        (
            "for x in y:\n    if x:\n        continue\n    f()",
            "for x in («1», (y))[1]:\n    if («2», (x))[1]:\n        «1»; continue\n    («4», (f()))[1]; «1»",
        ),
        (
            "while a:\n    for b in c:\n        d = 1\n    else:\n        e = 2",
            "while («1», (a))[1]:\n    for b in («2», (c))[1]:\n        d = («3», (1))[1]; «2»\n    else:\n        e = («5», (2))[1]",
        ),
        ("with a as b:\n    c()", "with («1», (a))[1] as b:\n    («2», (c()))[1]; «1»"),
        ("try:\n    a()\nexcept E:\n    b()", "try:\n    («2», (a()))[1]\nexcept E:\n    («4», (b()))[1]"),
        (
            "async def f():\n    return 1\nawait f()",
            "async def f():\n    return («2», (1))[1]\n(«3», ((await f(), «3»)[0]))[1]",
        ),
    ],
)
def test_marks_stand_within_statements_on_their_lines(source: str, want: str) -> None:
    assert marks(source) == want


def test_what_a_cell_displays_belongs_to_no_line() -> None:
    assert marks("x = 1\nx", ends=True) == "x = («1», (1))[1]\n(«2», (x), «0»)[1]"
    assert marks("x = 1", ends=True) == "x = («1», (1))[1]\n«0»"


@pytest.mark.parametrize("case", cases.load(), ids=lambda case: case.name)
def test_marks_keep_the_lines_of_every_case(case: Case) -> None:
    marked = Marked.of(case)
    for cell, text in zip(case.cells, marked.cells, strict=True):
        lines, with_marks = cell.source.splitlines(), text.source.splitlines()
        assert len(lines) <= len(with_marks) <= len(lines) + 1
        magics = [line for line in lines if line.lstrip().startswith("%%")]
        if not cell.by_hand:  # where a set-up on the magic's line has marks, too
            assert magics == [line for line in with_marks if line.lstrip().startswith("%%")]
    if script := case.script():
        compile(Marked.of(Case(case.name, [Text("#1", script)], case.files)).cells[0].source, "script", "exec")


def test_marks_measure_the_lines_that_run() -> None:
    source = """
def nap(seconds):
    time.sleep(seconds)
    return seconds
for i in range(2):
    x = nap(0.02); time.sleep(0.01)
time.sleep(0.03)
"""
    places = Places()
    text = marking.marked(source, "#1", places, {"nap"}, ends=True)
    noted: list[int] = []
    names: dict[str, Any] = {"_mark": noted.append, "_clock": time.perf_counter_ns, "time": time}
    exec(compile(text, "cell", "exec"), names)
    seconds = places.seconds(noted)
    assert set(seconds) == {("#1", line) for line in (3, 4, 5, 6, 7)}
    assert seconds["#1", 3] == pytest.approx(0.04, rel=0.5)
    assert seconds["#1", 6] == pytest.approx(0.02, rel=0.5)
    assert seconds["#1", 7] == pytest.approx(0.03, rel=0.5)
    assert seconds["#1", 4] < 0.01
