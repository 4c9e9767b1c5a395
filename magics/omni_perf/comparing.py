"""Finds the recordings that ``%omni_perf compare A B`` names."""

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
        return [], [], f"{len(names)} recordings are named: -- stands between the two sides; use {USAGE}."
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
            return self._kept(named, f"The report of {name!r}")
        raise NotFoundError(_not_found(name))

    def _cell(self, number: str) -> contract.Compared:
        if self._last is not None and self._last.number == int(number):
            return {"reportGzip": base64.b64encode(self._last.compressed).decode(), "name": f"Cell [{number}]"}
        entries = [entry for entry in self._entries if str(entry.get("executionCount", 0)) == str(int(number))]
        if not entries:
            raise NotFoundError(f"No cell [{number}] was profiled; %omni_perf list shows which were.")
        return self._kept(entries, f"The report of cell [{number}]")

    @staticmethod
    def _kept(entries: Sequence[contract.Entry], what: str) -> contract.Compared:
        held = [entry.get("reportId", "") for entry in entries if entry.get("reportId")]
        if not held:
            raise NotFoundError(f"{what} is not kept: the last 20 are, as %omni_perf list shows.")
        return {"reportId": held[-1], "name": what}


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
