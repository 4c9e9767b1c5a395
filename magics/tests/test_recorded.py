"""What %omni_perf list shows."""

from __future__ import annotations

from omni_perf import contract, recorded

ENTRIES: list[contract.Entry] = [
    {"reportId": "r1", "executionCount": 3, "durationS": 1.5, "outcome": "ok", "firstLine": "train(model)", "headline": "Slept for 1.0 of 1.5 s."},
    {"executionCount": 12, "durationS": 0.25, "outcome": "interrupted", "name": "<b>second</b>\x1b[2J", "firstLine": "x", "headline": "y " * 200},
]  # fmt: skip


def test_the_list_is_a_table_that_names_what_shows_each_chart() -> None:
    html = recorded.table(ENTRIES)
    assert html.count("<tr>") == 3
    for want in (
        "[3]",
        "1.500 s",
        '<code style="white-space:nowrap">train(model)</code>',
        "Slept for 1.0 of 1.5 s.",
        '<code style="white-space:nowrap">%omni_perf last 3</code>',
    ):
        assert want in html
    assert "%omni_perf last 12" not in html, "its chart is not kept"
    assert "not kept" in html
    assert "interrupted" in html


def test_the_table_escapes_and_cuts_and_has_nothing_that_a_sanitizer_takes_out() -> None:
    html = recorded.table(ENTRIES)
    assert "&lt;b&gt;second&lt;/b&gt;" in html
    assert "\x1b" not in html
    assert "y " * 60 in html
    assert "y " * 121 not in html
    for never in ("<script", "<style", "id=", "var(", "class="):
        assert never not in html


def test_no_word_of_the_table_is_broken() -> None:
    html = recorded.table(ENTRIES)
    assert "word-break:normal" in html
    assert html.count("white-space:nowrap") == 3 * len(ENTRIES) + html.count("<code"), (
        "JupyterLab has a rule of its own for code"
    )


def test_a_terminal_has_a_line_per_cell() -> None:
    assert recorded.text(ENTRIES).splitlines()[0] == "[3]        1.500 s  train(model)  Slept for 1.0 of 1.5 s."
    assert recorded.text([]) == ""
