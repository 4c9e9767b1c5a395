"""The cells recorded so far, as ``%omni_perf list`` shows them: a table, or lines of text."""

from __future__ import annotations

import html
from collections.abc import Sequence

from omni_perf import contract
from omni_perf.publish import plain

SHOWN_CHARACTERS = 240
"""Of a cell's headline; the chart has all of it."""


def text(entries: Sequence[contract.Entry]) -> str:
    """One line per cell."""
    return "\n".join(map(_line, entries))


def table(entries: Sequence[contract.Entry]) -> str:
    """The same as an HTML table, with what shows each chart again; all text is escaped.

    It has no script, style sheet or id: it looks the same in a notebook that is not trusted.
    """
    columns = ("cell", "time", "ended", "code", "headline", "chart")
    head = "".join(f'<th style="text-align:{_align(c)}">{c}</th>' for c in columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{_align(column)};vertical-align:top;{_break(column)}">{cell}</td>'
            for column, cell in zip(columns, _cells(entry), strict=True)
        )
        + "</tr>"
        for entry in entries
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _cells(entry: contract.Entry) -> tuple[str, ...]:
    number = entry.get("executionCount", 0)
    name = entry.get("name", "")
    code = _code(entry.get("firstLine", "")) if not name else f"<b>{_shown(name)}</b>"
    return (
        f"[{number}]",
        f"{entry.get('durationS', 0.0):.3f} s",
        _shown(entry.get("outcome", "ok")),
        code,
        _shown(entry.get("headline", "")),
        _code(f"%omni_perf last {number}") if entry.get("reportId") else "not kept",
    )


def _code(text: str) -> str:
    """Code on one line: JupyterLab breaks that in a table, whatever the cell around it asks for."""
    return f'<code style="white-space:nowrap">{_shown(text)}</code>'


def _align(column: str) -> str:
    return "right" if column in ("cell", "time") else "left"


def _break(column: str) -> str:
    """Figures and commands stay on one line; words are not broken."""
    return "white-space:nowrap" if column in ("cell", "time", "chart") else "word-break:normal;overflow-wrap:anywhere"


def _shown(text: str) -> str:
    text = plain(text).replace("\n", " ")
    return html.escape(text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…")


def _line(entry: contract.Entry) -> str:
    number = entry.get("executionCount", 0)
    title = entry.get("name") or entry.get("firstLine", "")
    kept_mark = "" if entry.get("reportId") else "  (no chart kept)"
    outcome = entry.get("outcome", "ok")
    return (
        f"[{number}]".ljust(7)
        + f"{entry.get('durationS', 0.0):9.3f} s  "
        + (title if outcome == "ok" else f"{title}  ({outcome})")
        + (f"  {entry.get('headline', '')}".rstrip())
        + kept_mark
    )
