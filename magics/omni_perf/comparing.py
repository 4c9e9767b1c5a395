"""Finds recordings that are named: cells by their number, and what ``%omni_perf compare A B`` names."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Sequence

from omni_perf import contract
from omni_perf.program import local
from omni_perf.report import Report

USAGE = "%omni_perf compare A B, of several recordings %omni_perf compare A1 A2 -- B1 B2"

LARGEST = 40 << 20
"""Bytes of a file that are handed over to the sidecar, whose messages are bounded."""


class NotFoundError(Exception):
    """There is no such recording; the text is a sentence for the user."""


def sides(line: str) -> tuple[list[str], list[str], str]:
    """Split the names of the two sides; the last value says what is wrong, if anything."""
    try:
        names = shlex.split(line)
    except ValueError:  # an open quote
        return [], [], f"A quote is open in {line!r}; use {USAGE}."
    before, after = names[:1], names[1:]
    if "--" in names:
        at = names.index("--")
        before, after = names[:at], names[at + 1 :]
    elif len(names) > 2:
        return [], [], f"{len(names)} recordings are named: put -- between the two sides; use {USAGE}."
    if not before or not after:
        return [], [], f"Two recordings are needed; use {USAGE}. %omni_perf list shows the cells."
    return before, after, ""


class Finder:
    """Finds recordings by cell number, by file, or by the name that a cell was given."""

    def __init__(self, entries: Sequence[contract.Entry], last: Report | None) -> None:
        self._entries = entries
        self._last = last

    def __call__(self, name: str) -> contract.Compared:
        """Return the recording of that name; NotFoundError says that there is none, and what to do."""
        if name.isdecimal():
            return self._cell(name)
        for path in (local(name), local(name) + ".json"):
            if os.path.isfile(path) and path.endswith((".json", ".json.gz")):
                return _file(path, name)
        named = [entry for entry in self._entries if entry.get("name") == name]
        if named:
            what = f"The report of {name!r}"
            return {"reportId": _newest_kept(named, what), "name": what}
        raise NotFoundError(_not_found(name))

    def _cell(self, number: str) -> contract.Compared:
        if self._last is not None and self._last.number == int(number):
            return {"reportGzip": base64.b64encode(self._last.compressed).decode(), "name": f"Cell [{number}]"}
        return {"reportId": kept_report(self._entries, number), "name": f"Cell [{number}]"}


def kept_report(entries: Sequence[contract.Entry], number: str) -> str:
    """Return the id of the newest report that the sidecar keeps of this cell; NotFoundError if none."""
    count = str(int(number)) if number.isdecimal() else number
    of_cell = [entry for entry in entries if str(entry.get("executionCount", 0)) == count]
    if not of_cell:
        raise NotFoundError(f"No cell [{number}] was profiled; %omni_perf list shows which were.")
    return _newest_kept(of_cell, f"The report of cell [{number}]")


def _newest_kept(entries: Sequence[contract.Entry], what: str) -> str:
    kept = [held for entry in entries if (held := entry.get("reportId"))]
    if not kept:
        raise NotFoundError(f"{what} is not kept any more: %omni_perf list shows which are.")
    return kept[-1]


def _file(path: str, name: str) -> contract.Compared:
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise NotFoundError(f"{name} cannot be read: {error.strerror}.") from error
    if len(content) > LARGEST:
        raise NotFoundError(f"{name} is too large to be compared here; omni-perf compare does in a terminal.")
    return {"reportGzip": base64.b64encode(content).decode(), "name": name}


def _not_found(name: str) -> str:
    stem = local(name).removesuffix(".html").removesuffix(".svg")
    if os.path.isfile(stem + ".html") or os.path.isfile(stem + ".svg") or os.path.isfile(local(name)):
        saved = os.path.basename(stem) + ".json"
        return f"{name!r} holds no report to compare: save one as JSON, by %omni_perf save {saved} [N]."
    return (
        f"There is no recording {name!r}: name a cell by its number as in %omni_perf list, a cell by its --name, "
        "or a file saved by %omni_perf save NAME.json."
    )
