"""What an exact report must agree with: the clocks and events of programs/gpuwork.py. Plain data, no process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

Document = dict[str, Any]
SLACK_S = 0.005
"""Of a figure: where the program's clocks begin and end, and the launch of each round's first kernel."""


@dataclass(frozen=True)
class Pair:
    """A figure of the report beside the program's own, in seconds."""

    name: str
    report_s: float
    truth_s: float

    def agrees(self, tolerance: float) -> bool:
        return abs(self.report_s - self.truth_s) <= tolerance * self.truth_s + SLACK_S

    def __str__(self) -> str:
        return f"{self.name}: report {self.report_s:.4f} s, program {self.truth_s:.4f} s"


def pairs(document: Document, facts: Document) -> list[Pair]:
    """The device's work in the rounds, and its idle time at the two lines that kept it waiting."""
    return [
        Pair("busy", _busy_s(document, facts["began"], facts["ended"]), facts["busy_s"]),
        Pair("idle while it slept", _idle_s(document, facts["sleep_lines"]), facts["slept_s"]),
        Pair("idle while it computed", _idle_s(document, facts["compute_lines"]), facts["computed_s"]),
    ]


def problems(document: Document, facts: Document, tolerance: float) -> list[str]:
    """A sentence for each figure that is off by more than this share of the truth."""
    found = [str(pair) for pair in pairs(document, facts) if not pair.agrees(tolerance)]
    if not any("exact from" in note["text"] for note in document["notes"]):
        found.append(f"nothing is exact: {[note['text'] for note in document['notes']]}")
    return found


def _busy_s(document: Document, began: float, ended: float) -> float:
    """Busy time of the device between two times of the wall clock."""
    started = datetime.fromisoformat(document["started_at"]).timestamp()
    track = next(track for track in document["tracks"] if track["id"] == "gpu.util")
    busy, before = 0.0, None
    for at_us, value in zip(track["at_us"], track["value"], strict=True):
        at = at_us / 1e6
        if before is not None and value is not None:
            busy += max(0.0, min(at, ended - started) - max(before, began - started)) * value / 100
        before = at
    return busy


def _idle_s(document: Document, numbers: list[int]) -> float:
    """Idle time of the program's lines of these numbers."""
    files = document["files"]
    return sum(
        row["idle_ns"] / 1e9
        for row in document["lines"]
        if row["file"] is not None and "gpuwork" in files[row["file"]]["name"] and row["line"] in numbers
    )
