"""A GPU that is not there, for trying omni_perf on a machine without one.

It behaves like a CUDA stream: `busy` puts work into a queue and returns at once,
the device works the queue off in order, and `synchronize` waits until it is empty.
Nothing is computed; the times are written to the feed of the fake NVML library
(sidecar/measure/gpu/testdata/fakenvml), so that the GPU lanes of omni_perf follow the
program. The library must be built and named before the sidecar starts:

    sidecar/measure/gpu/testdata/fakenvml/build.sh /tmp/libnvidia-ml.so.1
    export OMNI_PERF_NVML_LIBRARY=/tmp/libnvidia-ml.so.1
    export OMNI_PERF_FAKE_NVML_FEED=/tmp/gpu.feed

Where the feed is not set the queue works all the same and nothing is written.
"""

from __future__ import annotations

import os
import time

FEED = "OMNI_PERF_FAKE_NVML_FEED"


class SimulatedGPU:
    """One device. Use it from one thread at a time, as one CUDA stream is."""

    def __init__(self, index: int = 0, memory_mib: int = 2048, feed: str | None = None) -> None:
        path = feed if feed is not None else os.environ.get(FEED, "")
        self._index = index
        self._free_at = time.monotonic_ns()  # when the queue will be empty
        self._feed = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if path else -1
        self._write(f"process {os.getpid()} {index} {memory_mib}\n")

    def busy(self, seconds: float, gap_ns: int = 0) -> tuple[int, int]:
        """Launch work that takes the device this long; return at once from when to when it will work.

        What is queued begins so long after the work before.
        """
        start = max(time.monotonic_ns(), self._free_at + gap_ns)
        self._free_at = start + round(seconds * 1e9)
        self._write(f"{start} {self._index} 100\n{self._free_at} {self._index} 0\n")
        return start, self._free_at

    def synchronize(self) -> None:
        """Wait until all that was launched is done, like torch.cuda.synchronize."""
        while (left := self._free_at - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)

    def item(self) -> float:
        """Wait for a result, like Tensor.item()."""
        self.synchronize()
        return 0.0

    def _write(self, lines: str) -> None:
        # One write per call: the reader takes whole lines only.
        if self._feed >= 0:
            os.write(self._feed, lines.encode())

    def close(self) -> None:
        if self._feed >= 0:
            os.close(self._feed)
            self._feed = -1
