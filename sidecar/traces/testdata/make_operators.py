"""Write the device time of every operator of the traces below FOLDER: make_operators.py FOLDER OUT.

OUT/TRACE.csv has a row for each rank and operator: the time on the device of what the operator itself
launched, in ns. A device event belongs to the innermost operator that was open on its runtime call's
thread when the call was made, where none was to the innermost annotation; of two with the same times the
one that is later in the file is inside the other. External ids are not looked at. Events without a
recorded call, or whose call was made outside operators, are left out. The program shares no code with
what it judges.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

Event = dict[str, Any]

DEVICE = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events"}
RUNTIME = {"cuda_runtime", "cuda_driver", "mtia_runtime", "hip_runtime", "Runtime"}
OPERATOR = {"cpu_op", "Operator"}
ANNOTATION = {"user_annotation"}
STEP = re.compile(r"ProfilerStep#\d+$")


def load(file: Path) -> dict[str, Any]:
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8", errors="replace") as f:
        return json.load(f, parse_float=Fraction, strict=False)


def nanoseconds(microseconds: Any) -> int:
    return int(Fraction(microseconds) * 1000)


def interval(event: Event) -> tuple[int, int]:
    start = nanoseconds(event["ts"])
    return start, start + max(nanoseconds(event["dur"]), 0)


def operator_times(events: list[Event]) -> Counter[str]:
    """Device time by operator, in ns."""
    complete = [e for e in events if e.get("ph") == "X" and "ts" in e and "dur" in e]
    of_thread: dict[tuple[Any, Any], list[tuple[int, int, bool, str]]] = defaultdict(list)
    for e in complete:
        if e.get("cat") in OPERATOR | ANNOTATION:
            start, end = interval(e)
            end = max(end, start + 1)  # one of 0 µs is open at its start
            of_thread[e.get("pid"), e.get("tid")].append((start, end, e["cat"] in OPERATOR, e["name"]))
    device_time: Counter[Any] = Counter()
    for e in complete:
        if e.get("cat") in DEVICE:
            start, end = interval(e)
            device_time[e.get("args", {}).get("correlation")] += end - start
    calls: dict[tuple[Any, Any], list[tuple[int, Any]]] = defaultdict(list)
    for e in complete:
        correlation = e.get("args", {}).get("correlation")
        if e.get("cat") in RUNTIME and correlation in device_time:
            calls[e.get("pid"), e.get("tid")].append((nanoseconds(e["ts"]), correlation))

    times: Counter[str] = Counter()
    for thread, made in calls.items():
        waiting = sorted(of_thread[thread], key=lambda op: (op[0], -op[1]))[::-1]
        open_ops: list[tuple[int, int, bool, str]] = []
        for at, correlation in sorted(made, key=lambda call: call[0]):
            while waiting and waiting[-1][0] <= at:
                open_ops.append(waiting.pop())
            open_ops = [op for op in open_ops if op[1] > at]
            if open_ops:
                innermost = next((op for op in reversed(open_ops) if op[2]), open_ops[-1])
                times[STEP.sub("ProfilerStep*", innermost[3])] += device_time.pop(correlation, 0)
    return times


def main(folder: Path, out: Path) -> None:
    for trace in sorted(path for path in folder.iterdir() if (path / "exact").is_dir()):
        rows: Counter[tuple[int, str]] = Counter()
        for file in sorted(
            f for f in trace.iterdir() if f.name.endswith((".json", ".json.gz")) and f.name != "source.json"
        ):
            document = load(file)
            rank = document.get("distributedInfo", {}).get("rank", 0)
            for name, ns in operator_times(document["traceEvents"]).items():
                rows[rank, name] += ns
        if not rows:
            continue
        with open(out / f"{trace.name}.csv", "w", newline="") as f:
            writer = csv.writer(f, lineterminator="\n")
            writer.writerow(["rank", "name", "self_device_ns"])
            writer.writerows([rank, name, ns] for (rank, name), ns in sorted(rows.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
