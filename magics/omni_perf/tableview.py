"""A table as a notebook shows it, without pandas."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, SupportsIndex, cast, overload

SHOWN_ROWS = 20
SHOWN_CHARACTERS = 72

PLACES = ("place", "caller", "file", "run")
"""Columns whose text ends with a file's name and line, which a cut leaves."""

Row = dict[str, Any]

DataFrame = Any
"""pandas.DataFrame, which nothing here requires: not even to check the types."""


def data_frame(rows: Sequence[Row], columns: Sequence[str]) -> DataFrame:
    """Return rows as a pandas DataFrame; ImportError says what to do without pandas."""
    try:
        pandas = cast(Any, import_module("pandas"))
    except ImportError:
        raise ImportError(
            "to_pandas() makes pandas DataFrames and pandas is not installed; "
            "install it or use tables, which needs nothing."
        ) from None
    return pandas.DataFrame(list(rows), columns=list(columns))


class Table(list[Row]):
    """The rows of one table, a list of dictionaries; displays its first ones."""

    def __init__(self, name: str, title: str, note: str, columns: list[str], rows: Iterable[Row]) -> None:
        """Make the table of these rows, each with a value for every column."""
        super().__init__(rows)
        self.name = name
        self.title = title
        self.note = note
        self.columns = columns

    @overload
    def __getitem__(self, index: SupportsIndex) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Row | Table:
        """Return a row, or a table of several."""
        if isinstance(index, slice):
            return Table(self.name, self.title, self.note, self.columns, super().__getitem__(index))
        return super().__getitem__(index)

    def __repr__(self) -> str:
        """Write the first rows as aligned text."""
        cells = [self.columns, *([_text(row[c], c) for c in self.columns] for row in self._shown())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numeric = [self._is_numeric(column) for column in self.columns]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in cells
        ]
        return "\n".join([_plain(self.title), *lines, *self._remarks()])

    def _repr_html_(self) -> str:
        """Write the first rows as an HTML table; all text is escaped."""
        numeric = [self._is_numeric(column) for column in self.columns]
        style = {
            column: f' style="text-align:{"right" if number else "left"}"'
            for column, number in zip(self.columns, numeric, strict=True)
        }
        head = "".join(f"<th{style[c]}>{html.escape(_plain(c))}</th>" for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td{style[c]}>{html.escape(_text(row[c], c))}</td>" for c in self.columns) + "</tr>"
            for row in self._shown()
        )
        remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in self._remarks())
        title = html.escape(_plain(self.title))
        return f"<p><b>{title}</b></p><table><tr>{head}</tr>{body}</table>{remarks}"

    def _shown(self) -> list[Row]:
        return list(self)[:SHOWN_ROWS]

    def _is_numeric(self, column: str) -> bool:
        return any(isinstance(row[column], int | float) for row in self._shown())

    def _remarks(self) -> list[str]:
        remarks = [_plain(self.note)] if self.note else []
        if not self:
            remarks.append("no rows")
        if len(self) > SHOWN_ROWS:
            remarks.append(f"{SHOWN_ROWS} of {len(self):,} rows")
        return remarks


def _text(value: Any, column: str) -> str:
    """Write a cell: figures to two decimals, text on one line."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.2f}"
    text = _plain(str(value))
    if len(text) <= SHOWN_CHARACTERS:
        return text
    kept = SHOWN_CHARACTERS - 1
    return "…" + text[-kept:] if column in PLACES else text[:kept] + "…"


def _plain(text: str) -> str:
    """Replace control, format and surrogate characters."""
    return "".join("␣" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)
