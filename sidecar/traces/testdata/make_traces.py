"""Write small traces in the shapes that profilers have written: make_traces.py FOLDER.

Each is made up, the same bytes every time. make_parity.py adds what HolisticTraceAnalysis and the
exact rules say of them. No two changes of a device fall into the same microsecond: what
HolisticTraceAnalysis makes of such ties depends on an unstable sort. Nor are times in nanoseconds
whole microseconds apart: it cuts the decimals off a difference of floats, 1.9999 or 2.0001.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from pathlib import Path
from typing import Any

Event = dict[str, Any]
HOST = 4100


class Trace:
    """One file under construction; times are microseconds."""

    def __init__(self, seed: int, whole: bool = False, rank: int | None = 0, **top: Any) -> None:
        self.random = random.Random(seed)
        self.whole = whole  # microseconds without decimals, as profilers wrote until 2023
        self.host = 1_700_000_000_000_000.0 if whole else 4_458_676_000.0
        self.top: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Made-up GPU"}], **top}
        if not whole:
            self.top["baseTimeNanoseconds"] = 1_711_964_646_000_000_000
        if rank is not None:
            self.top["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        self.events: list[Event] = []
        self.ends: dict[tuple[int, int], float] = {}
        self.correlation = 900
        self.taken: set[int] = set()
        self.categories = {
            "runtime": "cuda_runtime",
            "kernel": "kernel",
            "memcpy": "gpu_memcpy",
            "memset": "gpu_memset",
        }

    def between(self, low: float, high: float) -> float:
        return self.random.randint(int(low), int(high)) if self.whole else round(self.random.uniform(low, high), 3)

    def free(self, at: float) -> float:
        """The next time whose microsecond, and those beside it, no other change has."""
        while any(int(math.floor(at)) + d in self.taken for d in (-1, 0, 1)):
            at += 1 if self.whole else 1.373
        self.taken.add(int(math.floor(at)))
        return at if self.whole else round(at, 3)

    def add(self, cat: str, name: str, start: float, dur: float, tid: int, pid: int = HOST, **args: Any) -> Event:
        fix = (lambda t: int(t)) if self.whole else (lambda t: round(t, 3))
        event = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": fix(start),
            "dur": fix(dur),
            "args": args,
        }
        self.events.append(event)
        return event

    def call(self, name: str, dur: float, cat: str = "runtime", **args: Any) -> tuple[float, int]:
        """A runtime call; returns its end and correlation."""
        self.correlation += 1
        start = self.free(self.host)
        self.add(self.categories.get(cat, cat), name, start, dur, HOST, correlation=self.correlation, **args)
        self.host = start + dur + self.between(3, 9)
        return start + dur, self.correlation

    def run(
        self,
        name: str,
        start: float,
        dur: float,
        stream: int,
        correlation: int,
        cat: str = "kernel",
        device: int = 0,
        **args: Any,
    ) -> None:
        """A device event, in the order of its stream."""
        start = self.free(max(start, self.ends.get((device, stream), 0.0)))
        end = self.free(start + dur + (0 if self.whole else self.between(0.1, 0.9))) if dur >= 2 else start + dur
        self.ends[device, stream] = max(end, self.ends.get((device, stream), 0.0))
        self.add(
            self.categories.get(cat, cat),
            name,
            start,
            end - start,
            stream,
            device,
            device=device,
            context=1,
            stream=stream,
            correlation=correlation,
            **args,
        )

    def launch(
        self,
        kernel: str,
        dur: float,
        stream: int = 7,
        call: str = "cudaLaunchKernel",
        lag: tuple[float, float] = (4, 9),
        cat: str = "kernel",
        device: int = 0,
        **args: Any,
    ) -> None:
        end, correlation = self.call(call, self.between(4, 9))
        self.run(kernel, end + self.between(*lag), dur, stream, correlation, cat, device, **args)

    def step(self, number: int, body: Any, cat: str = "user_annotation", **where: Any) -> None:
        start = self.free(self.host)
        self.host = start + self.between(3, 9)
        body()
        self.host += self.between(3, 9)
        self.add(cat, f"ProfilerStep#{number}", start, self.host - start, HOST, **where)
        self.host += self.between(30, 60)

    def copy(self, name: str, size: int, dur: float, stream: int = 7) -> None:
        self.launch(
            name,
            dur,
            stream,
            "cudaMemcpyAsync",
            cat="memcpy",
            bytes=size,
            **{"memory bandwidth (GB/s)": size / dur / 1000},
        )

    def write(self, path: Path) -> None:
        events = sorted(self.events, key=lambda e: e["ts"])
        path.write_bytes(gzip.compress(json.dumps({**self.top, "traceEvents": events}).encode(), mtime=0))


GEMM = "ampere_sgemm_128x64_tn"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"


def cuda_steps(folder: Path) -> None:
    """Three steps in nanoseconds: graphs, memsets, two streams, Triton, syncs, gaps of every kind."""
    t = Trace(1)

    def body() -> None:
        t.copy("Memcpy HtoD (Pinned -> Device)", 6_000_000, t.between(90, 140))
        for i in range(6):
            start = t.host
            t.launch([GEMM, NORM, ADD][i % 3], t.between(12, 60))
            t.add("cpu_op", "aten::addmm", start - 1, t.host - start, HOST, **{"External id": t.correlation})
        t.host += t.between(150, 300)  # the stream runs dry
        t.launch(
            "Memset (Device)", 3, cat="memset", call="cudaMemsetAsync", bytes=4096, **{"memory bandwidth (GB/s)": 1.5}
        )
        end, correlation = t.call("cudaGraphLaunch", t.between(8, 14))
        for i in range(4):  # one call, many kernels
            t.run(GEMM if i % 2 else ADD, end + 5, t.between(10, 30), 7, correlation)
        t.launch("triton_poi_fused_add_0", 20, call="cuLaunchKernelEx", cat="kernel")
        t.add("cpu_op", "triton_poi_fused_add_0", t.host, 3, HOST, stream=7, correlation=0)  # CPU, with a stream
        t.host += 5
        t.launch(REDUCE, t.between(150, 260), stream=20, call="cudaLaunchKernelExC")
        for _ in range(3):
            t.launch(NORM, t.between(20, 50))
        t.launch(ADD, 25, stream=13, lag=(90, 140))  # queued, and long idle
        t.launch(ADD, 25, stream=13, lag=(160, 200))
        t.copy("Memcpy DtoH (Device -> Pageable)", 4, 2.5)
        t.call("cudaDeviceSynchronize", t.between(30, 60))
        t.add("cuda_sync", "Stream Sync", t.host, 4, 7, 0, device=0, stream=7, correlation=t.correlation)
        t.host += t.between(20, 40)

    for number in (4, 5, 6):
        t.step(number, body)
    t.run("a kernel without its call", t.host + 50, 12, 7, 5)
    t.write(folder / "trace.json.gz")


def cuda_whole_microseconds(folder: Path) -> None:
    """Two ranks of a profiler that wrote whole microseconds, one step, collectives under kernels."""
    for rank in range(2):
        t = Trace(20 + rank, whole=True, rank=rank)

        def body(t: Trace = t) -> None:
            for i in range(14):
                t.launch([GEMM, NORM, ADD][i % 3], t.between(20, 90), device=rank)
                if i % 4 == 3:
                    t.launch(REDUCE, t.between(60, 200), stream=20, device=rank)
                if i % 5 == 4:
                    t.host += t.between(80, 200)

        t.step(1009, body)
        t.write(folder / f"rank{rank}.json.gz")


def rocm(folder: Path) -> None:
    """HIP's calls and names, all on stream 0; two steps, marked by the device's annotation, too."""
    t = Trace(3, rank=None)

    def body() -> None:
        for i in range(8):
            t.launch(
                "Cijk_Ailk_Bljk_SB_MT64x64" if i % 2 else "void at::native::elementwise_kernel<512, 1>(int)",
                t.between(10, 40),
                0,
                "hipLaunchKernel" if i % 3 else "hipExtModuleLaunchKernel",
                device=2,
            )
        t.launch(
            "Memcpy DtoD (Device -> Device)",
            t.between(5, 9),
            0,
            "hipMemcpyWithStream",
            cat="memcpy",
            device=2,
            bytes=70_000,
        )
        t.host += t.between(60, 120)

    for number in (1, 2):
        start = t.host
        t.step(number, body)
        t.add(
            "gpu_user_annotation",
            f"ProfilerStep#{number}",
            start + 20,
            t.host - start - 40,
            0,
            2,
            **{"External id": number},
        )
    t.write(folder / "trace.json.gz")


def old_categories(folder: Path) -> None:
    """Category names of 2021, and no steps."""
    t = Trace(4, whole=True)
    t.categories = {"runtime": "Runtime", "kernel": "Kernel", "memcpy": "Memcpy", "memset": "Memset"}
    for i in range(10):
        t.launch([GEMM, ADD][i % 2], t.between(15, 45))
    t.copy("Memcpy HtoD (Pageable -> Device)", 1_000_000, 60)
    t.call("cudaStreamSynchronize", 30)
    t.write(folder / "trace.json.gz")


def cpu_only(folder: Path) -> None:
    """Operators alone."""
    t = Trace(5, rank=None)
    for number in (1, 2):
        t.step(
            number,
            lambda: [
                t.add("cpu_op", name, t.host, 20, HOST) and setattr(t, "host", t.host + 30)
                for name in ("aten::mm", "aten::relu")
            ],
        )
    t.write(folder / "trace.json.gz")


def several_devices(folder: Path) -> None:
    """One process, three devices with streams of the same numbers."""
    t = Trace(6)

    def body() -> None:
        for i in range(18):
            device = i // 3 % 3
            t.launch([GEMM, NORM, ADD][i % 3], t.between(20, 70), device=device)
            if i % 6 == 5:
                t.launch(REDUCE, t.between(40, 90), stream=20, device=device)
                t.host += t.between(40, 160)
        t.launch(
            "Memcpy PtoP (Device -> Device)",
            t.between(20, 30),
            cat="memcpy",
            call="cudaMemcpyAsync",
            device=1,
            bytes=50_000,
        )

    for number in (7, 8):
        t.step(number, body)
    t.write(folder / "trace.json.gz")


def overlapping(folder: Path) -> None:
    """Events of one stream that overlap or are shorter than a microsecond, as graphs and CUPTI give them."""
    t = Trace(7)
    for i in range(12):
        end, correlation = t.call("cudaLaunchKernel", t.between(4, 9))
        start = t.free(end + t.between(4, 9))
        dur = [30.0, 0.7, 25.0][i % 3]
        t.add(
            "kernel",
            [GEMM, "tiny", ADD][i % 3],
            start,
            dur,
            7,
            0,
            device=0,
            context=1,
            stream=7,
            correlation=correlation,
        )
    t.write(folder / "trace.json.gz")


def main() -> None:
    root = Path(sys.argv[1])
    for make in (cuda_steps, cuda_whole_microseconds, rocm, old_categories, cpu_only, several_devices, overlapping):
        folder = root / make.__name__.replace("_", "-")
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)


if __name__ == "__main__":
    main()
