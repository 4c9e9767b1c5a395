"""Write what HolisticTraceAnalysis and the exact rules say of the traces below FOLDER: make_parity.py FOLDER.

A variant that says the same as the default is left out.

    python3 -m venv hta && hta/bin/pip install traceinsight==0.6.1 pandas==2.3.3
    hta/bin/python make_traces.py parity && hta/bin/python make_parity.py parity

traceinsight is HolisticTraceAnalysis's name on PyPI. The exact rules are implemented here a second
time, from their text (docs/torch-traces.md, "What is counted"), with nothing but the standard library.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from statistics import stdev
from typing import Any

Row = dict[str, Any]

VARIANTS = {
    "default": ({}, {}),
    "ns": ({"HTA_DISABLE_NS_ROUNDING": "1"}, {}),
    "last_step": ({}, {"include_last_profiler_step": True}),
}
DEVICE = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events"}
RUNTIME = {"cuda_runtime", "cuda_driver", "mtia_runtime", "hip_runtime", "Runtime"}
OTHER = re.compile(
    r".*Sync|Stream Wait Event|runFunction|job_exe|packet|pe_exe|cpum_exe_subgraph|collective_subgraph_execution"
)


def nanos(value: Any) -> int:
    return int(Fraction(str(value)) * 1000)


def kind(event: Row) -> str:
    name = event["name"]
    if event["cat"] in ("gpu_memcpy", "Memcpy", "gpu_memset", "Memset"):
        return "MEMORY"
    if "nccl" in name.lower() or "rccl" in name.lower() or name.startswith("hccl"):
        return "COMMUNICATION"
    if name.startswith(("Memcpy", "Memset", "dma")):
        return "MEMORY"
    return "OTHER" if OTHER.match(name) else "COMPUTATION"


def union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length(spans: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def both(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> int:
    return sum(max(0, min(x[1], y[1]) - max(x[0], y[0])) for x in a for y in b)


def us(ns: int) -> str:
    return f"{ns / 1000:.3f}"


def share(part: float, whole: float, percent: bool = True) -> str:
    return "" if not whole else f"{(100 if percent else 1) * part / whole:.6f}"


def exact(files: list[Path]) -> dict[str, list[Row]]:
    """All tables by the exact rules."""
    tables: dict[str, list[Row]] = defaultdict(list)
    for file in files:
        document = json.loads(gzip.decompress(file.read_bytes()))
        rank = document.get("distributedInfo", {}).get("rank", 0)
        events = [e for e in document["traceEvents"] if e.get("ph") == "X" and "ts" in e and "dur" in e]
        steps = {
            e["name"]: nanos(e["ts"])
            for e in events
            if re.match(r"ProfilerStep#\d", e["name"]) and e["cat"] in ("user_annotation", "cpu_op")
        }
        calls = [e for e in events if e["cat"] in RUNTIME]
        device = [e for e in events if e["cat"] in DEVICE]
        if len(steps) >= 2:
            calls = [e for e in calls if nanos(e["ts"]) < max(steps.values())]
            kept = {e["args"]["correlation"] for e in calls}
            device = [e for e in device if e["args"].get("correlation") in kept]
        call_of = {e["args"]["correlation"]: e for e in calls}
        for e in device:
            e["start"], e["end"] = nanos(e["ts"]), nanos(e["ts"]) + nanos(e["dur"])
        one_rank(tables, rank, device, call_of)
    return tables


def one_rank(tables: dict[str, list[Row]], rank: int, device: list[Row], call_of: dict[int, Row]) -> None:
    window = (min((e["start"] for e in device), default=0), max((e["end"] for e in device), default=0))
    sums: dict[str, int] = defaultdict(int)
    for number in sorted({e["args"]["device"] for e in device}):
        own = [e for e in device if e["args"]["device"] == number]
        by_kind = {
            k: union([(e["start"], e["end"]) for e in own if kind(e) == k]) for k in ("COMPUTATION", "COMMUNICATION")
        }
        busy = length(union([(e["start"], e["end"]) for e in own]))
        sums["whole"] += window[1] - window[0]
        sums["idle"] += window[1] - window[0] - busy
        sums["compute"] += length(by_kind["COMPUTATION"])
        sums["comm"] += length(by_kind["COMMUNICATION"])
        sums["both"] += both(by_kind["COMMUNICATION"], by_kind["COMPUTATION"])
        for stream in sorted({e["args"]["stream"] for e in own}):
            idle(tables, rank, number, stream, [e for e in own if e["args"]["stream"] == stream], call_of)
    tables["comm_comp_overlap"].append({"rank": rank, "comp_comm_overlap_pctg": share(sums["both"], sums["comm"])})
    if device:
        other = sums["whole"] - sums["idle"] - sums["compute"]
        tables["temporal_breakdown"].append(
            {
                "rank": rank,
                "idle_time(us)": us(sums["idle"]),
                "compute_time(us)": us(sums["compute"]),
                "non_compute_time(us)": us(other),
                "kernel_time(us)": us(sums["whole"]),
                "idle_time_pctg": share(sums["idle"], sums["whole"]),
                "compute_time_pctg": share(sums["compute"], sums["whole"]),
                "non_compute_time_pctg": share(other, sums["whole"]),
            }
        )
    for e in device:
        if (call := call_of.get(e["args"].get("correlation"))) is not None:
            call_end = nanos(call["ts"]) + nanos(call["dur"])
            tables["cuda_kernel_launch_stats"].append(
                {
                    "rank": rank,
                    "correlation": e["args"]["correlation"],
                    "cpu_duration": us(nanos(call["dur"])),
                    "gpu_duration": us(e["end"] - e["start"]),
                    "launch_delay": us(max(0, e["start"] - call_end)),
                }
            )
    durations: dict[tuple[str, str], list[int]] = defaultdict(list)
    for e in device:
        if kind(e) != "OTHER":
            durations[kind(e), e["name"]].append(e["end"] - e["start"])
    for (what, name), list_ in durations.items():
        tables["gpu_kernel_breakdown"].append(
            {
                "name": name,
                "sum (us)": us(sum(list_)),
                "max (us)": us(max(list_)),
                "min (us)": us(min(list_)),
                "mean (us)": us(sum(list_) / len(list_)),
                "stddev": us(stdev(list_) if len(list_) > 1 else 0),
                "kernel_type": what,
                "rank": rank,
            }
        )


def idle(
    tables: dict[str, list[Row]], rank: int, device: int, stream: int, events: list[Row], call_of: dict[int, Row]
) -> None:
    gaps: dict[str, int] = {}
    latest = None
    for e in sorted(events, key=lambda e: (e["start"], e["end"])):
        gap, category = 0, "other"
        if latest is not None:
            gap = max(0, e["start"] - latest)
            call = call_of.get(e["args"].get("correlation"))
            if call is not None and nanos(call["ts"]) > latest:
                category = "host_wait"
            elif gap < 30_000:
                category = "kernel_wait"
        gaps[category] = gaps.get(category, 0) + gap
        latest = max(latest or 0, e["end"])
    for category, ns in gaps.items():
        tables["idle_time_breakdown"].append(
            {
                "rank": rank,
                "device": device,
                "stream": stream,
                "idle_category": category,
                "idle_time": us(ns),
                "idle_time_ratio": share(ns, sum(gaps.values()), percent=False),
            }
        )


def write(folder: Path, tables: dict[str, list[Row]]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in (
        "temporal_breakdown",
        "idle_time_breakdown",
        "comm_comp_overlap",
        "cuda_kernel_launch_stats",
        "gpu_kernel_breakdown",
    ):
        if rows := tables.get(name):
            with open(folder / f"{name}.csv", "w", newline="") as out:
                writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


def hta(folder: Path, variant: str) -> None:
    """Run in a process of its own: one variant of one folder."""
    from hta.trace_analysis import TraceAnalysis

    out = folder / "hta" / variant
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    status: dict[str, Any] = {}
    traces = folder / "hta" / "traces"
    analysis = TraceAnalysis(trace_dir=str(traces), **VARIANTS[variant][1])
    ranks = sorted(analysis.t.traces)
    idle_frames: list[Any] = []

    def idle_of(rank: int) -> Any:
        pair = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False, show_idle_interval_stats=True)
        idle_frames.append(pair[1])
        return pair[0]

    def joined(frames: list[Any]) -> Any:
        import pandas

        return pandas.concat([frame for frame in frames if frame is not None])

    def launch() -> Any:
        stats = analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
        return joined([frame.assign(rank=rank) for rank, frame in stats.items()])

    calls = {
        "temporal_breakdown": lambda: analysis.get_temporal_breakdown(visualize=False),
        "comm_comp_overlap": lambda: analysis.get_comm_comp_overlap(visualize=False),
        "idle_time_breakdown": lambda: joined([idle_of(rank) for rank in ranks]),
        "idle_interval_stats": lambda: joined(idle_frames),
        "cuda_kernel_launch_stats": launch,
        "gpu_kernel_breakdown": lambda: analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1_000_000_000)[
            1
        ],
        "gpu_kernel_breakdown_top10": lambda: analysis.get_gpu_kernel_breakdown(visualize=False)[1],
        "gpu_kernel_type_breakdown": lambda: analysis.get_gpu_kernel_breakdown(visualize=False)[0],
        "memory_bw_summary": lambda: analysis.get_memory_bw_summary(ranks=ranks),
        "queue_length_summary": lambda: analysis.get_queue_length_summary(ranks=ranks),
    }
    for name, call in calls.items():
        try:
            frame = call()
            status[name] = "None" if frame is None else "ok"
            if frame is not None and not (name == "cuda_kernel_launch_stats" and frame.empty):
                frame = frame.reset_index() if any(frame.index.names) else frame
                frame.columns = ["_".join(filter(None, c)) if isinstance(c, tuple) else c for c in frame.columns]
                frame[[c for c in frame.columns if c != "index"]].to_csv(out / f"{name}.csv", index=False)
        except Exception as error:
            status[name] = f"{type(error).__name__}: {error}"[:120]
    try:
        status["profiler_steps_value"] = [int(n) for n in analysis.get_profiler_steps()]
    except Exception:
        status["profiler_steps_value"] = []
    (out / "status.json").write_text(json.dumps(status, indent=1) + "\n")


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def main() -> None:
    if len(sys.argv) == 3:
        hta(Path(sys.argv[1]), sys.argv[2])
        return
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        files = sorted(folder.glob("*.json.gz"))
        write(folder / "exact", exact(files))
        shutil.rmtree(folder / "hta", ignore_errors=True)
        traces = folder / "hta" / "traces"
        traces.mkdir(parents=True)
        for file in files:
            shutil.copy(file, traces)
        for variant, (environment, _) in VARIANTS.items():
            done = subprocess.run(
                [sys.executable, __file__, folder, variant],
                env=os.environ | environment,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                print(folder.name, variant, done.stderr.strip().splitlines()[-1:])
                shutil.rmtree(folder / "hta" / variant, ignore_errors=True)
            elif variant != "default" and texts(folder / "hta" / variant) == texts(folder / "hta" / "default"):
                shutil.rmtree(folder / "hta" / variant)
        shutil.rmtree(traces)


if __name__ == "__main__":
    main()
