"""Tells the sidecar which file names belong to cells, and their text.

A cell's code carries a made-up file name (``<ipython-input-1-…>``, or a path below /tmp
in ipykernel). IPython's compiler keeps the execution count of each, linecache the text.
"""

from __future__ import annotations

import linecache
from typing import Any, cast

from omni_perf.contract import CellSource
from omni_perf.shell import CellInfo, Shell, is_notebook

BATCH_LIMIT = 1 << 20
"""Characters of source sent with one call; what is left follows with the next."""

BEGIN_LIMIT = 1 << 15
"""As many when a cell begins, which waits for it: a new sidecar in a long session lacks them
all, and more than HTTP/2's first window of 64 kB takes turns with a busy machine."""

ENTRY_SIZE = 120
"""Characters around the text of a cell."""

Known = set[tuple[str, int]]
"""File name and execution count of the cells that a sidecar holds."""


class CellSources:
    """Reads what a shell knows about its cells."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def file_of(self, info: CellInfo, number: int) -> str:
        """Return the file name that the code of this cell is about to get, or ""."""
        raw = info.raw_cell or ""
        transformed: str | None = getattr(info, "transformed_cell", None)
        try:
            if transformed is None:  # ipykernel names by the raw text, IPython by the other
                transformed = "" if is_notebook(self._shell) else self._shell.transform_cell(raw)
            return self._shell.compile.get_code_name(raw, transformed, number)
        except Exception:  # a cell that cannot be transformed will not be compiled either
            return ""

    def unknown_to(self, known: Known, limit: int = BATCH_LIMIT) -> list[CellSource]:
        """List the cells compiled so far that are not known yet, newest first, at least one."""
        names: dict[str, int] = getattr(self._shell.compile, "_filename_map", {})
        found: list[CellSource] = []
        left = limit
        for file, number in reversed(list(names.items())):
            if (file, number) in known:
                continue
            text = self._text(file, number)
            left -= len(text) + ENTRY_SIZE
            if left < 0 and found:
                break
            found.append({"file": file, "executionCount": number, "text": text[:BATCH_LIMIT]})
        return found

    def _text(self, file: str, number: int) -> str:
        """Return the cell as typed where that can be told for sure, else as compiled."""
        compiled = "".join(linecache.getlines(file))
        history: Any = getattr(self._shell, "history_manager", None)
        typed = cast("list[str]", getattr(history, "input_hist_raw", []))
        if 0 < number < len(typed):
            raw = typed[number]
            if len(raw) > BATCH_LIMIT:  # ipykernel's hash, in Python, takes a second for each 3 MB
                return compiled
            if self._shell.compile.get_code_name(raw, compiled, number) == file:
                return raw
        return compiled
