"""Compares a report with torch.profiler's own trace of the same training.

In go the report of `omni-perf run --format json`, the document of `omni-perf analyze --json` on the
trace, and the facts the training program wrote (programs/train.py): plain data, no process. Out comes
what both say, and a sentence for each disagreement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

LANE_TOLERANCE = 0.02
"""Of the training's time: NVML rounds to 1 %, and the engine counts a little more than kernels."""

ATTRIBUTION_TOLERANCE = 0.03
"""Of the training's time: what docs/gpu-idle.md promises of a resolved attribution."""

LOADING = ("data-loading", "data-loading-here", "data-loading-workers", "data-loading-sampler")
SYNCHRONISATION = "synchronisation"
Document = dict[str, Any]


@dataclass
class Comparison:
    """Seconds of device time in the training, by lane and by trace."""

    variant: str
    gpu: str
    source: str
    resolution_s: float
    training_s: float
    lane_busy_s: float
    lane_unknown_s: float
    trace_busy_s: tuple[float, float]
    """Kernels alone; and with copies and the usual gaps between queued kernels."""
    charged_s: tuple[float, float]
    """Idle time charged to the training's lines: least and most, where it is an estimate."""
    loading_s: tuple[float, float]
    """Of it, for data."""
    trace_loading_s: float | None
    """Idle under enumerate(DataLoader); None where the trace has none."""
    top: Document | None
    certainty: str
    problems: list[str] = field(default_factory=list[str])

    @property
    def edges_s(self) -> float:
        """What a window at either end of the training may hold of the time outside."""
        return 2 * self.resolution_s

    def __str__(self) -> str:
        low, high = self.trace_busy_s
        lines = [
            f"{self.variant}: {self.training_s:.1f} s of training, {self.source} every {self.resolution_s * 1000:.0f} ms",
            f"  busy     lane {self._percent(self.lane_busy_s)} (unknown {self._percent(self.lane_unknown_s)}),"
            f" trace {self._percent(low)} to {self._percent(high)}",
            f"  idle     charged to the loop {self._range(self.charged_s)},"
            f" trace {self._percent(self.training_s - high)} to {self._percent(self.training_s - low)}",
        ]
        if self.trace_loading_s is not None:
            lines.append(
                f"  loading  charged {self._range(self.loading_s)}, trace {self._percent(self.trace_loading_s)}"
            )
        if self.top:
            lines.append(f"  top      {self.top['id']}, line {self.top['line']}: {self.top['source_text'].strip()}")
        lines.append(f"  {self.certainty}")
        return "\n".join(lines + [f"  DISAGREES: {problem}" for problem in self.problems])

    def _percent(self, seconds: float) -> str:
        return f"{100 * seconds / self.training_s:.1f} %"

    def _range(self, seconds: tuple[float, float]) -> str:
        least, most = map(self._percent, seconds)
        return least if least == most else f"{least} to {most}"


def compare(report: Document, analysis: Document, facts: Document) -> Comparison:
    """Set one training's report beside its trace."""
    gpu, device = _used(report)
    util = _track(report, gpu["index"], "util")
    causes = [cause for cause in device["causes"] if _in_training(cause, facts)]
    loading = [cause for cause in causes if cause["id"] in LOADING]
    # Small causes are summed without a line: they may be the training's.
    unplaced = sum(cause["seconds"] for cause in device["causes"] if not cause["file"])
    began, ended = (facts[name] - _started(report) for name in ("began", "ended"))
    reach = facts["rest_s"] / 2  # the device rests around the training
    busy, unknown = _seconds(util, began - reach, ended + reach)
    made = Comparison(
        variant=facts["variant"],
        gpu=gpu["name"],
        source=gpu["source"],
        resolution_s=gpu["resolution_s"],
        training_s=ended - began,
        lane_busy_s=busy,
        lane_unknown_s=unknown,
        trace_busy_s=_trace_busy(analysis),
        charged_s=_bounds(causes, unplaced),
        loading_s=_bounds(loading, unplaced),
        trace_loading_s=_trace_loading(analysis),
        top=max(causes, key=lambda cause: cause["seconds"], default=None),
        certainty=device["certainty"],
    )
    made.problems += _arithmetic(report)
    made.problems += _lanes(report, gpu["index"])
    made.problems += _busy(made)
    made.problems += _charged(made)
    made.problems += _cause(made)
    return made


# What a report says of itself.


def _used(report: Document) -> tuple[Document, Document]:
    """Return the training's GPU and its idle time; others may be busy for somebody else."""
    used = [gpu for gpu in report["gpus"] if gpu["used"]]
    if not used:
        notes = "; ".join(f"{note['what']}: {note['reason']}" for note in report["notes"])
        raise AssertionError(f"no GPU was used. Notes: {notes}")
    gpu = max(used, key=lambda gpu: gpu["busy_s"])
    (device,) = (device for device in report["idle"]["devices"] if device["device"] == gpu["index"])
    return gpu, device


def _arithmetic(report: Document) -> Iterable[str]:
    duration = report["duration_s"]
    for gpu in report["gpus"]:
        parts = gpu["busy_s"] + gpu["idle_s"] + gpu["unknown_s"]
        if abs(parts - duration) > 1e-6:
            yield f"GPU {gpu['index']}: busy + idle + unknown is {parts} s of {duration} s"
    idle = report["idle"]
    for name, whole, causes in [
        ("all devices", idle["gpu_idle_s"], idle["causes"]),
        *((f"GPU {one['device']}", one["idle_s"], one["causes"]) for one in idle["devices"]),
    ]:
        total = sum(cause["seconds"] for cause in causes)
        if abs(total - whole) > 1e-6:
            yield f"{name}: the causes add up to {total} s, the idle time is {whole} s"


def _lanes(report: Document, index: int) -> Iterable[str]:
    reasons = {note["what"] for note in report["notes"]}
    for lane in ("util", "mem", "mem.self"):
        there = any(value is not None for value in _track(report, index, lane)["value"])
        # A container may hide whose the processes are; that must be said.
        if not there and (lane != "mem.self" or f"gpu{index}.{lane}" not in reasons):
            yield f"the lane gpu{index}.{lane} is empty"


def _track(report: Document, index: int, lane: str) -> Document:
    found = [track for track in report["tracks"] if track["id"] == f"gpu{index}.{lane}"]
    return found[0] if found else {"t_s": [], "value": []}


def _started(report: Document) -> float:
    return datetime.fromisoformat(report["started_at"]).timestamp()


def _seconds(track: Document, start: float, end: float) -> tuple[float, float]:
    """Busy and unknown seconds of a lane between two times."""
    busy, known, before = 0.0, 0.0, None
    for at, value in zip(track["t_s"], track["value"], strict=True):
        if before is not None and value is not None:
            length = max(0.0, min(at, end) - max(before, start))
            busy += length * value / 100
            known += length
        before = at
    return busy, end - start - known


def _in_training(cause: Document, facts: Document) -> bool:
    first, last = facts["lines"]
    return "programs/train" in cause["file"] and first <= cause["line"] <= last


def _bounds(causes: list[Document], unplaced: float) -> tuple[float, float]:
    least = sum(cause.get("low_s", cause["seconds"]) for cause in causes)
    most = sum(cause.get("high_s", cause["seconds"]) for cause in causes)
    return least, most + unplaced


# What a trace says.


def _trace_busy(analysis: Document) -> tuple[float, float]:
    (row,) = analysis["temporal_breakdown"] or [None]
    if row is None:
        raise AssertionError("the trace has no device events")
    gaps = sum(gap["idle_time_us"] for gap in analysis["idle_time_breakdown"] if gap["idle_category"] == "kernel_wait")
    busy = row["kernel_time_us"] - row["idle_time_us"]
    return row["compute_time_us"] / 1e6, (busy + min(gaps, row["idle_time_us"])) / 1e6


def _trace_loading(analysis: Document) -> float | None:
    rows = analysis["dataloader"]
    return sum(row["device_idle_us"] for row in rows) / 1e6 if rows else None


# Where they disagree.


def _busy(made: Comparison) -> Iterable[str]:
    tolerance = LANE_TOLERANCE * made.training_s + made.edges_s
    low, high = made.trace_busy_s
    if made.lane_unknown_s > 0.1 * made.training_s + made.edges_s:
        yield f"the lane knows nothing of {made.lane_unknown_s:.1f} s"
    if not low - tolerance - made.lane_unknown_s <= made.lane_busy_s <= high + tolerance:
        yield (
            f"the lane was busy for {made.lane_busy_s:.2f} s, the trace's kernels for {low:.2f} to {high:.2f} s; "
            f"they may differ by {tolerance:.2f} s"
        )


def _charged(made: Comparison) -> Iterable[str]:
    tolerance = ATTRIBUTION_TOLERANCE * made.training_s + made.edges_s
    low, high = made.trace_busy_s
    idle = made.training_s - high, made.training_s - low
    pairs = [("the loop", made.charged_s, idle)]
    # Workers' loaders are waited for beside other things; the starved one alone is plain.
    if made.variant == "starved" and made.trace_loading_s is not None:
        pairs.append(("data loading", made.loading_s, (made.trace_loading_s, made.trace_loading_s)))
    for what, (least, most), (shortest, longest) in pairs:
        if most + made.lane_unknown_s < shortest - tolerance or least > longest + tolerance:
            yield (
                f"{least:.2f} to {most:.2f} s of idle time are charged to {what}, "
                f"by the trace they are {shortest:.2f} to {longest:.2f} s; they may differ by {tolerance:.2f} s"
            )


def _cause(made: Comparison) -> Iterable[str]:
    top = made.top or {"id": "none", "source_text": ""}
    if made.variant == "starved" and top["id"] not in LOADING:
        yield f"the top cause is {top['id']!r}, want one of {LOADING!r}"
    if made.variant == "item" and ".item(" not in top["source_text"]:
        yield f"the top line is {top['source_text'].strip()!r}, want the one with .item()"
    elif made.variant == "item" and top["id"] != SYNCHRONISATION:
        yield f"the top cause is {top['id']!r}, want {SYNCHRONISATION!r}"
    elif made.variant == "item" and ".item()" not in top["hint"]:
        yield f"the hint is {top['hint']!r}, which says nothing of .item()"
    if made.variant == "fixed" and made.loading_s[0] > 0.1 * made.training_s:
        yield f"{made.loading_s[0]:.2f} s are charged to a loader whose workers keep up"
