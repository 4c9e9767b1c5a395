"""What torch's allocator says of the memory of GPUs, before a cell and after it.

torch is not imported for that, and CUDA not initialised: where the program has done neither there is nothing to say.
The mark of its peak is not reset, since it is also the program's.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from omni_perf import contract

MOST_DEVICES = 64

Figures = dict[int, contract.TorchFigures]


def read() -> Figures:
    """Return what the allocator has of each device that torch has used."""
    found: Figures = {}
    cuda: Any = sys.modules.get("torch.cuda")
    with suppress(Exception):  # of a torch that has other names
        if cuda is None or not cuda.is_initialized():
            return {}
        for device in range(min(cuda.device_count(), MOST_DEVICES)):
            figures = cuda.memory_stats_as_nested_dict(device)
            allocated, reserved = figures["allocated_bytes"]["all"], figures["reserved_bytes"]["all"]
            if reserved["peak"] or allocated["peak"]:
                found[device] = {
                    "allocatedBytes": str(int(allocated["current"])),
                    "reservedBytes": str(int(reserved["current"])),
                    "peakBytes": str(int(allocated["peak"])),
                }
    return found


def between(before: Figures, after: Figures) -> list[contract.TorchMemory]:
    """Return both by device."""
    return [{"device": device, "before": before.get(device, {}), "after": figures} for device, figures in after.items()]
