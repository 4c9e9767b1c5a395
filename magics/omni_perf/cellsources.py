"""Sends the sidecar which file names belong to cells, with their text.

A cell's code carries a made-up file name (``<ipython-input-1-…>``, or a path below /tmp
in ipykernel). IPython's compiler keeps the execution count of each, linecache the text.
"""

from __future__ import annotations

import linecache
import os
from difflib import SequenceMatcher
from typing import Any, cast

from omni_perf.contract import CellSource
from omni_perf.shell import CellInfo, Shell, counts_before, is_notebook, number_around, number_of

BATCH_LIMIT = 1 << 20
"""Characters of source sent with one call; what is left follows with the next."""

LINE_ENDS = 3
"""How many empty lines at a cell's end are looked for, which the history does not keep."""

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
        self._nested: dict[str, tuple[int, str]] = {}
        self._sent_as: dict[tuple[str, int], int] = {}
        """The numbers that cells are sent with, where they differ from the compiler's."""

    def file_of(self, info: CellInfo) -> str:
        """Return the file name that the code of this cell is about to get, or ""."""
        raw = info.raw_cell or ""
        transformed: str | None = getattr(info, "transformed_cell", None)
        if transformed is None:
            transformed = self._transformed(raw)
        if transformed is None:  # it will not be compiled either
            return ""
        return self._shell.compile.get_code_name(raw, transformed, number_of(self._shell, info))

    def _transformed(self, raw: str) -> str | None:
        """Return the code that a shell names a cell by, None if the cell has none."""
        if is_notebook(self._shell):  # ipykernel names by the raw text, IPython by the other
            return ""
        try:
            return self._shell.transform_cell(raw)
        except Exception:
            return None

    def note_nested(self, file: str, number: int, text: str) -> None:
        """Remember the text of code that a cell runs, as ``%%capture`` its body: no history has it."""
        if file:
            self._nested[file] = number, text

    def unknown_to(self, known: Known, limit: int = BATCH_LIMIT) -> list[CellSource]:
        """List the cells compiled so far that are not known yet, newest first, at least one."""
        names = self._names()
        found: list[CellSource] = []
        left = limit
        for file, number in [*self._of_one_name(names), *reversed(list(names.items())), *self._elsewhere(names)]:
            if (file, self._sent_as.get((file, number), number)) in known:
                continue
            source = self._source(file, number)
            if (sent := source.get("executionCount", number)) != number:
                self._sent_as[file, number] = sent
            left -= len(source.get("text", "")) + ENTRY_SIZE
            if left < 0 and found:
                break
            found.append(source)
        return found

    def _names(self) -> dict[str, int]:
        """Return the numbers of cells by file name, as IPython's compiler keeps them."""
        return getattr(self._shell.compile, "_filename_map", {})

    def _of_one_name(self, names: dict[str, int]) -> list[tuple[str, int]]:
        """Return the numbers of all cells where IPYKERNEL_CELL_NAME gives them one file name."""
        file = os.environ.get("IPYKERNEL_CELL_NAME")
        return [(file, number) for number in range(len(self._typed()) - 1, 0, -1)] if file in names else []

    def _elsewhere(self, names: dict[str, int]) -> list[tuple[str, int]]:
        """Return the files of cells of other notebooks: ``%run other.ipynb`` makes a compiler of its own."""
        if not is_notebook(self._shell):
            return []
        folder = os.path.dirname(self._shell.compile.get_code_name("", "", 0))
        number = number_around(self._shell)
        found = (file for file in list(linecache.cache) if folder and file.startswith(folder))
        return [(file, number) for file in found if file not in names and file not in self._nested]

    def _typed(self) -> list[str]:
        history: Any = getattr(self._shell, "history_manager", None)
        return cast("list[str]", getattr(history, "input_hist_raw", []))

    def _is_file_of(self, typed: str, number: int, file: str) -> bool:
        """Return whether a cell of the history has this file. History is without the line ends at a cell's end."""
        name, code = self._shell.compile.get_code_name, self._transformed(typed)
        return code is not None and any(
            name(typed + "\n" * ends, code, number) == file for ends in range(LINE_ENDS + 1)
        )

    def _source(self, file: str, number: int) -> CellSource:
        """Return the cell as typed where that is known for sure, else as compiled."""
        compiled = "".join(linecache.getlines(file))
        text, nested = compiled, False
        typed = self._typed()
        if self._names().get(file, number) != number:  # one of several of that name: linecache has another
            return {"file": file, "executionCount": number, "text": typed[number][:BATCH_LIMIT]}
        if file in self._nested:
            number, text = self._nested[file]
            nested = True
        elif file not in self._names():
            nested = True
        elif 0 < number < len(typed) and len(typed[number]) > BATCH_LIMIT:
            nested = False  # ipykernel's hash, in Python, takes a second for each 3 MB
        elif 0 < number < len(typed) and self._is_file_of(typed[number], number, file):
            text = typed[number]
        else:
            nested = number <= len(typed)
            number -= int(nested and counts_before())
        source: CellSource = {"file": file, "executionCount": number, "text": text[:BATCH_LIMIT]}
        if text is not compiled and (lines := typed_lines(text, compiled)):
            source["lines"] = lines
        if nested:
            source["nested"] = True
        return source


def typed_lines(typed: str, compiled: str) -> list[int]:
    """Return for each line of the code its line in the cell as typed, [] where they are the same.

    IPython drops empty lines at the top and makes one line of a magic that goes on after a backslash.
    """
    written, code = typed.splitlines(), compiled.splitlines()
    if len(written) == len(code) or not code:
        return []
    lines: list[int] = []
    for _, at, end, start, stop in SequenceMatcher(None, written, code, autojunk=False).get_opcodes():
        lines += [min(at + offset, max(at, end - 1)) + 1 for offset in range(stop - start)]
    return lines if lines != list(range(1, len(code) + 1)) else []
