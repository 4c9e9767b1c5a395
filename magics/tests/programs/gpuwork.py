"""Keeps a GPU busy, and idle, for times that the program takes by its own clocks: for the tests with a real GPU.

    python gpuwork.py torch|graphs|cupy|jax|numba --facts FILE [--rounds N] [--busy S] [--sleep S] [--compute S]

A round launches work of some length, computes while it runs, waits for it, sleeps and computes again. FILE gets
for how long the device worked by the library's own events (of JAX, which has none, by the host's clock), and the
seconds of the two lines in which it was idle.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import inspect
import json
import time

SPIN = """
extern "C" __global__ void spin(long long cycles) {
    long long began = clock64();
    while (clock64() - began < cycles) {}
}
"""


class Torch:
    """Kernels of known length; events around each round's work."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        torch.cuda.init()
        self.cycles = 1_000_000
        self.events = []
        self.launch(1)
        self.wait()
        for _ in range(3):  # the clock of the device may go up
            began, ended = self.launch(20)
            self.wait()
            self.cycles = int(self.cycles * 20e-3 / (began.elapsed_time(ended) / 1000))
        self.events.clear()

    def launch(self, milliseconds: int):
        """Queue as many kernels of 1 ms."""
        began, ended = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        for _ in range(milliseconds):
            self.torch.cuda._sleep(self.cycles)
        ended.record()
        self.events.append((began, ended))
        return began, ended

    def wait(self) -> None:
        self.torch.cuda.synchronize()

    def busy_s(self) -> float:
        return sum(began.elapsed_time(ended) for began, ended in self.events) / 1000


class Graphs(Torch):
    """The same kernels in a CUDA graph."""

    def __init__(self) -> None:
        self.graphs = {}
        super().__init__()
        for milliseconds in (1, 2, 4, 5, 8, 10, 20, 100):
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                for _ in range(milliseconds):
                    self.torch.cuda._sleep(self.cycles)
            self.graphs[milliseconds] = graph

    def launch(self, milliseconds: int):
        if not self.graphs:
            return super().launch(milliseconds)
        began, ended = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        self.graphs[milliseconds].replay()
        ended.record()
        self.events.append((began, ended))
        return began, ended


class CuPy:
    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.spin = cupy.RawKernel(SPIN, "spin")
        self.cycles = 1_000_000
        self.events = []
        for count in (1, 20, 20):
            began, ended = self.launch(count)
            self.wait()
            took = cupy.cuda.get_elapsed_time(began, ended) / 1000
            self.cycles = int(self.cycles * count * 1e-3 / took) if count > 1 else self.cycles
        self.events.clear()

    def launch(self, milliseconds: int):
        began, ended = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        began.record()
        for _ in range(milliseconds):
            self.spin((1,), (1,), (self.cupy.int64(self.cycles),))
        ended.record()
        self.events.append((began, ended))
        return began, ended

    def wait(self) -> None:
        self.cupy.cuda.runtime.deviceSynchronize()

    def busy_s(self) -> float:
        return sum(self.cupy.cuda.get_elapsed_time(*pair) for pair in self.events) / 1000


class Numba:
    def __init__(self) -> None:
        from numba import cuda

        self.cuda = cuda

        @cuda.jit
        def spin(found, count):
            total = 0.0
            for number in range(count):
                total += (number % 7) * 0.5
            found[0] = total

        self.spin, self.found = spin, cuda.device_array(1)
        self.count = 100_000
        self.events = []
        for count in (1, 20, 20):
            began, ended = self.launch(count)
            self.wait()
            took = cuda.event_elapsed_time(began, ended) / 1000
            self.count = int(self.count * count * 1e-3 / took) if count > 1 else self.count
        self.events.clear()

    def launch(self, milliseconds: int):
        began, ended = self.cuda.event(), self.cuda.event()
        began.record()
        for _ in range(milliseconds):
            self.spin[1, 1](self.found, self.count)  # pyright: ignore[reportIndexIssue]
        ended.record()
        self.events.append((began, ended))
        return began, ended

    def wait(self) -> None:
        self.cuda.synchronize()

    def busy_s(self) -> float:
        return sum(self.cuda.event_elapsed_time(*pair) for pair in self.events) / 1000


class JAX:
    """Products of matrices: JAX has no events, so the host's clock takes their time, with the launch and the wait."""

    def __init__(self) -> None:
        import jax

        def products(x):
            return jax.lax.fori_loop(0, 2, lambda _, y: (y @ y) * 1e-3, x)

        self.products = jax.jit(products)
        self.x = jax.numpy.ones((4096, 4096), dtype="float32")
        self.each_ms = 1.0
        self.taken = []
        self.launch(1)
        self.wait()
        for _ in range(2):
            self.launch(20)
            began = time.perf_counter()
            launched = round(20 / self.each_ms)
            self.wait()
            self.each_ms = max(0.05, 1000 * (time.perf_counter() - began) / launched)
        self.taken.clear()

    def launch(self, milliseconds: int) -> None:
        self.began = time.perf_counter()
        made = self.x
        for _ in range(max(1, round(milliseconds / self.each_ms))):
            made = self.products(made)
        self.made = made

    def wait(self) -> None:
        self.made.block_until_ready()
        self.taken.append(time.perf_counter() - self.began)

    def busy_s(self) -> float:
        return sum(self.taken)


LIBRARIES = {"torch": Torch, "graphs": Graphs, "cupy": CuPy, "numba": Numba, "jax": JAX}


def compute(seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        pass


def rounds(device, count: int, busy: float, sleep: float, computing: float) -> dict:
    """Work; return what the clocks say."""
    slept = computed = 0.0
    began = time.time()
    for _ in range(count):
        device.launch(round(busy * 1000))
        compute(min(computing, busy / 2))  # beside the device's work
        device.wait()
        before = time.perf_counter()
        time.sleep(sleep)
        between = time.perf_counter()
        compute(computing)
        slept += between - before
        computed += time.perf_counter() - between
    ended = time.time()
    lines, first = inspect.getsourcelines(rounds)
    numbers = {text: first + at for at, line in enumerate(lines) if (text := line.strip())}
    inside, begin = inspect.getsourcelines(compute)
    return {
        "began": began,
        "ended": ended,
        "busy_s": device.busy_s(),
        "slept_s": slept,
        "computed_s": computed,
        "sleep_lines": [numbers["time.sleep(sleep)"]],
        "compute_lines": [numbers["compute(computing)"], *range(begin, begin + len(inside))],
    }


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("library", choices=LIBRARIES)
    arguments.add_argument("--facts", required=True)
    arguments.add_argument("--rounds", type=int, default=200)
    arguments.add_argument("--busy", type=float, default=0.005)
    arguments.add_argument("--sleep", type=float, default=0.004)
    arguments.add_argument("--compute", type=float, default=0.003)
    chosen = arguments.parse_args()
    device = LIBRARIES[chosen.library]()
    facts = rounds(device, chosen.rounds, chosen.busy, chosen.sleep, chosen.compute)
    with open(chosen.facts, "w") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main()
